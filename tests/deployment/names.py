"""A name server for one name, as a container engine runs for the replicas of a service."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_HEADER = struct.Struct("!6H")
_ANSWERED = 0x8180
_IPV4, _INTERNET = 1, 1
_POINTER_TO_THE_QUESTION = 0xC00C
_LIVES_SECONDS = 1


@dataclass
class Names:
    """Answers every question for an IPv4 address with the addresses it was given.

    Attributes:
        addresses: may be changed while it runs: replicas come and go.
    """

    port: int
    addresses: list[str] = field(default_factory=list)

    def answer(self, question: bytes) -> bytes:
        """The answer to one datagram."""
        (number, *_) = _HEADER.unpack_from(question)
        end = question.index(b"\0", _HEADER.size) + 5
        kind, _ = struct.unpack_from("!2H", question, end - 4)
        # Read once: another thread may change it.
        addresses = list(self.addresses) if kind == _IPV4 else []
        records = b"".join(
            struct.pack("!3HIH", _POINTER_TO_THE_QUESTION, _IPV4, _INTERNET, _LIVES_SECONDS, 4)
            + socket.inet_aton(address)
            for address in addresses
        )
        header = _HEADER.pack(number, _ANSWERED, 1, len(addresses), 0, 0)
        return header + question[_HEADER.size : end] + records


@contextmanager
def name_server(*addresses: str) -> Iterator[Names]:
    """A name server on this machine, for as long as the block."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
        wire.bind(("127.0.0.1", 0))
        wire.settimeout(0.1)
        names = Names(wire.getsockname()[1], list(addresses))
        stopping = threading.Event()

        def serve() -> None:
            while not stopping.is_set():
                try:
                    question, asker = wire.recvfrom(512)
                except TimeoutError:
                    continue
                wire.sendto(names.answer(question), asker)

        serving = threading.Thread(target=serve)
        serving.start()
        try:
            yield names
        finally:
            stopping.set()
            serving.join()
