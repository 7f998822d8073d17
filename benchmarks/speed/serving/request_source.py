"""The requests of the cases: histories that repeat, or never do, as whole HTTP/1.1 requests."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, Protocol, cast

import numpy as np
import orjson
import polars as pl

from training.data.sources import read_events

REPEATING_USERS = 100
STORED_USERS = 2_000
_RECORDED_EVENTS = 200
_DAYS = 90
_SECONDS_PER_DAY = 86_400


@dataclass(frozen=True)
class RequestKind:
    """A kind of request.

    Attributes:
        events: length of the history.
        repeats: whether the histories are those of 100 users, rather than all different.
        stored: whether the history is stored and the request names its user.
        explain: the field of the request.
        instants: number of query times; 0 for a recommendation at the time of the request.
    """

    events: int = 50
    repeats: bool = False
    stored: bool = False
    explain: Literal["none", "attention"] = "none"
    instants: int = 0

    @property
    def path(self) -> str:
        """The path of its operation."""
        return "/v1/attention" if self.instants else "/v1/recommendations"


@dataclass(frozen=True)
class Histories:
    """Histories, one per row: baskets of items, half of them bought before, over 90 days.

    Attributes:
        rows: numbers of items.
        times: epoch seconds, ascending.
    """

    rows: "np.ndarray[tuple[int, int], np.dtype[np.int64]]"
    times: "np.ndarray[tuple[int, int], np.dtype[np.int64]]"


def draw_histories(
    rng: np.random.Generator, count: int, *, items: int, events: int, until: int
) -> Histories:
    """Draw histories that end before an instant, in epoch seconds."""
    rows = rng.integers(0, items, (count, events))
    for event in range(1, events):
        again = rng.random(count) < 0.5
        earlier = rows[np.arange(count), rng.integers(0, event, count)]
        rows[:, event] = np.where(again, earlier, rows[:, event])
    ages = rng.integers(3_600, _DAYS * _SECONDS_PER_DAY, (count, events))
    return Histories(rows, until - np.sort(ages, axis=1)[:, ::-1])


class Requests(Protocol):
    """Where the requests of a trial come from."""

    def draw(self, count: int) -> list[bytes]:
        """Draw requests."""
        ...


class RequestSource:
    """Draws requests of one kind for one service.

    Requests of distinct histories never repeat, also between calls of `draw`.
    """

    def __init__(
        self, kind: RequestKind, *, port: int, key: str, items: int, until: int, seed: int = 0
    ) -> None:
        self.kind = kind
        self._port, self._key = port, key
        self._items, self._until = items, until
        self._rng = np.random.default_rng(seed)
        self._drawn = 0
        self._fields = self._format_fields()
        self._repeating = self._draw_inline(REPEATING_USERS) if kind.repeats else []

    def draw(self, count: int) -> list[bytes]:
        """Draw requests."""
        first = self._drawn
        self._drawn += count
        if self.kind.stored:
            users = (number % STORED_USERS for number in range(first, first + count))
            return [self._encode(f'{{"user_id":"u{user}"{self._fields}}}') for user in users]
        if self.kind.repeats:
            users = self._rng.integers(0, REPEATING_USERS, count).tolist()
            return [self._repeating[user] for user in users]
        return self._draw_inline(count)

    def _draw_inline(self, count: int) -> list[bytes]:
        histories = draw_histories(
            self._rng, count, items=self._items, events=self.kind.events, until=self._until
        )
        times = np.datetime_as_string(histories.times.astype("datetime64[s]")).tolist()
        return [
            self._encode(f'{{"history":[{self._format_events(*each)}]{self._fields}}}')
            for each in zip(histories.rows.tolist(), times, strict=True)
        ]

    def _format_events(self, rows: list[int], times: list[str]) -> str:
        return ",".join(
            f'{{"item_id":"i{row}","timestamp":"{at}Z"}}'
            for row, at in zip(rows, times, strict=True)
        )

    def _format_fields(self) -> str:
        if not self.kind.instants:
            explain = f',"explain":"{self.kind.explain}"' if self.kind.explain != "none" else ""
            return f',"n":10{explain}'
        step = 7 * _SECONDS_PER_DAY // self.kind.instants
        instants = [self._until + step * number for number in range(self.kind.instants)]
        return f',"n":10,"query_times":{instants}'

    def _encode(self, body: str) -> bytes:
        return encode_request(self.kind.path, body.encode(), port=self._port, key=self._key)


class RecordedRequests:
    """Requests with the latest events of the users of a file, a day after its last event.

    They repeat once every user had a turn.
    """

    def __init__(self, events: Path, *, port: int, key: str) -> None:
        table = read_events(events)
        at = pl.col("timestamp").dt.to_string("iso:strict")
        latest = table.sort("timestamp").group_by("user_id").tail(_RECORDED_EVENTS)
        histories = (
            latest.with_columns(timestamp=at)
            .group_by("user_id")
            .agg(history=pl.struct("item_id", "timestamp", "action"))
        )
        last = cast(datetime, table["timestamp"].max())
        query_time = (last + timedelta(days=1)).isoformat()
        self._requests = [
            encode_request(
                RequestKind().path,
                orjson.dumps({"history": history, "query_time": query_time, "n": 10}),
                port=port,
                key=key,
            )
            for history in histories["history"].to_list()
        ]
        self._drawn = 0

    def draw(self, count: int) -> list[bytes]:
        """Draw requests."""
        numbers = range(self._drawn, self._drawn + count)
        self._drawn += count
        return [self._requests[number % len(self._requests)] for number in numbers]


def encode_request(path: str, body: bytes, *, port: int, key: str) -> bytes:
    """Encode a whole HTTP/1.1 request."""
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
        f"authorization: Bearer {key}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
