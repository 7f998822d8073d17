"""A transport that sends the head of a response together with the start of its body.

uvicorn writes them apart, and uvloop hands each write to the kernel at once. A process killed in
between leaves a head without a body: a proxy has passed the head on by then, and can no longer ask
another replica.
"""

import asyncio
from typing import Any, final

_END_OF_HEAD = b"\r\n\r\n"
_STATUS_LINE = b"HTTP/1.1 "


@final
class ResponseTransport:
    """Holds the head of a response until the next write, for one step of the event loop at most."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""

    def write(self, data: bytes) -> None:
        """Write data; a head waits for what follows it."""
        if self._head:
            data, self._head = self._head + data, b""
        elif data.startswith(_STATUS_LINE) and data.endswith(_END_OF_HEAD):
            self._head = data
            self._loop.call_soon(self._flush)
            return
        self._transport.write(data)

    def close(self) -> None:
        """Close the connection once everything is written."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self._head = b""
        self._transport.abort()

    def get_write_buffer_size(self) -> int:
        """Return the bytes that the client has not taken."""
        return len(self._head) + self._transport.get_write_buffer_size()

    def __getattr__(self, name: str) -> Any:
        """Return what this class leaves to the transport."""
        return getattr(self._transport, name)

    def _flush(self) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head)
