"""The two clients: `KairosClient` blocks, `AsyncKairosClient` is awaited."""

import asyncio
import copy
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import Self, TypeVar, final

import httpx

from kairos_client.batching import Ingestion
from kairos_client.calls import Call
from kairos_client.credentials import find_key, read_local_token
from kairos_client.errors import InvalidError
from kairos_client.models import Event
from kairos_client.operations import Operations
from kairos_client.responses.events import Ingested
from kairos_client.responses.items import Item
from kairos_client.retrying import (
    Outcome,
    RawResponse,
    Retries,
    Send,
    Wait,
    attempt_call,
    require_time,
)

T = TypeVar("T")

_PAGE_ITEMS = 500
# The service closes idle connections after 5 seconds. A request on a connection that is just being
# closed is lost, possibly after it was read, so the client closes idle connections earlier.
_POOL = httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=2.0)


@final
class KairosClient(Operations):
    """Synchronous client; threads may share it.

    Example:
        >>> with KairosClient("http://127.0.0.1:8000") as kairos:  # doctest: +SKIP
        ...     best = kairos.recommend("u1", n=3).items

    Every operation raises a subclass of `KairosError`.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        timeout: float = 10.0,
        retries: Retries | None = None,
        http: httpx.Client | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Create a client of one service.

        Args:
            base_url: such as `http://127.0.0.1:8000`; may have a path, behind a proxy.
            api_key: by default the environment variable KAIROS_API_KEY, or the content of the file
                that KAIROS_API_KEY_FILE names. Without either, the local token of a service that
                the same user runs on this machine.
            timeout: seconds that one attempt waits for the network at a time.
            retries: the retry policy.
            http: an httpx client to send with, which `close` leaves open.
            transport: the httpx transport to send with; ignored if `http` is given.

        Raises:
            InvalidError: if an argument is out of its range.
        """
        self._service = _Service.create(base_url, api_key)
        self._timeout = timeout
        self._retries = retries or Retries()
        self._owns_http = http is None
        self._http = http or httpx.Client(transport=transport, limits=_POOL)

    def ingest(self, events: Iterable[Event]) -> Ingested:
        """Store events exactly once, in as many requests as they need.

        If it raises, some events may be stored: ingest the same `Event` objects again, and those
        that were stored count as duplicates.
        """
        ingestion = Ingestion(events)
        for batch in ingestion.build_batches():
            ingestion.add_response(batch, self.perform(batch.call))
        return ingestion.combine_results()

    def iter_items(self, q: str | None = None) -> Iterator[Item]:
        """Yield the items of all pages of `list_items`, ordered by id."""
        cursor: str | None = None
        while True:
            page = self.list_items(q, cursor=cursor, limit=_PAGE_ITEMS)
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def with_timeout(self, seconds: float) -> "KairosClient":
        """Copy this client; the calls of the copy end within so many seconds.

        The copy shares the connections; close only the original.
        """
        client = copy.copy(self)
        client._retries = replace(self._retries, deadline_seconds=seconds)
        client._owns_http = False
        return client

    def perform(self, call: Call[T]) -> T:
        """Send a call, retry it as its idempotency allows, and return its result."""
        steps = attempt_call(call, self._retries)
        outcome: Outcome = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            outcome = self._execute(step)

    def close(self) -> None:
        """Close the connections."""
        if self._owns_http:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _execute(self, step: Send | Wait) -> Outcome:
        if isinstance(step, Wait):
            time.sleep(step.seconds)
            return None
        try:
            return self._send(step)
        except httpx.RequestError as error:
            return error

    def _send(self, send: Send) -> RawResponse:
        request = self._service.build_request(self._http, send, self._timeout)
        response = self._http.send(request, stream=True, follow_redirects=False)
        try:
            content = bytearray()
            for chunk in response.iter_bytes():
                content += chunk
                require_time(send, request)
        finally:
            response.close()
        return RawResponse(response.status_code, response.headers, bytes(content))


