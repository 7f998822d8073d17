"""R5, below HTTP: malformed bytes are refused, and their content is not logged."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes import Server, processes

MARKER = b"nobody-may-read-this"
LOCAL = b" HTTP/1.1\r\nHost: localhost\r\n"
JSON = LOCAL + b"Content-Type: application/json\r\n"
NOT_HTTP = {
    "a TLS handshake": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc" + MARKER + b"\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a proxied connection": b"CONNECT localhost:80" + LOCAL + b"\r\n",
    "a method in lower case": b"get /v1/items" + LOCAL + b"\r\n",
    "a path with a space": b"GET /v1/items/a " + MARKER + LOCAL + b"\r\n",
    "a path with a NUL": b"GET /v1/items/\x00" + MARKER + LOCAL + b"\r\n",
    "a path of Latin 1": b"GET /v1/items/\xff" + MARKER + LOCAL + b"\r\n",
    "a path of plain UTF-8": "GET /v1/items/é".encode() + MARKER + LOCAL + b"\r\n",
    "a query of Latin 1": b"GET /v1/items?q=\xff" + MARKER + LOCAL + b"\r\n",
    "a path beyond 64 KiB": b"GET /v1/items/" + b"x" * 100_000 + LOCAL + b"\r\n",
    "a header with a NUL": b"GET /v1/items" + LOCAL + b"X-A: \x00" + MARKER + b"\r\n\r\n",
    "a header on two lines": b"GET /v1/items" + LOCAL + b"X-A: a\r\n " + MARKER + b"\r\n\r\n",
    "two lengths": b"POST /v1/events" + JSON + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "a negative length": b"POST /v1/events" + JSON + b"Content-Length: -2\r\n\r\n{}",
    "a length and chunks": b"POST /v1/events"
    + JSON
    + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a chunk of no length": b"POST /v1/events"
    + JSON
    + b"Transfer-Encoding: chunked\r\n\r\n"
    + MARKER
    + b"\r\n\r\n",
}
ODD_HTTP = {
    "an invalid escape": (b"GET /v1/items/%zz" + MARKER + LOCAL, 404),
    "an escape that is not UTF-8": (b"GET /v1/users/%ff" + MARKER + LOCAL, 422),
    "a fragment": (b"GET /v1/items#" + MARKER + LOCAL, 200),
    "a whole URL": (b"GET http://localhost/v1/items" + LOCAL, 200),
    "no host": (b"GET /health/live HTTP/1.1\r\n", 200),
    "an old protocol": (b"GET /health/live HTTP/1.0\r\n", 200),
    "OPTIONS *": (b"OPTIONS *" + LOCAL, 404),
    "a preflight of another origin": (
        b"OPTIONS /v1/items" + LOCAL + b"Origin: http://evil\r\n",
        405,
    ),
    "a WebSocket": (
        b"GET /v1/users/"
        + MARKER
        + LOCAL
        + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        + b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
        200,
    ),
    "a key of Latin 1": (b"GET /v1/items" + LOCAL + b"X-API-Key: \xff" + MARKER + b"\r\n", 401),
    "5000 headers": (
        b"GET /v1/items" + LOCAL + b"".join(b"X-%d: 1\r\n" % n for n in range(5000)),
        200,
    ),
}


@pytest.fixture(scope="module")
def server(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with processes(tmp_path_factory.mktemp("wire"), published) as start:
        yield start()


@pytest.mark.parametrize("sent", NOT_HTTP.values(), ids=NOT_HTTP.keys())
def test_malformed_http_is_refused(server: Server, sent: bytes) -> None:
    answer = exchange(server, sent)
    # The parser accepts a chunk without a length; the application refuses it.
    assert answer.startswith(b"HTTP/1.1 400 "), answer[:200]
    assert MARKER not in server.log.read_bytes()


@pytest.mark.parametrize(("sent", "status"), ODD_HTTP.values(), ids=ODD_HTTP.keys())
def test_unusual_http_is_answered(server: Server, sent: bytes, status: int) -> None:
    own = b"" if b"X-API-Key" in sent else authorization(server)
    answer = exchange(server, sent + own + b"Connection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer[:200]
    assert MARKER not in server.log.read_bytes()


def test_head_has_the_headers_of_get_and_no_body(server: Server) -> None:
    get, head = (
        exchange(
            server,
            method + b" /v1/models" + LOCAL + authorization(server) + b"Connection: close\r\n\r\n",
        )
        for method in (b"GET", b"HEAD")
    )
    (of_get, body), (of_head, no_body) = (one.split(b"\r\n\r\n", 1) for one in (get, head))
    assert b"content-length: %d" % len(body) in of_get
    assert b"content-length: %d" % len(body) in of_head
    assert no_body == b""


def test_the_server_is_ready_and_logged_no_error(server: Server) -> None:
    assert server.is_ready()
    levels = {json.loads(line)["level"] for line in server.log.read_text().splitlines()}
    assert levels <= {"info", "warning"}


def authorization(server: Server) -> bytes:
    """The header with the server's local token."""
    return b"Authorization: Bearer " + server.token.encode() + b"\r\n"


def exchange(server: Server, sent: bytes) -> bytes:
    """Send bytes on a new connection, and read until the server closes it."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(sent)
        answer = b""
        while received := connection.recv(65536):
            answer += received
    return answer
