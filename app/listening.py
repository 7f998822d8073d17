"""The address that the service listens on, checked before anything is opened."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from model.errors import KairosError


class AddressError(KairosError):
    """The service cannot listen on its address."""

    code = "address"


def require_address(host: str, port: int) -> None:
    """Require an address that is free to listen on, before anything is opened.

    Raises:
        AddressError: if there is no such address on this machine, or another process listens on it.
    """
    with _describe_failure(host, port):
        family, kind, protocol, _, address = _resolve(host, port)[0]
        with socket.socket(family, kind, protocol) as attempt:
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            attempt.bind(address)


def reserve_address(host: str, port: int) -> list[socket.socket]:
    """Bind a socket to each address of a host, for processes that share them; none listens yet.

    uvicorn's `Config.bind_socket` binds the first address only, and exits if that fails.

    Args:
        port: 0 takes any free one, the same for all addresses.

    Raises:
        AddressError: if there is no such address on this machine, or another process listens on it.
    """
    require_address(host, port)
    reserved: list[socket.socket] = []
    with _describe_failure(host, port):
        for family, kind, protocol, _, address in _resolve(host, port):
            taken = port or (reserved[0].getsockname()[1] if reserved else 0)
            full_address = (address[0], taken, *address[2:])
            try:
                # So that others find the address in use although nothing listens on it yet.
                bound = _bind_shared(family, kind, protocol, full_address, may_reuse=False)
            except OSError:
                # Connections of an earlier process may be about to end.
                bound = _bind_shared(family, kind, protocol, full_address)
            reserved.append(bound)
    return reserved


def bind_reserved(reserved: list[socket.socket]) -> list[socket.socket]:
    """Bind one more socket to each reserved address, for one process.

    Of the sockets that listen on an address the kernel gives each about as many new connections. If
    its process ends, the others get them.
    """
    return [
        _bind_shared(each.family, each.type, each.proto, each.getsockname()) for each in reserved
    ]


def _bind_shared(
    family: int, kind: int, protocol: int, address: tuple[object, ...], *, may_reuse: bool = True
) -> socket.socket:
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, may_reuse)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            # Otherwise it takes the IPv4 address as well, which has a socket of its own.
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


_Resolved = list[tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[str, int]]]


def _resolve(host: str, port: int) -> _Resolved:
    # An empty host stands for every address of the machine.
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys(found))  # type: ignore[arg-type]


@contextmanager
def _describe_failure(host: str, port: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise AddressError(
            f"the service listens on an address of this machine that is free, but {host} port "
            f"{port} is not: {error.strerror}; stop the process that listens there, or set "
            "KAIROS_HOST and KAIROS_PORT"
        ) from error
