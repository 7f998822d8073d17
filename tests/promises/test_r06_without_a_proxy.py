"""R6 without the proxy: a process bounds idle and slow clients itself, and serves the others."""

import resource
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil
import pytest

from app.auth.key_cache import generate_key
from migrations.run import upgrade
from tests.deployment.memory import measure_growth
from tests.deployment.proxy import store_key
from tests.deployment.slow_clients import (
    SlowRequest,
    run_slow_clients,
    slow_body,
    slow_head,
    slow_reader,
)
from tests.processes import Server, eventually, processes
from tests.promises.figures import Figures
from tests.promises.load import Load, Request, closed_loop, run
from tests.promises.strength import Strength

MIB = 2**20
DESCRIPTORS = 512
MOST_CONNECTIONS = DESCRIPTORS // 2
MOST_GROWTH = 50 * MIB
BODY = b'{"history": [{"item_id": "i1", "timestamp": 1767225600}], "n": 10}'
ADDRESSES = [f"127.0.0.{number}" for number in range(91, 96)]
SLOW: dict[str, Callable[[str], SlowRequest]] = {
    "heads": lambda _: slow_head(),
    "bodies": slow_body,
    "readers": slow_reader,
}


@contextmanager
def limited_descriptors(most: int) -> Iterator[None]:
    """Let processes that start in the block open at most so many files."""
    own = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, own[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, own)


class Target:
    """A process with few descriptors, and an admin key."""

    def __init__(self, server: Server, key: str) -> None:
        self.server = server
        self.process = psutil.Process(server.process.pid)
        head = (
            "POST /v1/recommendations HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n"
            f"X-API-Key: {key}\r\n\r\n"
        )
        self.key = key
        self._request = Request("recommend", head.encode() + BODY)

    def send_requests(self, seconds: float) -> Load:
        """Run the load of four ordinary clients."""
        loop = closed_loop(self.server.port, [self._request], clients=4, seconds=seconds)
        return run(loop)

    def probe(self) -> int:
        """Return the status of the readiness probe on a new connection."""
        return httpx.get(f"{self.server.url}/health/ready", timeout=30).status_code

    def count_connections(self) -> int:
        held = self.process.net_connections("tcp")
        return sum(one.status == psutil.CONN_ESTABLISHED for one in held)


@dataclass
class Extremes:
    """The worst of a process while clients attack it.

    Attributes:
        held: most connections at once.
        descriptors: most open files at once.
        probes: statuses of the readiness probe, each on a new connection.
    """

    held: int = 0
    descriptors: int = 0
    probes: list[int] = field(default_factory=list)


@contextmanager
def observe(target: Target) -> Iterator[Extremes]:
    """Observe a process every half a second for the duration of the block."""
    extremes, stopping = Extremes(), threading.Event()

    def observe_repeatedly() -> None:
        while not stopping.wait(0.5):
            extremes.held = max(extremes.held, target.count_connections())
            extremes.descriptors = max(extremes.descriptors, target.process.num_fds())
            extremes.probes.append(target.probe())

    thread = threading.Thread(target=observe_repeatedly)
    thread.start()
    try:
        yield extremes
    finally:
        stopping.set()
        thread.join()


@pytest.fixture
def target(tmp_path: Path, published: Path) -> Iterator[Target]:
    """A new process for each attack: it must not inherit the connections of the one before."""
    url = f"sqlite:///{tmp_path / 'kairos.db'}"
    upgrade(url)
    key_id, key = generate_key()
    store_key(url, key_id, key)
    with processes(tmp_path, published) as start:
        with limited_descriptors(DESCRIPTORS):
            server = start(wait=False, KAIROS_REQUESTS_PER_SECOND="100000")
        eventually(server.is_ready)
        yield Target(server, key)


@contextmanager
def run_idle_clients(port: int, count: int) -> Iterator[list[socket.socket]]:
    """Hold connections open that send nothing, and keep them although the server closes them."""
    with ExitStack() as stack:
        clients = []
        for number in range(count):
            client = stack.enter_context(socket.socket())
            client.bind((ADDRESSES[number % len(ADDRESSES)], 0))
            client.settimeout(30)
            client.connect(("127.0.0.1", port))
            clients.append(client)
        yield clients


def check_service(target: Target, attack: str, alone: Load, beside: Load) -> dict[str, float]:
    """Assert that ordinary clients were served; return figures."""
    assert {*beside.statuses} <= {200, 503}, attack
    assert beside.select(200), attack
    return {
        "answered": len(beside.select(200)),
        "shed": len(beside.select(503)),
        "failed": len(beside.answers) - len(beside.select(200, 503)),
        "alone_p99_ms": alone.quantile(0.99) * 1000,
        "beside_p99_ms": beside.quantile(0.99) * 1000,
    }


def check_extremes(extremes: Extremes) -> None:
    """Assert that connections were bounded throughout, and that probes succeeded."""
    assert {*extremes.probes} == {200}
    assert 0 < extremes.held <= MOST_CONNECTIONS
    assert extremes.descriptors < DESCRIPTORS


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", SLOW)
def test_slow_clients_are_bounded_by_the_process(
    target: Target, kind: str, strength: Strength, figures: Figures
) -> None:
    seconds = strength.select(short=2.0, full=20.0)
    count = strength.select(short=300, full=1000)
    alone = target.send_requests(seconds)
    with (
        measure_growth([target.process.pid]) as growth,
        observe(target) as extremes,
        run_slow_clients(target.server.port, SLOW[kind](target.key), count, ADDRESSES) as clients,
    ):
        beside = target.send_requests(seconds)
        reconnects = sum(client.connects - 1 for client in clients)
    measured = check_service(target, kind, alone, beside)
    figures.record(
        "R6",
        f"{count} slow {kind}, no proxy, {DESCRIPTORS} descriptors",
        held=extremes.held,
        descriptors=extremes.descriptors,
        reconnects=reconnects,
        probes=len(extremes.probes),
        probes_failed=len(extremes.probes) - extremes.probes.count(200),
        growth_mib=growth.largest / MIB,
        **measured,
    )
    check_extremes(extremes)
    assert growth.largest < MOST_GROWTH
    assert "Traceback" not in target.server.log.read_text()


@pytest.mark.timeout(300)
def test_idle_clients_do_not_exhaust_the_descriptors(
    target: Target, strength: Strength, figures: Figures
) -> None:
    seconds = strength.select(short=2.0, full=20.0)
    count = strength.select(short=2000, full=10_000)
    alone = target.send_requests(seconds)
    with (
        measure_growth([target.process.pid]) as growth,
        observe(target) as extremes,
        run_idle_clients(target.server.port, count),
    ):
        beside = target.send_requests(seconds)
    measured = check_service(target, "idle", alone, beside)
    figures.record(
        "R6",
        f"{count} idle connections, no proxy, {DESCRIPTORS} descriptors",
        held=extremes.held,
        descriptors=extremes.descriptors,
        probes=len(extremes.probes),
        probes_failed=len(extremes.probes) - extremes.probes.count(200),
        growth_mib=growth.largest / MIB,
        **measured,
    )
    check_extremes(extremes)
    assert growth.largest < MOST_GROWTH
    assert "Traceback" not in target.server.log.read_text()
