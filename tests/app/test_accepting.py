"""How fast a process accepts connections while its event loop is busy."""

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager

import uvicorn
import uvloop
from starlette.types import Receive, Scope, Send

from app.connections import LISTENERS, ConnectionLimits, ConnectionPool, bind_protocol
from app.observability.metrics import Metrics
from app.server import DrainingServer
from app.serving.shutdown import ShutdownState
from app.settings import Settings

CONNECTIONS = 200
MOST = 64


async def respond(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError("these tests send no request")


@asynccontextmanager
async def serving(limits: ConnectionLimits) -> AsyncIterator[DrainingServer]:
    has_started = asyncio.Event()
    server = DrainingServer(
        uvicorn.Config(
            respond,
            interface="asgi3",
            http=bind_protocol(ConnectionPool(limits, Metrics())),
            port=0,
            log_config=None,
            lifespan="off",
        ),
        ShutdownState(),
        drain_seconds=0,
        on_start=lambda _: has_started.set(),
    )
    running = asyncio.create_task(server.serve())
    await has_started.wait()
    yield server
    server.should_exit = True
    await running


def connect(server: DrainingServer) -> socket.socket:
    return socket.create_connection(server.servers[0].sockets[0].getsockname())


async def iterate_busily() -> None:
    time.sleep(0.001)
    await asyncio.sleep(0)


async def count_iterations(connections: int) -> int:
    """Count the iterations of the event loop until all of many connections are accepted."""
    limits = ConnectionLimits.from_settings(Settings())
    iterations = 0
    async with serving(limits) as server:
        with ExitStack() as clients:
            for _ in range(connections):
                clients.enter_context(connect(server))
            while len(server.server_state.connections) < connections and iterations < connections:
                iterations += 1
                await iterate_busily()
    return iterations


async def count_descriptors(connections: int) -> list[int]:
    """Count the descriptors of accepted connections after each iteration of the event loop."""
    limits = ConnectionLimits(MOST, MOST, connections, 60, 60, 60)
    counts = []
    async with serving(limits) as server:
        before = len(os.listdir("/proc/self/fd"))
        with ExitStack() as clients:
            for _ in range(connections):
                clients.enter_context(connect(server))
            for _ in range(connections):
                await iterate_busily()
                counts.append(len(os.listdir("/proc/self/fd")) - before - connections)
    return counts


def test_a_busy_process_accepts_many_connections_at_a_time() -> None:
    assert uvloop.run(count_iterations(CONNECTIONS)) < CONNECTIONS / 4


def test_replaced_connections_are_closed_two_iterations_later() -> None:
    counts = uvloop.run(count_descriptors(CONNECTIONS))
    assert MOST < max(counts) <= MOST + 2 * LISTENERS
    assert counts[-1] == MOST
