"""Reads of an object store whose responses arrive in pieces, or not to their end."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import sleep

import pytest

from model.store.objects import ObjectStorage

CONTENT = b"20260101T000000Z-abcdef012345\n"


@contextmanager
def serving(*pieces: bytes, length: int | None = len(CONTENT)) -> Iterator[str]:
    """Answer every read with these pieces, one after another; yield the URL.

    Without a length they are chunks, as a proxy sends them.
    """

    def wrap(piece: bytes) -> bytes:
        return f"{len(piece):x}\r\n".encode() + piece + b"\r\n"

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1" if length is None else "HTTP/1.0"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("ETag", '"a"')
            if length is None:
                self.send_header("Transfer-Encoding", "chunked")
            else:
                self.send_header("Content-Length", str(length))
            self.end_headers()
            for piece in pieces if length is not None else (*pieces, b""):
                self.wfile.write(piece if length is not None else wrap(piece))
                self.wfile.flush()
                sleep(0.1)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "tests")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


def test_an_object_in_pieces_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(CONTENT[:10], CONTENT[10:20], CONTENT[20:]) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        stored = ObjectStorage("s3://bucket/prefix").read("CURRENT")
    assert stored is not None
    assert stored.content == CONTENT


def test_an_object_of_unknown_length_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(CONTENT[:10], CONTENT[10:], length=None) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        stored = ObjectStorage("s3://bucket/prefix").read("CURRENT")
    assert stored is not None
    assert stored.content == CONTENT


def test_an_object_cut_short_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(CONTENT[:10]) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        with pytest.raises(OSError, match=r"ended after|does not answer"):
            ObjectStorage("s3://bucket/prefix").read("CURRENT")


def test_an_empty_object_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(length=0) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        stored = ObjectStorage("s3://bucket/prefix").read("CURRENT")
    assert stored is not None
    assert stored.content == b""
