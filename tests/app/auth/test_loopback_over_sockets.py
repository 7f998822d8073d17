"""Which connections a service without keys authorizes, over real sockets."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.auth.local_token import LocalToken
from tests.processes import Server, processes

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A process that listens on every address."""
    with processes(tmp_path_factory.mktemp("process"), published) as start:
        yield start(KAIROS_HOST="0.0.0.0")


def status(server: Server, *lines: str, version: str = "1.1", address: str = "127.0.0.1") -> int:
    """The status of a request for the items with the local token, sent as raw lines."""
    if not any(line.startswith(("Authorization", "X-API-Key")) for line in lines):
        lines = (*lines, f"Authorization: Bearer {server.token}")
    with socket.create_connection((address, server.port), timeout=10) as connection:
        request = "\r\n".join(
            (f"GET /v1/items HTTP/{version}", *lines, "Connection: close", "", "")
        )
        connection.sendall(request.encode("latin-1"))
        answer = connection.makefile("rb").readline()
    return int(answer.split()[1])


def local(server: Server) -> str:
    return f"Host: 127.0.0.1:{server.port}"


def test_a_loopback_connection_is_authorized(server: Server) -> None:
    assert status(server, local(server)) == 200
    assert status(server, f"Host: localhost:{server.port}") == 200


def test_a_loopback_connection_without_the_token_is_refused(server: Server) -> None:
    assert status(server, local(server), "Authorization:") == 401
    other = LocalToken().secret
    assert status(server, local(server), f"Authorization: Bearer {other}") == 401


def own_address() -> str | None:
    """An address of this machine that others reach it by, where it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return None
        address: str = probe.getsockname()[0]
    return None if address.startswith("127.") else address


def test_a_connection_by_another_address_is_refused(server: Server) -> None:
    address = own_address()
    if address is None:
        pytest.skip("this machine has no other address")
    assert status(server, local(server), address=address) == 401


@pytest.mark.parametrize(
    "lines",
    [
        # The server trusts these headers from a proxy on this machine.
        ("X-Forwarded-For: 127.0.0.1",),
        ("X-Forwarded-For: 192.0.2.1, 127.0.0.1",),
        ("x-forwarded-for:127.0.0.1", "X-Forwarded-For: ::1"),
        ("Forwarded: for=127.0.0.1",),
        ("X-Forwarded-Proto: https",),
        ("Via: 1.1 proxy",),
        ("Origin: https://elsewhere.example",),
        ("Sec-Fetch-Site: cross-site",),
        ("Authorization: Bearer x",),
        ("X-API-Key:",),
    ],
)
def test_a_forwarded_connection_is_refused(server: Server, lines: tuple[str, ...]) -> None:
    assert status(server, local(server), *lines) == 401


def test_a_connection_for_another_host_is_refused(server: Server) -> None:
    assert status(server, "Host: rebound.example") == 401
    assert status(server, f"{local(server)}.rebound.example") in {400, 401}
    assert status(server, local(server), "Host: rebound.example") in {400, 401}
    assert status(server, "Host: rebound.example", local(server)) in {400, 401}
    assert status(server) in {400, 401}


def test_an_http_1_0_connection_is_refused(server: Server) -> None:
    assert status(server, local(server), version="1.0") == 401
    assert status(server, version="1.0") == 401


def test_an_exposed_service_without_keys_logs_a_warning(server: Server) -> None:
    (warning,) = (line for line in server.log.read_text().splitlines() if "no_api_keys" in line)
    assert json.loads(warning)["listening_on"] == "0.0.0.0"
    assert json.loads(warning)["level"] == "warning"
