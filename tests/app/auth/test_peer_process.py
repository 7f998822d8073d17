"""Which user's program is at the other end of a connection."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.auth.peer_process import is_process_of_this_user

pytestmark = pytest.mark.skipif(
    not Path("/proc/net/tcp").exists(), reason="only Linux keeps a table of sockets"
)
STRANGER = 65_534


@pytest.fixture(params=["127.0.0.1", "::1", "::"])
def listener(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    """A socket that listens on the loopback interface, of each family and of both."""
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    try:
        listening = socket.create_server(
            (request.param, 0), family=family, dualstack_ipv6=request.param == "::"
        )
    except (OSError, ValueError):
        pytest.skip("this machine has no IPv6")
    with listening:
        yield listening


def find_ends(accepted: socket.socket) -> tuple[tuple[str, int], tuple[str, int]]:
    """Find the addresses and ports of the client and of the server."""
    return accepted.getpeername()[:2], accepted.getsockname()[:2]


def test_a_connection_of_this_process_is_of_this_user(listener: socket.socket) -> None:
    host, port = listener.getsockname()[:2]
    for address in {"127.0.0.1", "::1"} if host == "::" else {host}:
        with socket.create_connection((address, port)), listener.accept()[0] as accepted:
            assert is_process_of_this_user(*find_ends(accepted))


def test_an_unknown_connection_is_of_nobody() -> None:
    assert not is_process_of_this_user(("127.0.0.1", 1), ("127.0.0.1", 2))
    assert not is_process_of_this_user(("::1", 1), ("::1", 2))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_a_connection_of_another_user_is_not_of_this_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        os.seteuid(STRANGER)
        client = socket.create_connection(listener.getsockname())
        os.seteuid(0)
        with client, listener.accept()[0] as accepted:
            assert not is_process_of_this_user(*find_ends(accepted))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_users_may_share_a_port_to_different_servers() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_server(("127.0.0.1", 0)) as elsewhere,
        socket.socket() as own,
    ):
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        own.bind(("127.0.0.1", 0))
        own.connect(elsewhere.getsockname())
        os.seteuid(STRANGER)
        stranger = socket.socket()
        os.seteuid(0)
        with stranger:
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            stranger.bind(own.getsockname())
            stranger.connect(listener.getsockname())
            with listener.accept()[0] as accepted, elsewhere.accept()[0] as of_own:
                assert accepted.getpeername() == of_own.getpeername()
                assert not is_process_of_this_user(*find_ends(accepted))
                assert is_process_of_this_user(*find_ends(of_own))
