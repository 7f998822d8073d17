"""All events in memory, as flat arrays sorted by user and time."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl
import torch
from jaxtyping import Int16, Int32, Int64
from numpy.typing import NDArray
from torch import Tensor

from model.catalog import RECENT_DAYS, Catalog
from model.clock import MICROSECONDS_PER_DAY
from model.errors import TrainingError
from model.history import Event

_IDENTITY = ["user_id", "item_id", "timestamp", "action"]
_MOST_ACTIONS = int(np.iinfo(np.int16).max)


class EventTensors(NamedTuple):
    """The events of a data set on a device, from which batches are gathered there."""

    rows: Int32[Tensor, " events"]
    times: Int64[Tensor, " events"]
    action_rows: Int16[Tensor, " events"]


@dataclass(frozen=True)
class Dataset:
    """Events grouped by user, in the order of `model.history.sort_events`.

    Attributes:
        catalog: the items.
        actions: action names; `actions[p]` is action row `p + 1`.
        user_ids: external ids, one per user.
        offsets: user `u` owns events `offsets[u]` up to `offsets[u + 1]`.
        rows: catalog row per event; 0 if the catalog does not hold the item.
        times: epoch microseconds per event.
        action_rows: action row per event, 0 = none.
    """

    catalog: Catalog
    actions: tuple[str, ...]
    user_ids: tuple[str, ...]
    offsets: NDArray[np.int64]
    rows: NDArray[np.int32]
    times: NDArray[np.int64]
    action_rows: NDArray[np.int16]

    @classmethod
    def of(
        cls,
        events: pl.DataFrame,
        items: pl.DataFrame | None = None,
        *,
        min_item_events: int = 1,
        min_user_events: int = 1,
        ignored_actions: tuple[str, ...] = (),
        distinct: bool = True,
    ) -> "Dataset":
        """Build from the tables of `training.data.sources.read_events` and `read_items`.

        Events of ignored actions are left out first; then events that equal another in user, item,
        instant and action; then items, then users, with too few events, each in one pass.

        Args:
            distinct: whether to keep one of equal events, as a query does; an inspection of a
                source counts them.

        Raises:
            TrainingError: if no event is left, or there are too many different actions.
        """
        if ignored_actions:
            events = events.filter(~pl.col("action").is_in(ignored_actions))
        if distinct:
            events = events.unique(_IDENTITY, keep="first", maintain_order=True)
        if min_item_events > 1:
            events = events.filter(pl.len().over("item_id") >= min_item_events)
        if min_user_events > 1:
            events = events.filter(pl.len().over("user_id") >= min_user_events)
        if events.is_empty():
            raise explain_no_events(min_item_events, min_user_events)
        users = events["user_id"].unique(maintain_order=True)
        item_ids = events["item_id"].unique(maintain_order=True)
        actions = events["action"].unique(maintain_order=True)
        require_few_actions(len(actions))
        events = events.with_columns(
            user=pl.col("user_id").replace_strict(users, pl.int_range(len(users), eager=True)),
            row=pl.col("item_id").replace_strict(
                item_ids, pl.int_range(1, len(item_ids) + 1, eager=True)
            ),
            action_row=pl.col("action").replace_strict(
                actions, pl.int_range(1, len(actions) + 1, eager=True)
            ),
        ).sort("user", "timestamp", "item_id", "action", maintain_order=True)
        counts = np.bincount(events["user"].to_numpy(), minlength=len(users))
        rows = events["row"].to_numpy().astype(np.int32)
        times = events["timestamp"].cast(pl.Int64).to_numpy(writable=True)
        return cls(
            catalog=build_catalog(item_ids, items, rows, times),
            actions=tuple(actions.to_list()),
            user_ids=tuple(users.to_list()),
            offsets=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
            rows=rows,
            times=np.ascontiguousarray(times),
            action_rows=events["action_row"].to_numpy().astype(np.int16),
        )

    def __len__(self) -> int:
        return len(self.rows)

    def on(self, device: torch.device) -> EventTensors:
        """Return the events as tensors on a device; they stay there as long as the data set."""
        if device not in self._tensors:
            # Tensors may be written to, and so need arrays that may.
            arrays = self.rows, self.times, self.action_rows
            self._tensors[device] = EventTensors(
                *(torch.from_numpy(np.require(one, requirements="W")).to(device) for one in arrays)
            )
        return self._tensors[device]

    @cached_property
    def _tensors(self) -> dict[torch.device, EventTensors]:
        return {}

    @cached_property
    def user_of(self) -> NDArray[np.int64]:
        """The user of every event."""
        return np.repeat(np.arange(len(self.user_ids)), np.diff(self.offsets))

    @cached_property
    def known_before(self) -> NDArray[np.int64]:
        """The number of events of known items before each event, and before the end."""
        return np.concatenate(([0], np.cumsum(self.rows > 0))).astype(np.int64)

    @cached_property
    def known(self) -> "Dataset":
        """The data set without the events of unknown items (row 0)."""
        keep = self.rows > 0
        if keep.all():
            return self
        return replace(
            self,
            offsets=self.known_before[self.offsets],
            rows=self.rows[keep],
            times=self.times[keep],
            action_rows=self.action_rows[keep],
        )

    def history(self, user: int, end: int | None = None) -> tuple[Event, ...]:
        """Return the events of a user, oldest first, as a query holds them.

        Events of unknown items are left out: their ids are not in the catalog.

        Args:
            user: index into `user_ids`.
            end: absolute index after the last event; the user's end by default.
        """
        span = slice(self.offsets[user], self.offsets[user + 1] if end is None else end)
        return tuple(
            Event(
                self.catalog.item_id(int(row)),
                int(at),
                self.actions[action - 1] if action else None,
            )
            for row, at, action in zip(
                self.rows[span], self.times[span], self.action_rows[span], strict=True
            )
            if row
        )

    def limit_catalog(
        self, is_training: NDArray[np.bool_], *, min_item_events: int = 1
    ) -> "Dataset":
        """Keep the catalog items of the training events, and count their popularity there.

        Items that occur only later become unknown (row 0): no model can have learned them.

        Args:
            min_item_events: items with fewer training events become unknown, too.

        Raises:
            TrainingError: if no item is left.
        """
        counts = np.bincount(self.rows[is_training], minlength=len(self.catalog) + 1)
        trained = counts >= max(min_item_events, 1)
        trained[0] = False
        if not trained.any():
            raise explain_no_events(min_item_events, 1)
        kept = np.flatnonzero(trained) - 1
        new_row = np.zeros(len(trained), dtype=np.int32)
        new_row[trained] = np.arange(1, len(kept) + 1)
        rows = new_row[self.rows]
        popularity, recent = _count_popularity(
            rows[is_training], self.times[is_training], len(kept)
        )
        catalog = Catalog(
            item_ids=tuple(self.catalog.item_ids[index] for index in kept),
            titles=tuple(self.catalog.titles[index] for index in kept),
            categories=tuple(self.catalog.categories[index] for index in kept),
            popularity=popularity,
            recent_popularity=recent,
        )
        return replace(self, catalog=catalog, rows=rows)

    def reindex(self, catalog: Catalog, actions: tuple[str, ...]) -> "Dataset":
        """Replace rows and action rows by those of another catalog and its actions."""
        known = {action: row for row, action in enumerate(actions, start=1)}
        action_rows = np.array([0, *(known.get(action, 0) for action in self.actions)])
        return replace(
            self,
            catalog=catalog,
            actions=actions,
            rows=self.map_rows(catalog)[self.rows],
            action_rows=action_rows[self.action_rows].astype(np.int16),
        )

    def map_rows(self, catalog: Catalog) -> NDArray[np.int32]:
        """Map each row of this catalog, padding included, to its row in another; 0 if missing."""
        rows = (catalog.find(item_id) or 0 for item_id in self.catalog.item_ids)
        return np.array([0, *rows], dtype=np.int32)


def explain_no_events(min_item_events: int, min_user_events: int) -> TrainingError:
    """Build the error of a data set without events."""
    return TrainingError(
        f"a data set needs events, but none is left with {min_item_events=} and "
        f"{min_user_events=}; lower them or bring more events"
    )


def require_few_actions(actions: int) -> None:
    """Refuse more different actions than an event can name.

    Raises:
        TrainingError: if there are more.
    """
    if actions > _MOST_ACTIONS:
        raise TrainingError(
            f"a data set has at most {_MOST_ACTIONS:,} different actions, but got "
            f"{actions:,}; bring a column 'action' of few kinds, or none"
        )


def _count_popularity(
    rows: NDArray[np.int32], times: NDArray[np.int64], items: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the events per item: of all time, and of the last `RECENT_DAYS`."""
    recent = times > times.max() - RECENT_DAYS * MICROSECONDS_PER_DAY
    all_time = np.bincount(rows, minlength=items + 1)[1:]
    last_week = np.bincount(rows[recent], minlength=items + 1)[1:]
    return all_time.astype(np.int64), last_week.astype(np.int64)


def build_catalog(
    item_ids: pl.Series,
    items: pl.DataFrame | None,
    rows: NDArray[np.int32],
    times: NDArray[np.int64],
) -> Catalog:
    """Build the catalog of a data set.

    Args:
        item_ids: in the order of the rows, from row 1 on.
        items: as `training.data.sources.read_items` returns them.
        rows: catalog row per event.
        times: epoch microseconds per event.
    """
    titles: dict[str, str | None] = {}
    categories: dict[str, tuple[str, ...]] = {}
    if items is not None:
        titles = dict(zip(items["item_id"], items["title"], strict=True))
        categories = {
            item_id: tuple(names or ())
            for item_id, names in zip(items["item_id"], items["categories"].to_list(), strict=True)
        }
    ids = tuple(item_ids.to_list())
    popularity, recent = _count_popularity(rows, times, len(ids))
    return Catalog(
        item_ids=ids,
        titles=tuple(titles.get(item_id) for item_id in ids),
        categories=tuple(categories.get(item_id, ()) for item_id in ids),
        popularity=popularity,
        recent_popularity=recent,
    )
