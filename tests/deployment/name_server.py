"""A DNS server for one name, as a container engine runs it for the replicas of a service."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_HEADER = struct.Struct("!6H")
_RESPONSE_FLAGS = 0x8180
_TYPE_A, _CLASS_IN = 1, 1
_POINTER_TO_QUESTION = 0xC00C
_TTL_SECONDS = 1


@dataclass
class NameServer:
    """Answers every query of type A with the same addresses, whatever the name.

    Attributes:
        addresses: may be changed while the server runs, as replicas start and stop.
    """

    port: int
    addresses: list[str] = field(default_factory=list)

    def respond(self, query: bytes) -> bytes:
        """The response to one datagram."""
        (query_id, *_) = _HEADER.unpack_from(query)
        end = query.index(b"\0", _HEADER.size) + 5
        query_type, _ = struct.unpack_from("!2H", query, end - 4)
        # A copy, because another thread may change the list.
        addresses = list(self.addresses) if query_type == _TYPE_A else []
        records = b"".join(
            struct.pack("!3HIH", _POINTER_TO_QUESTION, _TYPE_A, _CLASS_IN, _TTL_SECONDS, 4)
            + socket.inet_aton(address)
            for address in addresses
        )
        header = _HEADER.pack(query_id, _RESPONSE_FLAGS, 1, len(addresses), 0, 0)
        return header + query[_HEADER.size : end] + records


@contextmanager
def run_name_server(*addresses: str) -> Iterator[NameServer]:
    """Runs a name server on this machine for the duration of the block."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        udp.settimeout(0.1)
        server = NameServer(udp.getsockname()[1], list(addresses))
        stopping = threading.Event()

        def serve() -> None:
            while not stopping.is_set():
                try:
                    query, client = udp.recvfrom(512)
                except TimeoutError:
                    continue
                udp.sendto(server.respond(query), client)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server
        finally:
            stopping.set()
            thread.join()
