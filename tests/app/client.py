"""A client that sends HTTP requests to an application in this process, and common requests."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from anyio.from_thread import BlockingPortal, start_blocking_portal
from fastapi import FastAPI

from app.http.problems import Problem
from app.main import create_app
from app.settings import Settings
from tests.app import tiny_bundle

ADDRESS = "http://localhost"
REQUEST = {"history": [{"item_id": "i1", "timestamp": tiny_bundle.FIRST_AT // 1_000_000}], "n": 3}
"""A request for recommendations that needs no database."""


class Client:
    """Sends requests to an application that runs on an event loop of its own."""

    def __init__(self, app: FastAPI, portal: BlockingPortal) -> None:
        self.app = app
        self.portal = portal

    @property
    def token(self) -> str:
        """The local token of the application, which takes the place of a key."""
        return str(self.app.state.context.local_token.secret)

    def request(self, method: str, path: str, **content: Any) -> httpx.Response:
        """Send a request, with the local token unless it has a key of its own."""
        headers = httpx.Headers(content.pop("headers", None))
        if not {"authorization", "x-api-key"} & headers.keys():
            headers["Authorization"] = f"Bearer {self.token}"
        return self.request_without_token(method, path, headers=headers, **content)

    def request_without_token(self, method: str, path: str, **content: Any) -> httpx.Response:
        """Send a request as it is."""

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
        """The value of one metric; 0 before its first change."""
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


def recommend(client: Client) -> dict[str, Any]:
    response = client.post("/v1/recommendations", REQUEST)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def problem(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The problem document of a response, checked for its form."""
    assert response.status_code == status, response.text
    assert response.headers["Content-Type"] == "application/problem+json"
    document: dict[str, Any] = response.json()
    Problem.model_validate_json(response.content)
    assert document["code"] == code
    assert document["type"] == f"urn:kairos:problem:{code}"
    assert document["status"] == status
    assert document["request_id"] == response.headers["X-Request-ID"]
    assert not document["detail"].endswith(".")
    return document
