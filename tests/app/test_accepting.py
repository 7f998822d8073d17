"""How fast a process accepts connections while its event loop is busy."""

import asyncio
import socket
import time
from contextlib import ExitStack

import uvicorn
import uvloop
from starlette.types import Receive, Scope, Send

from app.connections import ConnectionLimits, ConnectionPool, bind_protocol
from app.observability.metrics import Metrics
from app.server import DrainingServer
from app.serving.shutdown import ShutdownState
from app.settings import Settings

CONNECTIONS = 200


async def respond(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError("these tests send no request")


async def count_iterations(connections: int) -> int:
    """Count the iterations of the event loop until all of many connections are accepted."""
    pool = ConnectionPool(ConnectionLimits.from_settings(Settings()), Metrics())
    ports: list[int] = []
    server = DrainingServer(
        uvicorn.Config(
            respond,
            interface="asgi3",
            http=bind_protocol(pool),
            port=0,
            log_config=None,
            lifespan="off",
        ),
        ShutdownState(),
        drain_seconds=0,
        on_start=ports.append,
    )
    serving = asyncio.create_task(server.serve())
    while not ports:
        await asyncio.sleep(0)
    iterations = 0
    with ExitStack() as clients:
        for _ in range(connections):
            clients.enter_context(socket.create_connection(("127.0.0.1", ports[0])))
        while len(server.server_state.connections) < connections and iterations < connections:
            iterations += 1
            time.sleep(0.001)
            await asyncio.sleep(0)
    server.should_exit = True
    await serving
    return iterations


def test_a_busy_process_accepts_many_connections_at_a_time() -> None:
    assert uvloop.run(count_iterations(CONNECTIONS)) < CONNECTIONS / 4
