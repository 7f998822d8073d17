"""R6: oversized bodies are refused without memory growth; slow clients delay no others."""

import gzip
import io
import select
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress

import httpx
import psutil
import pytest

from tests.deployment.memory import measure_growth
from tests.deployment.proxy import Site, needs_nginx, start_site
from tests.deployment.slow_clients import (
    SlowRequest,
    run_slow_clients,
    slow_body,
    slow_head,
    slow_reader,
)
from tests.promises.figures import Figures
from tests.promises.load import Load, Request, closed_loop, run
from tests.promises.strength import Strength

pytestmark = needs_nginx

MIB = 2**20
MOST_GROWTH = 50 * MIB
# The pool of connections to PostgreSQL of a replica, and requests in progress.
MOST_HELD = 12
BODY = b'{"history": [{"item_id": "i1", "timestamp": 1767225600}], "n": 10}'
ADDRESSES = [f"127.0.0.{number}" for number in range(81, 86)]
SLOW: dict[str, Callable[[str], SlowRequest]] = {
    "heads": lambda _: slow_head(),
    "bodies": slow_body,
    "readers": slow_reader,
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, published: object) -> Iterator[Site]:
    """Two replicas behind the proxy."""
    with start_site(tmp_path_factory.mktemp("site"), published) as running:
        yield running


def upload(address: tuple[str, int], size: int, key: str) -> tuple[int, int]:
    """Send a chunked body without a length, and continue to send after it is refused.

    Returns the status (0 without an answer) and the number of bytes sent.
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


def compress_zeros(size: int) -> bytes:
    """Compress `size` zero bytes."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb") as pack:
        for _ in range(size // MIB):
            pack.write(bytes(MIB))
    return buffer.getvalue()


@pytest.fixture(params=["proxy", "replica"])
def route(request: pytest.FixtureRequest, site: Site) -> tuple[str, tuple[str, int]]:
    """Name and address: through the proxy, or directly to a replica."""
    direct = (site.replicas[0].address, site.replica_port)
    addresses = {"proxy": ("127.0.0.1", site.proxy.port), "replica": direct}
    return request.param, addresses[request.param]


def test_an_endless_body_is_refused_without_memory_growth(
    site: Site, route: tuple[str, tuple[str, int]], strength: Strength, figures: Figures
) -> None:
    name, address = route
    size = strength.select(short=64 * MIB, full=1024 * MIB)
    with measure_growth(site.pids) as growth:
        status, sent = upload(address, size, site.key)
    figures.record(
        "R6",
        f"endless chunked body, {name}",
        offered_mib=size // MIB,
        sent_mib=sent // MIB,
        status=status,
        growth_mib=growth.largest / MIB,
    )
    # A replica closes the connection while the client sends, so its answer may be lost; the
    # proxy reads the body to its end.
    assert status == 413 or (name == "replica" and status == 0)
    assert growth.largest < MOST_GROWTH
    assert list_statuses(send_requests(site, seconds=0.5)) <= {200, 503}


def test_a_gzip_bomb_is_refused_without_unpacking(
    site: Site, route: tuple[str, tuple[str, int]], strength: Strength, figures: Figures
) -> None:
    name, (host, port) = route
    size = strength.select(short=64 * MIB, full=900 * MIB)
    packed = compress_zeros(size)
    assert len(packed) < MIB
    headers = {"Content-Encoding": "gzip", "X-API-Key": site.key}
    with measure_growth(site.pids) as growth:
        answer = httpx.post(
            f"http://{host}:{port}/v1/events",
            content=packed,
            headers={**headers, "Content-Type": "application/json"},
            timeout=60,
        )
    figures.record(
        "R6",
        f"gzip bomb, {name}",
        opened_mib=size // MIB,
        status=answer.status_code,
        growth_mib=growth.largest / MIB,
    )
    assert answer.status_code == 415
    assert growth.largest < MOST_GROWTH


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", SLOW)
def test_slow_clients_delay_no_others(
    site: Site, kind: str, strength: Strength, figures: Figures
) -> None:
    seconds = strength.select(short=1.5, full=15.0)
    count = strength.select(short=100, full=500)
    send_requests(site, seconds=1.0)
    alone = send_requests(site, seconds=seconds)
    with (
        measure_growth(site.pids) as growth,
        run_slow_clients(site.proxy.port, SLOW[kind](site.key), count, ADDRESSES) as clients,
    ):
        beside = send_requests(site, seconds=seconds)
        held = count_connections(site)
    figures.record(
        "R6",
        f"{count} slow {kind}",
        failed=len(beside.answers) - len(beside.select(200, 503)),
        alone_shed=len(alone.select(503)),
        beside_shed=len(beside.select(503)),
        answered=len(beside.select(200)),
        reconnects=sum(client.connects - 1 for client in clients),
        replica_connections=held,
        alone_p50_ms=alone.quantile(0.5) * 1000,
        beside_p50_ms=beside.quantile(0.5) * 1000,
        alone_p99_ms=alone.quantile(0.99) * 1000,
        beside_p99_ms=beside.quantile(0.99) * 1000,
        growth_mib=growth.largest / MIB,
    )
    # A machine under other load sheds some requests in both cases.
    assert list_statuses(beside) <= {200, 503}
    assert held <= MOST_HELD, "slow clients reach the replicas"
    assert growth.largest < MOST_GROWTH
    if strength.is_full:
        assert len(beside.select(503)) <= len(alone.select(503)) + 0.01 * len(beside.answers)
        assert beside.quantile(0.99) < 2 * alone.quantile(0.99) + 0.01


def send_requests(site: Site, seconds: float) -> Load:
    """Run the load of four ordinary clients through the proxy."""
    head = (
        "POST /v1/recommendations HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n"
        f"X-API-Key: {site.key}\r\n\r\n"
    )
    request = Request("recommend", head.encode() + BODY)
    return run(closed_loop(site.proxy.port, [request], clients=4, seconds=seconds))


def list_statuses(load: Load) -> set[int]:
    """List the statuses of a load; 0 stands for a missing answer."""
    return set(load.statuses)


def count_connections(site: Site) -> int:
    """Count the open connections of the replicas."""
    processes = [psutil.Process(replica.server.process.pid) for replica in site.replicas]
    every = [each for one in processes for each in one.net_connections("tcp")]
    return sum(each.status == psutil.CONN_ESTABLISHED for each in every)