@final
class AsyncKairosClient(Operations):
    """Client for asyncio: the operations of `KairosClient` as coroutines; tasks may share it.

    Example:
        >>> async with AsyncKairosClient("http://127.0.0.1:8000") as kairos:  # doctest: +SKIP
        ...     best = (await kairos.recommend("u1", n=3)).items
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        timeout: float = 10.0,
        retries: Retries | None = None,
        http: httpx.AsyncClient | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Create a client of one service; the arguments are those of `KairosClient`."""
        self._service = _Service.create(base_url, api_key)
        self._timeout = timeout
        self._retries = retries or Retries()
        self._owns_http = http is None
        self._http = http or httpx.AsyncClient(transport=transport, limits=_POOL)

    async def ingest(self, events: Iterable[Event]) -> Ingested:
        """Store events exactly once, in as many requests as they need.

        If it raises, some events may be stored: ingest the same `Event` objects again, and those
        that were stored count as duplicates.
        """
        ingestion = Ingestion(events)
        for batch in ingestion.build_batches():
            ingestion.add_response(batch, await self.perform(batch.call))
        return ingestion.combine_results()

    async def iter_items(self, q: str | None = None) -> AsyncIterator[Item]:
        """Yield the items of all pages of `list_items`, ordered by id."""
        cursor: str | None = None
        while True:
            page = await self.list_items(q, cursor=cursor, limit=_PAGE_ITEMS)
            for item in page.items:
                yield item
            cursor = page.next_cursor
            if cursor is None:
                return

    def with_timeout(self, seconds: float) -> "AsyncKairosClient":
        """Copy this client; the calls of the copy end within so many seconds.

        The copy shares the connections; close only the original.
        """
        client = copy.copy(self)
        client._retries = replace(self._retries, deadline_seconds=seconds)
        client._owns_http = False
        return client

    async def perform(self, call: Call[T]) -> T:
        """Send a call, retry it as its idempotency allows, and return its result."""
        steps = attempt_call(call, self._retries)
        outcome: Outcome = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            outcome = await self._execute(step)

    async def close(self) -> None:
        """Close the connections."""
        if self._owns_http:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _execute(self, step: Send | Wait) -> Outcome:
        if isinstance(step, Wait):
            await asyncio.sleep(step.seconds)
            return None
        try:
            return await self._send(step)
        except httpx.RequestError as error:
            return error

    async def _send(self, send: Send) -> RawResponse:
        request = self._service.build_request(self._http, send, self._timeout)
        response = await self._http.send(request, stream=True, follow_redirects=False)
        try:
            content = bytearray()
            async for chunk in response.aiter_bytes():
                content += chunk
                require_time(send, request)
        finally:
            await response.aclose()
        return RawResponse(response.status_code, response.headers, bytes(content))


@dataclass(frozen=True, slots=True)
class _Service:
    """The base URL of a service, and the headers of every request."""

    base_url: str
    headers: dict[str, str] = field(repr=False)
    """Not part of `repr`, because it contains the API key."""

    @classmethod
    def create(cls, base_url: str, api_key: str | None) -> "_Service":
        """Validate the arguments; the default key is that of the environment.

        Raises:
            InvalidError: if the URL is not an HTTP base URL, or there is something wrong with the
                key.
        """
        url = _parse_url(base_url)
        if (
            url is None
            or url.scheme not in {"http", "https"}
            or not url.host
            or url.query
            or url.fragment
        ):
            raise InvalidError(
                f"a base URL is http or https and a host, with a path at most, but got "
                f"{base_url!r}; write it like http://127.0.0.1:8000",
                code="base_url",
            )
        headers = {"Accept": "application/json", "User-Agent": f"kairos-client/{_read_version()}"}
        key = find_key(api_key)
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        return cls(base_url.rstrip("/"), headers)

    def build_request(
        self, http: httpx.Client | httpx.AsyncClient, send: Send, timeout: float
    ) -> httpx.Request:
        """Build the request of a step; its network timeout ends at the deadline at the latest."""
        call = send.call
        content_type = {} if call.content is None else {"Content-Type": "application/json"}
        return http.build_request(
            call.method,
            self.base_url + call.path,
            content=call.content,
            headers=self.headers | content_type | self._build_local_authorization(),
            timeout=max(0.001, min(timeout, send.deadline - time.monotonic())),
        )

    def _build_local_authorization(self) -> dict[str, str]:
        """Build the header with the local token, which changes when the service starts again."""
        if "Authorization" in self.headers:
            return {}
        token = read_local_token(self.base_url)
        return {} if token is None else {"Authorization": f"Bearer {token}"}


def _parse_url(text: str) -> httpx.URL | None:
    try:
        return httpx.URL(text)
    except httpx.InvalidURL:
        return None


def _read_version() -> str:
    try:
        return version("kairos")
    except PackageNotFoundError:
        return "unknown"
