"""The client for programs that wait for their answers."""

import copy
import time
from collections.abc import Callable, Iterable, Iterator
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


def _waiting(
    operation: Callable[P, Call[T]],
) -> "Callable[Concatenate[KairosClient, P], T]":
    """An operation as a method that answers."""

    def method(client: "KairosClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return client.perform(operation(*args, **kwargs))

    return like(operation, method)


@final
class KairosClient:
    """Talks to the service and waits for its answers; safe to share between threads.

    Example:
        >>> with KairosClient("http://127.0.0.1:8000") as kairos:  # doctest: +SKIP
        ...     best = kairos.recommend("u1", n=3).items

    Every method raises `KairosError`, or rather the one of its kinds that says what to do about it.
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
        """A client of one service.

        Args:
            base_url: such as `http://127.0.0.1:8000`; may end in a path, behind a proxy.
            api_key: by default the environment variable KAIROS_API_KEY, if set.
            timeout: seconds that one attempt may wait for the network at a time.
            retries: how patiently to ask.
            http: a client of yours to send with, instead of one of our own; it stays open.
            transport: instead of the network, for our own client: an application in this process.

        Raises:
            InvalidError: if an argument is out of its range.
        """
        self._address = Address.of(base_url, api_key)
        self._timeout = timeout
        self._retries = retries or Retries()
        self._is_own = http is None
        self._http = http or httpx.Client(transport=transport, limits=POOL)

    recommend = _waiting(recommendations.recommend)
    rank = _waiting(recommendations.rank)
    sweep = _waiting(recommendations.sweep)
    put_items = _waiting(items.put_items)
    list_items = _waiting(items.list_items)
    read_item = _waiting(items.read_item)
    delete_item = _waiting(items.delete_item)
    list_similar = _waiting(items.list_similar)
    read_popularity = _waiting(items.read_popularity)
    list_users = _waiting(users.list_users)
    read_user = _waiting(users.read_user)
    erase_user = _waiting(users.erase_user)
    read_next_time = _waiting(users.read_next_time)
    recommend_to_user = _waiting(users.recommend_to_user)
    list_models = _waiting(models.list_models)
    describe_model = _waiting(models.describe_model)
    read_map = _waiting(models.read_map)
    activate_model = _waiting(models.activate_model)
    roll_back = _waiting(models.roll_back)
    read_traffic = _waiting(models.read_traffic)
    put_traffic = _waiting(models.put_traffic)
    list_changes = _waiting(models.list_changes)
    list_training_runs = _waiting(training_runs.list_training_runs)
    live = _waiting(health.live)
    ready = _waiting(health.ready)
    metrics = _waiting(health.metrics)
    read_metrics = _waiting(health.read_metrics)
    read_caller = _waiting(health.read_caller)

    def ingest(self, events: Iterable[Event]) -> Ingested:
        """Keep events, each exactly once, in as many requests as they need.

        If it raises, some may be kept and some not: ingest the same `Event` objects again, and
        those that were count as duplicates.
        """
        ingestion = Ingestion(events)
        for batch in ingestion.batches():
            ingestion.note(batch, self.perform(batch.call))
        return ingestion.answer()

    def every_item(self, q: str | None = None) -> Iterator[Item]:
        """All items in order of their ids, fetched a page at a time."""
        cursor: str | None = None
        while True:
            page = self.list_items(q, cursor=cursor, limit=500)
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def within(self, seconds: float) -> "KairosClient":
        """This client, less patient: every question ends within so many seconds.

        It sends through the same connections; close only the original.
        """
        hasty = copy.copy(self)
        hasty._retries = replace(self._retries, deadline_seconds=seconds)
        hasty._is_own = False
        return hasty

    def perform(self, call: Call[T]) -> T:
        """Ask one question, again where that makes sense and is safe."""
        steps = exchange(call, self._retries)
        outcome: Outcome = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as end:
                answer: T = end.value
                return answer
            outcome = self._take(step)

    def close(self) -> None:
        """Close the connections."""
        if self._is_own:
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

    def _take(self, step: Send | Wait) -> Outcome:
        if isinstance(step, Wait):
            time.sleep(step.seconds)
            return None
        try:
            return self._ask(step)
        except httpx.RequestError as error:
            return error

    def _ask(self, send: Send) -> Reply:
        request = self._address.request(self._http, send, self._timeout)
        response = self._http.send(request, stream=True, follow_redirects=False)
        try:
            content = bytearray()
            for chunk in response.iter_bytes():
                content += chunk
                require_time(send, request)
        finally:
            response.close()
        return Reply(response.status_code, response.headers, bytes(content))
