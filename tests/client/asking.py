"""Either client as one that answers, so that a test of one is a test of both."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from anyio.from_thread import BlockingPortal, start_blocking_portal

from kairos_client import AsyncKairosClient, KairosClient, Retries
from kairos_client.answers.items import Item
from tests.app.client import Client

IMPATIENT = Retries(first_wait_seconds=0.01, longest_wait_seconds=1.2, deadline_seconds=20)


class Asking:
    """A client whose every operation answers, whichever client it is."""

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

        def waiting(*args: object, **kwargs: object) -> Any:
            return portal.call(functools.partial(method, *args, **kwargs))

        return waiting

    def every_item(self, q: str) -> list[Item]:
        if isinstance(self.client, KairosClient):
            return [*self.client.every_item(q)]
        client = self.client

        async def collect() -> list[Item]:
            return [item async for item in client.every_item(q)]

        assert self._portal is not None
        return self._portal.call(collect)

    def within(self, seconds: float) -> "Asking":
        return Asking(self.client.within(seconds), self._portal)


class IntoTheLoop(httpx.BaseTransport):
    """Carries requests from a thread that waits to the application on its event loop."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._client.request(
            request.method, str(request.url), content=request.read(), headers=request.headers
        )
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


@contextmanager
def asking(
    which: str,
    url: str,
    *,
    inside: Client | None = None,
    retries: Retries = IMPATIENT,
    timeout: float = 10,
    api_key: str | None = None,
) -> Iterator[Asking]:
    """The client of this name, through a socket, or right into an application."""
    if which == "blocking":
        through = None if inside is None else IntoTheLoop(inside)
        with KairosClient(
            url, retries=retries, timeout=timeout, api_key=api_key, transport=through
        ) as client:
            yield Asking(client, None)
        return
    with start_blocking_portal() as own:
        # Whatever the application holds belongs to the loop it was started on.
        portal = own if inside is None else inside.portal
        within = None if inside is None else httpx.ASGITransport(inside.app)
        awaiting = AsyncKairosClient(
            url, retries=retries, timeout=timeout, api_key=api_key, transport=within
        )
        try:
            yield Asking(awaiting, portal)
        finally:
            portal.call(awaiting.close)
