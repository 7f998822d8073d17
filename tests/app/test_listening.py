"""The address of the service, and sockets of several processes that share it."""

import socket
from contextlib import ExitStack

import pytest

from app.listening import AddressError, bind_reserved, require_address, reserve_address


def test_a_reserved_address_accepts_no_connection_yet() -> None:
    with ExitStack() as stack:
        reserved = [stack.enter_context(each) for each in reserve_address("127.0.0.1", 0)]
        address = reserved[0].getsockname()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address)


def test_connections_go_to_the_sockets_that_listen() -> None:
    with ExitStack() as stack:
        reserved = [stack.enter_context(each) for each in reserve_address("127.0.0.1", 0)]
        first, second = (stack.enter_context(bind_reserved(reserved)[0]) for _ in range(2))
        address = reserved[0].getsockname()
        first.listen()
        for _ in range(20):
            stack.enter_context(socket.create_connection(address))
            stack.enter_context(first.accept()[0])
        second.listen()
        first.close()
        stack.enter_context(socket.create_connection(address))
        stack.enter_context(second.accept()[0])


def test_every_address_of_a_host_gets_the_same_port() -> None:
    with ExitStack() as stack:
        reserved = [stack.enter_context(each) for each in reserve_address("", 0)]
        assert len({each.getsockname()[1] for each in reserved}) == 1


@pytest.mark.parametrize("claim", [require_address, reserve_address])
def test_an_address_in_use_is_refused(claim: object) -> None:
    assert callable(claim)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AddressError, match=f"127.0.0.1 port {port} is not"):
            claim("127.0.0.1", port)


@pytest.mark.parametrize("claim", [require_address, reserve_address])
@pytest.mark.parametrize("listens", [False, True])
def test_a_reserved_address_is_in_use(listens: bool, claim: object) -> None:
    assert callable(claim)
    with ExitStack() as stack:
        reserved = [stack.enter_context(each) for each in reserve_address("127.0.0.1", 0)]
        listener = stack.enter_context(bind_reserved(reserved)[0])
        if listens:
            listener.listen()
        with pytest.raises(AddressError):
            claim("127.0.0.1", listener.getsockname()[1])


def test_an_address_with_ending_connections_is_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            server.accept()[0].close()  # the side that closes first keeps the address for a minute
            assert client.recv(1) == b""
    for _ in range(2):
        for each in reserve_address("127.0.0.1", port):
            each.close()
