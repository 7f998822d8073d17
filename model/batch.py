"""Histories as tensors, in the one layout that training and serving share."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64
from numpy.typing import NDArray
from torch import Tensor

from model.accelerators import copy_to
from model.catalog import Catalog
from model.clock import days_between
from model.errors import EmptyHistoryError
from model.history import Event, Query


class SequenceBatch(NamedTuple):
    """Histories side by side, padded on the right, with one query time per position.

    The longest one has no padding, and so has a single one.

    Attributes:
        rows: catalog rows, 0 = padding.
        actions: rows of the action table, 0 = none or unknown.
        times: days since the first event of the same history.
        query_times: days since the first event, one per position: in training the time of the
            next event; in serving only the last position is used.
        query_given: false where the query time is withheld from the model; the position's
            `query_times` then repeats its own event's time.
        lengths: events per history.
        origins: time of each history's first event, epoch microseconds.
        count_tables: which table of followers each history reads: 0 counts all users; in training
            another one leaves out some users, this history's among them.
    """

    rows: Int64[Tensor, "batch len"]
    actions: Int64[Tensor, "batch len"]
    times: Float64[Tensor, "batch len"]
    query_times: Float64[Tensor, "batch len"]
    query_given: Bool[Tensor, "batch len"]
    lengths: Int64[Tensor, " batch"]
    origins: Int64[Tensor, " batch"]
    count_tables: Int64[Tensor, " batch"]

    def to(self, device: torch.device) -> "SequenceBatch":
        """Copy the batch to a device."""
        return SequenceBatch(*(copy_to(tensor, device) for tensor in self))

    def withhold_query_times(self, positions: Bool[Tensor, "batch len"]) -> "SequenceBatch":
        """Withhold the query times of the given positions from the model."""
        return self._replace(
            query_times=torch.where(positions, self.times, self.query_times),
            query_given=self.query_given & ~positions,
        )

    def at_event_times(self) -> "SequenceBatch":
        """Return the batch with every position asked at the time of its own event."""
        return self._replace(query_times=self.times, query_given=torch.ones_like(self.query_given))

    def repeat_at(self, query_times: Float64[Tensor, " query_times"]) -> "SequenceBatch":
        """Repeat the only history of the batch, once per query time of its last event."""
        repeated = SequenceBatch(
            *(tensor.expand(len(query_times), *tensor.shape[1:]) for tensor in self)
        )
        ends = repeated.query_times.clone()
        ends[:, -1] = query_times
        return repeated._replace(query_times=ends)


class KnownHistory(NamedTuple):
    """The events of a query's history whose items are in the catalog, as rows.

    Attributes:
        events: the events that are used, oldest first.
        rows: their catalog rows.
        actions: their action rows.
        unknown_item_ids: ids that the catalog lacks, distinct, in order of appearance.
        truncated: whether older known events were dropped because of `max_history`.
    """

    events: tuple[Event, ...]
    rows: NDArray[np.int64]
    actions: NDArray[np.int64]
    unknown_item_ids: tuple[str, ...]
    truncated: bool


def look_up_history(
    query: Query,
    catalog: Catalog,
    action_rows: dict[str, int],
    *,
    ignored_actions: Collection[str] = (),
    max_history: int,
) -> KnownHistory:
    """Look up the most recent `max_history` events whose items are in the catalog.

    Args:
        action_rows: row of the action table by action; other actions get row 0.
        ignored_actions: actions whose events are skipped.
    """
    known: list[Event] = []
    rows: list[int] = []
    unknown: dict[str, None] = {}
    for event in query.history:
        if event.action in ignored_actions:
            continue
        row = catalog.find(event.item_id)
        if row is None:
            unknown[event.item_id] = None
        else:
            known.append(event)
            rows.append(row)
    kept = known[-max_history:]
    actions = [action_rows.get(event.action, 0) if event.action else 0 for event in kept]
    return KnownHistory(
        events=tuple(kept),
        rows=np.array(rows[-max_history:], dtype=np.int64),
        actions=np.array(actions, dtype=np.int64),
        unknown_item_ids=tuple(unknown),
        truncated=len(known) > max_history,
    )


def collate(
    histories: Sequence[KnownHistory],
    query_times: Sequence[int],
    withheld: Sequence[bool] | None = None,
) -> SequenceBatch:
    """Collate histories into a batch.

    Args:
        query_times: one per history, epoch microseconds.
        withheld: per history, whether to withhold its query time from the model; none by default.

    Raises:
        EmptyHistoryError: if a history has no known event.
    """
    empty = [position for position, history in enumerate(histories) if not history.events]
    if empty:
        raise EmptyHistoryError(
            f"every history needs an event of a catalog item, but number {empty[0]} of "
            f"{len(histories)} has none; rank its items by popularity"
        )
    lengths = [len(history.events) for history in histories]
    shape = (len(histories), max(lengths))
    rows, actions = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    times, queries = np.zeros(shape), np.zeros(shape)
    given = np.ones(shape, dtype=np.bool_)
    for number, (history, query_time) in enumerate(zip(histories, query_times, strict=True)):
        length = lengths[number]
        instants = np.array([event.at for event in history.events] + [query_time], dtype=np.int64)
        days = days_between(int(instants[0]), instants)
        rows[number, :length] = history.rows
        actions[number, :length] = history.actions
        times[number, :length] = days[:-1]
        queries[number, :length] = days[1:]
        if withheld is not None and withheld[number]:
            queries[number, length - 1] = days[-2]
            given[number, length - 1] = False
    return SequenceBatch(
        rows=torch.from_numpy(rows),
        actions=torch.from_numpy(actions),
        times=torch.from_numpy(times),
        query_times=torch.from_numpy(queries),
        query_given=torch.from_numpy(given),
        lengths=torch.tensor(lengths, dtype=torch.int64),
        origins=torch.tensor([history.events[0].at for history in histories]),
        count_tables=torch.zeros(len(histories), dtype=torch.int64),
    )


def select_positions(states: Tensor, positions: Tensor) -> Tensor:
    """Select one position of each history: batch, len, * -> batch, 1, *."""
    return states[torch.arange(len(states), device=states.device), positions].unsqueeze(1)


def gather_positions(states: Tensor, positions: Tensor) -> Tensor:
    """Select several positions of each history: batch, len, * -> batch, chosen, *."""
    return states[torch.arange(len(states), device=states.device)[:, None], positions]


def number_within_samples(
    sample: Int64[Tensor, " queries"], samples: int
) -> tuple[Int64[Tensor, " queries"], int]:
    """Count the queries before each one in its sample, and the queries of the largest sample.

    To pad the queries of every sample side by side. They are consecutive, and samples ascend.
    """
    counts = torch.bincount(sample, minlength=samples)
    firsts = counts.cumsum(0) - counts
    numbers = torch.arange(len(sample), device=sample.device) - firsts[sample]
    return numbers, int(counts.max())
