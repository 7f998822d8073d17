"""A response of uvicorn, whose head and body are written apart, on its way to the kernel."""

import asyncio
from typing import cast

import pytest

from app.response_transport import ResponseTransport

pytestmark = pytest.mark.anyio

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"


class Recorder:
    """A transport that records its calls."""

    def __init__(self) -> None:
        self.calls: list[bytes | str] = []
        self.parts: tuple[bytes, ...] = ()

    def write(self, data: bytes) -> None:
        self.calls.append(data)

    def writelines(self, parts: tuple[bytes, ...]) -> None:
        self.parts = parts
        self.calls.append(b"".join(parts))

    def close(self) -> None:
        self.calls.append("close")

    def abort(self) -> None:
        self.calls.append("abort")

    def is_closing(self) -> bool:
        return not {"close", "abort"}.isdisjoint(self.calls)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def transport() -> tuple[ResponseTransport, list[bytes | str]]:
    recorder = Recorder()
    loop = asyncio.get_running_loop()
    return ResponseTransport(cast(asyncio.Transport, recorder), loop), recorder.calls


async def test_head_and_body_are_one_write() -> None:
    joined, calls = await transport()
    for body in (b"a", b""):
        joined.write(HEAD)
        assert calls == []
        joined.write(body)
        assert calls == [HEAD + body]
        calls.clear()
    await asyncio.sleep(0)
    assert calls == []


async def test_further_parts_of_a_body_are_written_at_once() -> None:
    joined, calls = await transport()
    joined.write(HEAD)
    joined.write(b"one")
    joined.write(b"two")
    assert calls == [HEAD + b"one", b"two"]


async def test_a_head_whose_body_comes_later_does_not_wait_for_it() -> None:
    joined, calls = await transport()
    joined.write(HEAD)
    await asyncio.sleep(0)
    assert calls == [HEAD]
    joined.write(b"late")
    assert calls == [HEAD, b"late"]


async def test_a_closed_connection_sends_its_head() -> None:
    joined, calls = await transport()
    joined.write(HEAD)
    joined.close()
    assert calls == [HEAD, "close"]


async def test_a_body_is_not_copied() -> None:
    recorder = Recorder()
    loop = asyncio.get_running_loop()
    joined = ResponseTransport(cast(asyncio.Transport, recorder), loop)
    body = b"the same for all"
    joined.write(HEAD)
    joined.write(body)
    assert recorder.parts[1] is body


async def test_a_continue_is_no_head() -> None:
    joined, calls = await transport()
    joined.write(CONTINUE)
    joined.write(HEAD)
    joined.write(b"body")
    assert calls == [CONTINUE, HEAD + b"body"]


async def test_a_head_is_not_written_to_a_connection_that_has_ended() -> None:
    joined, calls = await transport()
    joined.write(HEAD)
    calls.append("close")
    await asyncio.sleep(0)
    assert calls == ["close"]


async def test_an_aborted_connection_sends_nothing() -> None:
    joined, calls = await transport()
    joined.write(HEAD)
    joined.abort()
    await asyncio.sleep(0)
    assert calls == ["abort"]
