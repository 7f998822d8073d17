"""The client for programs that do something else while they wait: asyncio."""

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import replace
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar, final

import httpx

from kairos_client.address import POOL, Address
from kairos_client.answers.events import Ingested
from kairos_client.answers.items import Item
from kairos_client.batches import Ingestion
from kairos_client.calls import Call
from kairos_client.exchange import Outcome, Send, Wait, exchange, require_time
from kairos_client.failures import Reply
from kairos_client.operations import health, items, models, recommendations, training_runs, users
from kairos_client.operations.binding import like
from kairos_client.retries import Retries
from kairos_client.told import Event

P = ParamSpec("P")
T = TypeVar("T")


def _awaited(
    operation: Callable[P, Call[T]],
) -> "Callable[Concatenate[AsyncKairosClient, P], Awaitable[T]]":
    """An operation as a method to await."""

    async def method(client: "AsyncKairosClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await client.perform(operation(*args, **kwargs))

    return like(operation, method)


@final
class AsyncKairosClient:
    """Talks to the service from asyncio: all that `KairosClient` does, to be awaited.

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
        """A client of one service; the arguments are those of `KairosClient`."""
        self._address = Address.of(base_url, api_key)
        self._timeout = timeout
        self._retries = retries or Retries()
        self._is_own = http is None
        self._http = http or httpx.AsyncClient(transport=transport, limits=POOL)

    recommend = _awaited(recommendations.recommend)
    rank = _awaited(recommendations.rank)
    sweep = _awaited(recommendations.sweep)
    put_items = _awaited(items.put_items)
    list_items = _awaited(items.list_items)
    read_item = _awaited(items.read_item)
    delete_item = _awaited(items.delete_item)
    list_similar = _awaited(items.list_similar)
    read_popularity = _awaited(items.read_popularity)
    list_users = _awaited(users.list_users)
    read_user = _awaited(users.read_user)
    erase_user = _awaited(users.erase_user)
    read_next_time = _awaited(users.read_next_time)
    recommend_to_user = _awaited(users.recommend_to_user)
    list_models = _awaited(models.list_models)
    describe_model = _awaited(models.describe_model)
    read_map = _awaited(models.read_map)
    activate_model = _awaited(models.activate_model)
    roll_back = _awaited(models.roll_back)
    read_traffic = _awaited(models.read_traffic)
    put_traffic = _awaited(models.put_traffic)
    list_changes = _awaited(models.list_changes)
    list_training_runs = _awaited(training_runs.list_training_runs)
    live = _awaited(health.live)
    ready = _awaited(health.ready)
    metrics = _awaited(health.metrics)
    read_metrics = _awaited(health.read_metrics)
    read_caller = _awaited(health.read_caller)

    async def ingest(self, events: Iterable[Event]) -> Ingested:
        """Keep events, each exactly once, in as many requests as they need.

        If it raises, some may be kept and some not: ingest the same `Event` objects again, and
        those that were count as duplicates.
        """
        ingestion = Ingestion(events)
        for batch in ingestion.batches():
            ingestion.note(batch, await self.perform(batch.call))
        return ingestion.answer()

    async def every_item(self, q: str | None = None) -> AsyncIterator[Item]:
        """All items in order of their ids, fetched a page at a time."""
        cursor: str | None = None
        while True:
            page = await self.list_items(q, cursor=cursor, limit=500)
            for item in page.items:
                yield item
            cursor = page.next_cursor
            if cursor is None:
                return

    def within(self, seconds: float) -> "AsyncKairosClient":
        """This client, less patient: every question ends within so many seconds.

        It sends through the same connections; close only the original.
        """
        hasty = copy.copy(self)
        hasty._retries = replace(self._retries, deadline_seconds=seconds)
        hasty._is_own = False
        return hasty

    async def perform(self, call: Call[T]) -> T:
        """Ask one question, again where that makes sense and is safe."""
        steps = exchange(call, self._retries)
        outcome: Outcome = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as end:
                answer: T = end.value
                return answer
            outcome = await self._take(step)

    async def close(self) -> None:
        """Close the connections."""
        if self._is_own:
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

    async def _take(self, step: Send | Wait) -> Outcome:
        if isinstance(step, Wait):
            await asyncio.sleep(step.seconds)
            return None
        try:
            return await self._ask(step)
        except httpx.RequestError as error:
            return error

    async def _ask(self, send: Send) -> Reply:
        request = self._address.request(self._http, send, self._timeout)
        response = await self._http.send(request, stream=True, follow_redirects=False)
        try:
            content = bytearray()
            async for chunk in response.aiter_bytes():
                content += chunk
                require_time(send, request)
        finally:
            await response.aclose()
        return Reply(response.status_code, response.headers, bytes(content))
