"""One interface to both clients, so that each test covers both."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from anyio.from_thread import BlockingPortal, start_blocking_portal

from kairos_client import AsyncKairosClient, KairosClient, Retries
from kairos_client.responses.items import Item
from tests.app.client import Client

FAST_RETRIES = Retries(first_wait_seconds=0.01, longest_wait_seconds=1.2, deadline_seconds=20)


class EitherClient:
    """A synchronous interface to `KairosClient` or `AsyncKairosClient`."""

    def __init__(
        self, client: KairosClient | AsyncKairosClient, portal: BlockingPortal | None
    ) -> None:
        self.client = client
        self._portal = portal

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        method = getattr(self.client, operation)
        if self._portal is None:
            return method  # type: ignore[no-any-return]
        portal = self._portal

        def call_in_loop(*args: object, **kwargs: object) -> Any:
            return portal.call(functools.partial(method, *args, **kwargs))

        return call_in_loop

    def iter_items(self, q: str) -> list[Item]:
        if isinstance(self.client, KairosClient):
            return [*self.client.iter_items(q)]
        client = self.client

        async def collect() -> list[Item]:
            return [item async for item in client.iter_items(q)]

        assert self._portal is not None
        return self._portal.call(collect)

    def with_timeout(self, seconds: float) -> "EitherClient":
        return EitherClient(self.client.with_timeout(seconds), self._portal)


class PortalTransport(httpx.BaseTransport):
    """Sends requests of a synchronous client to an application on its event loop."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = self._client.request(
            request.method, str(request.url), content=request.read(), headers=request.headers
        )
        return httpx.Response(
            response.status_code, headers=response.headers, content=response.content
        )


@contextmanager
def open_client(
    kind: str,
    url: str,
    *,
    application: Client | None = None,
    retries: Retries = FAST_RETRIES,
    timeout: float = 10,
    api_key: str | None = None,
) -> Iterator[EitherClient]:
    """Opens a "sync" or "async" client of a URL, or of an application in this process.

    Without a key it has the local token of the application.
    """
    if application is not None and api_key is None:
        api_key = application.token
    if kind == "sync":
        sync_transport = None if application is None else PortalTransport(application)
        with KairosClient(
            url, retries=retries, timeout=timeout, api_key=api_key, transport=sync_transport
        ) as client:
            yield EitherClient(client, None)
        return
    with start_blocking_portal() as own_portal:
        # The application's resources belong to the event loop that started it.
        portal = own_portal if application is None else application.portal
        transport = None if application is None else httpx.ASGITransport(application.app)
        async_client = AsyncKairosClient(
            url, retries=retries, timeout=timeout, api_key=api_key, transport=transport
        )
        try:
            yield EitherClient(async_client, portal)
        finally:
            portal.call(async_client.close)
