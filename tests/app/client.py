"""A client that talks HTTP to an application in this process."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from anyio.from_thread import BlockingPortal, start_blocking_portal
from fastapi import FastAPI

from app.main import create_app
from app.settings import Settings

ADDRESS = "http://localhost"


class Client:
    """Sends requests to an application that runs on an event loop of its own."""

    def __init__(self, app: FastAPI, portal: BlockingPortal) -> None:
        self.app = app
        self.portal = portal

    def request(self, method: str, path: str, **content: Any) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://localhost"
            ) as client:
                return await client.request(method, path, **content)

        return self.portal.call(send)

    def get(self, path: str, **content: Any) -> httpx.Response:
        return self.request("GET", path, **content)

    def post(self, path: str, json: object = None, **content: Any) -> httpx.Response:
        return self.request("POST", path, json=json, **content)

    def put(self, path: str, json: object = None, **content: Any) -> httpx.Response:
        return self.request("PUT", path, json=json, **content)

    def metric(self, name: str, **labels: str) -> float:
        """The value of one metric; 0 before it was first touched."""
        registry = self.app.state.context.metrics.registry
        return float(registry.get_sample_value(name, labels) or 0.0)


@contextmanager
def running(settings: Settings) -> Iterator[Client]:
    """A service that has started, and is shut down at the end."""
    app = create_app(settings)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(app.router.lifespan_context(app)),
    ):
        yield Client(app, portal)
