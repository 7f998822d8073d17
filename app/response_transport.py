"""A transport that sends the head of a response together with the start of its body.

uvicorn writes them apart, and uvloop hands each write to the kernel at once. A process killed
between the two leaves a head without a body: a proxy has passed the head on by then, and can no
longer ask another replica. A body that is larger than the buffer of the socket, or comes in parts,
can still be cut off.
"""

import asyncio
from typing import Any, final

_END_OF_HEAD = b"\r\n\r\n"
_STATUS_LINES = tuple(b"HTTP/1.1 %d" % status for status in (2, 3, 4, 5))
"""Begun by the first digit; nothing follows the head of "100 Continue"."""


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
            head, self._head = self._head, b""
            # One call of the kernel, without a copy: many connections may send one large body.
            self._transport.writelines((head, data))
        elif data.startswith(_STATUS_LINES) and data.endswith(_END_OF_HEAD):
            self._head = data
            self._loop.call_soon(self._flush)
        else:
            self._transport.write(data)

    def close(self) -> None:
        """Close the connection once everything is written."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self._head = b""
        self._transport.abort()

    def __getattr__(self, name: str) -> Any:
        """Return what this class leaves to the transport."""
        return getattr(self._transport, name)

    def _flush(self) -> None:
        if self._head and not self._transport.is_closing():
            self._transport.write(self._head)
        self._head = b""
