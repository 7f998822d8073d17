"""A response of uvicorn, whose head and body are written apart, on its way to the kernel."""

import asyncio
from typing import cast

import pytest

from app.response_transport import ResponseTransport

pytestmark = pytest.mark.anyio

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"


class Recorder:
    """A transport that records its calls."""

    def __init__(self) -> None:
        self.calls: list[bytes | str] = []

    def write(self, data: bytes) -> None:
        self.calls.append(data)

    def close(self) -> None:
        self.calls.append("close")

    def abort(self) -> None:
        self.calls.append("abort")

    def get_write_buffer_size(self) -> int:
        return 0


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def transport() -> tuple[ResponseTransport, list[bytes | str]]:
    recorder = Recorder()
    loop = asyncio.get_running_loop()
    return ResponseTransport(cast(asyncio.Transport, recorder), loop), recorder.calls


async def test_head_and_body_are_one_write() -> None:
    whole, calls = await transport()
    for body in (b"a", b""):
        whole.write(HEAD)
        assert calls == []
        assert whole.get_write_buffer_size() == len(HEAD)
        whole.write(body)
        assert calls == [HEAD + body]
        assert whole.get_write_buffer_size() == 0
        calls.clear()
    await asyncio.sleep(0)
    assert calls == []


async def test_further_parts_of_a_body_are_written_at_once() -> None:
    whole, calls = await transport()
    whole.write(HEAD)
    whole.write(b"one")
    whole.write(b"two")
    assert calls == [HEAD + b"one", b"two"]


async def test_a_head_whose_body_comes_later_does_not_wait_for_it() -> None:
    whole, calls = await transport()
    whole.write(HEAD)
    await asyncio.sleep(0)
    assert calls == [HEAD]
    whole.write(b"late")
    assert calls == [HEAD, b"late"]


async def test_a_closed_connection_sends_its_head() -> None:
    whole, calls = await transport()
    whole.write(HEAD)
    whole.close()
    assert calls == [HEAD, "close"]


async def test_an_aborted_connection_sends_nothing() -> None:
    whole, calls = await transport()
    whole.write(HEAD)
    whole.abort()
    await asyncio.sleep(0)
    assert calls == ["abort"]
