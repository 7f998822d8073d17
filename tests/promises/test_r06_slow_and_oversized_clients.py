"""R6: what is too large is refused and costs no memory, and who is slow harms nobody."""

import gzip
import io
import select
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress

import httpx
import psutil
import pytest

from tests.deployment.proxy import Site, needs_nginx, site
from tests.deployment.slow import Slowness, kept_slow, slow_body, slow_head, slow_reader
from tests.deployment.weight import watched
from tests.promises.figures import Figures
from tests.promises.load import Load, Request, closed_loop, run
from tests.promises.strength import Strength

pytestmark = needs_nginx

MIB = 2**20
MOST_GROWTH = 50 * MIB
# The pool of a replica's own, to PostgreSQL, and what is just being answered.
MOST_HELD = 12
ASKED = b'{"history": [{"item_id": "i1", "timestamp": 1767225600}], "n": 10}'
ADDRESSES = [f"127.0.0.{number}" for number in range(81, 86)]
SLOW: dict[str, Callable[[str], Slowness]] = {
    "heads": lambda _: slow_head(),
    "bodies": slow_body,
    "readers": slow_reader,
}


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory, published: object) -> Iterator[Site]:
    """Two replicas behind the proxy."""
    with site(tmp_path_factory.mktemp("site"), published) as running:
        yield running


def upload(address: tuple[str, int], size: int, key: str) -> tuple[int, int]:
    """Send a body in chunks without saying how long it is, and go on once it was refused.

    The status it was answered with (0: none came), and the bytes that went.
    """
    head = (
        "POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"X-API-Key: {key}\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    chunk = f"{MIB:x}\r\n".encode() + b" " * MIB + b"\r\n"
    answer, sent = b"", 0
    with socket.create_connection(address, timeout=30) as wire, suppress(OSError):
        wire.sendall(head.encode())
        while sent < size:
            if not answer and select.select([wire], [], [], 0)[0]:
                answer = wire.recv(65536)
            wire.sendall(chunk)
            sent += MIB
        answer = answer or wire.recv(65536)
    return int(answer[9:12] or 0), sent


def bomb(size: int) -> bytes:
    """So many zeros, compressed."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb") as pack:
        for _ in range(size // MIB):
            pack.write(bytes(MIB))
    return packed.getvalue()


@pytest.fixture(params=["proxy", "replica"])
def way_in(request: pytest.FixtureRequest, behind: Site) -> tuple[str, tuple[str, int]]:
    """Through the proxy, or straight to a replica."""
    straight = (behind.replicas[0].address, behind.replica_port)
    ways = {"proxy": ("127.0.0.1", behind.proxy.port), "replica": straight}
    return request.param, ways[request.param]


def test_an_endless_body_is_refused_and_costs_no_memory(
    behind: Site, way_in: tuple[str, tuple[str, int]], strength: Strength, figures: Figures
) -> None:
    way, address = way_in
    size = strength.of(short=64 * MIB, full=1024 * MIB)
    with watched(behind.pids) as growth:
        status, sent = upload(address, size, behind.key)
    figures.keep(
        "R6",
        f"endless chunked body, {way}",
        offered_mib=size // MIB,
        sent_mib=sent // MIB,
        status=status,
        growth_mib=growth.most / MIB,
    )
    # A replica hangs up on whoever sends on: what it said may go under. The proxy hears them out.
    assert status == 413 or (way == "replica" and status == 0)
    assert growth.most < MOST_GROWTH
    assert statuses_of(ask(behind, seconds=0.5)) <= {200, 503}


def test_a_compressed_bomb_is_refused_unopened(
    behind: Site, way_in: tuple[str, tuple[str, int]], strength: Strength, figures: Figures
) -> None:
    way, (host, port) = way_in
    size = strength.of(short=64 * MIB, full=900 * MIB)
    packed = bomb(size)
    assert len(packed) < MIB
    headers = {"Content-Encoding": "gzip", "X-API-Key": behind.key}
    with watched(behind.pids) as growth:
        answer = httpx.post(
            f"http://{host}:{port}/v1/events",
            content=packed,
            headers={**headers, "Content-Type": "application/json"},
            timeout=60,
        )
    figures.keep(
        "R6",
        f"gzip bomb, {way}",
        opened_mib=size // MIB,
        status=answer.status_code,
        growth_mib=growth.most / MIB,
    )
    assert answer.status_code == 415
    assert growth.most < MOST_GROWTH


@pytest.mark.timeout(300)
@pytest.mark.parametrize("what", SLOW)
def test_slow_clients_harm_nobody(
    behind: Site, what: str, strength: Strength, figures: Figures
) -> None:
    seconds = strength.of(short=1.5, full=15.0)
    count = strength.of(short=100, full=500)
    ask(behind, seconds=1.0)
    alone = ask(behind, seconds=seconds)
    with (
        watched(behind.pids) as growth,
        kept_slow(behind.proxy.port, SLOW[what](behind.key), count, ADDRESSES) as clients,
    ):
        beside = ask(behind, seconds=seconds)
        held = connections_of(behind)
    figures.keep(
        "R6",
        f"{count} slow {what}",
        failed=len(beside.answers) - len(beside.of(200, 503)),
        alone_shed=len(alone.of(503)),
        beside_shed=len(beside.of(503)),
        answered=len(beside.of(200)),
        reconnects=sum(client.comes - 1 for client in clients),
        replica_connections=held,
        alone_p50_ms=alone.quantile(0.5) * 1000,
        beside_p50_ms=beside.quantile(0.5) * 1000,
        alone_p99_ms=alone.quantile(0.99) * 1000,
        beside_p99_ms=beside.quantile(0.99) * 1000,
        growth_mib=growth.most / MIB,
    )
    # A machine that is busy otherwise sheds some either way.
    assert statuses_of(beside) <= {200, 503}
    assert held <= MOST_HELD, "slow clients reach the replicas"
    assert growth.most < MOST_GROWTH
    if strength.is_full:
        assert len(beside.of(503)) <= len(alone.of(503)) + 0.01 * len(beside.answers)
        assert beside.quantile(0.99) < 2 * alone.quantile(0.99) + 0.01


def ask(behind: Site, seconds: float) -> Load:
    """What callers who are in no way slow get at the same time."""
    head = (
        "POST /v1/recommendations HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(ASKED)}\r\n"
        f"X-API-Key: {behind.key}\r\n\r\n"
    )
    request = Request("ask", head.encode() + ASKED)
    return run(closed_loop(behind.proxy.port, [request], clients=4, seconds=seconds))


def statuses_of(load: Load) -> set[int]:
    """Every status that came; 0 where no answer did."""
    return set(load.statuses)


def connections_of(behind: Site) -> int:
    """Connections that replicas hold open."""
    processes = [psutil.Process(replica.server.process.pid) for replica in behind.replicas]
    every = [each for one in processes for each in one.net_connections("tcp")]
    return sum(each.status == psutil.CONN_ESTABLISHED for each in every)
