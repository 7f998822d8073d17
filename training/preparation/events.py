"""Prepared events, as training and recommending read them: columns mapped into memory."""

import hashlib
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from model.clock import MICROSECONDS_PER_DAY
from model.errors import EventSourceError
from model.event_limits import MOST_OF_ITEM_PER_DAY, find_excess
from model.event_time import TimeBounds, check_times
from model.history import Event
from training.data.columns import EVENT_SCHEMA
from training.data.dataset import (
    Dataset,
    build_catalog,
    explain_no_events,
    require_few_actions,
)
from training.data.erasures import Erasures
from training.data.limited_users import ExcessEvents
from training.data.plausible_times import LeftOutEvents
from training.data.sources import PREPARED_MANIFEST, is_database, is_manifest, read_events
from training.data.split import expand_spans
from training.preparation.folder import Folder
from training.preparation.manifest import Manifest
from training.preparation.shard import Shard, read_verified
from training.preparation.stages import decode_table

Mask = NDArray[np.bool_]

_LONG_GAP = 365
"""Days from one day with events to the next, from which on there may be a gap of over a year."""

_NEVER = np.iinfo(np.int64).max


def is_prepared(location: str) -> bool:
    """Return whether a location holds events that `prepare` has laid out."""
    folder = Folder.at(location)
    if is_database(location) or not folder.has(PREPARED_MANIFEST):
        return False
    return is_manifest(folder.read(PREPARED_MANIFEST))


def read_training_events(
    location: str, now: int, erasures: Erasures | None = None
) -> "TrainingEvents":
    """Open prepared events, or read those of any other source, to train on or to evaluate with.

    Args:
        now: epoch microseconds.
        erasures: users to leave out of prepared events and of files.

    Raises:
        EventSourceError: if they cannot be read.
    """
    if is_prepared(location):
        return PreparedEvents.open(location).select_plausible(now, erasures)
    return read_events(location, erasures=erasures)


@final
@dataclass(frozen=True)
class PreparedEvents:
    """A directory of prepared events."""

    folder: Folder
    manifest: Manifest

    @classmethod
    def open(cls, location: str) -> "PreparedEvents":
        """Open a directory of prepared events.

        Raises:
            EventSourceError: if it has no manifest, as when a preparation was interrupted.
        """
        folder = Folder.at(location)
        manifest = Manifest.read(folder)
        if manifest is None:
            raise EventSourceError(
                f"prepared events have a manifest, but {location} has none; run kairos prepare "
                "(again, if it was interrupted)"
            )
        return cls(folder, manifest)

    @cached_property
    def vocabulary(self) -> pl.DataFrame:
        """The items and actions; see `Manifest.vocabulary`."""
        name, sha256 = self.manifest.vocabulary, self.manifest.vocabulary_sha256
        return decode_table(read_verified(self.folder, name, sha256))

    def list_texts(self, kind: str) -> pl.Series:
        """List the ids of the items ("item_id"), or the actions ("action"), by their numbers."""
        return self.vocabulary.filter(pl.col("kind") == kind)["text"]

    def open_shard(self, number: int) -> Shard:
        """Open one shard; one at a URL is read into memory."""
        entry = self.manifest.shards[number]
        return Shard.open(self.folder, entry.name, entry.sha256)

    @cached_property
    def shards(self) -> tuple[Shard, ...]:
        """All shards, mapped into memory; from a copy on this machine if they are at a URL."""
        return tuple(
            Shard.open(self._local, entry.name, entry.sha256) for entry in self.manifest.shards
        )

    def read_sample(self, most: int) -> pl.DataFrame:
        """Read all events of the users of the first shards, in `EVENT_SCHEMA` and source order.

        Args:
            most: stop before the shard that would exceed this number of events; one is always read.
        """
        texts = {kind: self.list_texts(kind) for kind in ("item_id", "action")}
        frames: list[pl.DataFrame] = []
        rows = 0
        for number, entry in enumerate(self.manifest.shards):
            if frames and rows + entry.events > most:
                break
            rows += entry.events
            shard = self.open_shard(number)
            users = pl.Series(shard.list_users(), dtype=pl.String)
            frames.append(
                pl.DataFrame(
                    {
                        "user_id": users.gather(shard.number_users()),
                        "item_id": texts["item_id"].gather(shard.items),
                        "timestamp": pl.Series(shard.times).cast(EVENT_SCHEMA["timestamp"]),
                        "action": texts["action"].gather(shard.actions),
                        "value": pl.Series([None] * len(shard), dtype=pl.Float64),
                        "position": shard.positions,
                    }
                )
            )
        return pl.concat(frames).sort("position").select(EVENT_SCHEMA.names())

    def select_plausible(self, now: int, erasures: Erasures | None = None) -> "PlausibleEvents":
        """Select the events to train on: neither erased, nor of implausible times, nor in excess.

        The rules are those of `drop_erased`, `drop_implausible` and `drop_excess`.

        Args:
            now: epoch microseconds.
            erasures: users to leave out.
        """
        masks = [find_not_erased(shard, erasures) for shard in self.shards]
        left_out = _leave_out_implausible(self.shards, masks, now)
        excess = _leave_out_excess(self.shards, masks)
        return PlausibleEvents(self, tuple(masks), left_out, excess)

    @cached_property
    def _local(self) -> Folder:
        """The shards on this machine: copies of those at a URL, while this object lives."""
        if self.folder.path("") is not None:
            return self.folder
        scratch = tempfile.mkdtemp(prefix="kairos-")
        weakref.finalize(self, shutil.rmtree, scratch, ignore_errors=True)
        copy = Folder(scratch)
        for entry in self.manifest.shards:
            copy.write(entry.name, read_verified(self.folder, entry.name, entry.sha256))
        return copy


@final
@dataclass(frozen=True, eq=False)
class PlausibleEvents:
    """The prepared events that are trained on.

    Attributes:
        kept: per shard, whether each event is one of them.
        left_out: those of implausible times.
        excess: those beyond the limits of one user.
    """

    prepared: PreparedEvents
    kept: tuple[Mask, ...]
    left_out: LeftOutEvents
    excess: ExcessEvents

    def build_dataset(
        self,
        items: pl.DataFrame | None = None,
        *,
        min_item_events: int = 1,
        min_user_events: int = 1,
        ignored_actions: tuple[str, ...] = (),
    ) -> Dataset:
        """Build the data set that `Dataset.of` builds of the events of the source.

        Holds an event in 14 bytes, and needs one more while it is built.

        Raises:
            TrainingError: if no event is left, or there are too many different actions.
        """
        prepared, shards = self.prepared, self.prepared.shards
        item_ids, actions = prepared.list_texts("item_id"), prepared.list_texts("action")
        is_ignored = actions.is_in(ignored_actions).to_numpy()
        kept = [
            _keep_first(shard, mask & ~is_ignored[shard.actions])
            for shard, mask in zip(shards, self.kept, strict=True)
        ]
        if min_item_events > 1:
            counts = np.zeros(len(item_ids), dtype=np.int64)
            for shard, mask in zip(shards, kept, strict=True):
                counts += np.bincount(shard.items[mask], minlength=len(counts))
            is_frequent = counts >= min_item_events
            kept = [
                mask & is_frequent[shard.items] for shard, mask in zip(shards, kept, strict=True)
            ]
        if min_user_events > 1:
            kept = [
                mask & (_count_by_user(shard, mask) >= min_user_events)[shard.number_users()]
                for shard, mask in zip(shards, kept, strict=True)
            ]
        if not any(mask.any() for mask in kept):
            raise explain_no_events(min_item_events, min_user_events)
        return _lay_out(shards, kept, item_ids, actions, items)


TrainingEvents = pl.DataFrame | PlausibleEvents
"""A table of `training.data.sources.read_events`, or prepared events."""


def _lay_out(
    shards: Sequence[Shard],
    kept: Sequence[Mask],
    item_ids: pl.Series,
    actions: pl.Series,
    items: pl.DataFrame | None,
) -> Dataset:
    """Copy the kept events in the order of `Dataset.of`, which is by first events."""
    item_firsts = np.full(len(item_ids), _NEVER)
    action_firsts = np.full(len(actions), _NEVER)
    user_firsts, user_counts, user_ids = [], [], []
    for shard, mask in zip(shards, kept, strict=True):
        positions = shard.positions[mask]
        np.minimum.at(item_firsts, shard.items[mask], positions)
        np.minimum.at(action_firsts, shard.actions[mask], positions)
        counts = _count_by_user(shard, mask)
        present = np.flatnonzero(counts)
        counts = counts[present]
        user_counts.append(counts)
        begins = np.cumsum(counts) - counts
        firsts = np.minimum.reduceat(positions, begins) if len(counts) else positions
        user_firsts.append(firsts)
        names = shard.list_users()
        user_ids += [names[user] for user in present.tolist()]
    item_rows, item_order = _number_by_first(item_firsts)
    action_rows, action_order = _number_by_first(action_firsts)
    require_few_actions(len(action_order))
    order = np.argsort(np.concatenate(user_firsts))
    lengths = np.concatenate(user_counts)[order]
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    starts = np.empty(len(order), dtype=np.int64)
    starts[order] = offsets[:-1]
    rows = np.empty(offsets[-1], dtype=np.int32)
    times = np.empty(offsets[-1], dtype=np.int64)
    of_actions = np.empty(offsets[-1], dtype=np.int16)
    begin = 0
    for shard, mask, counts in zip(shards, kept, user_counts, strict=True):
        places = expand_spans(starts[begin : begin + len(counts)], counts)
        rows[places] = item_rows[shard.items[mask]]
        times[places] = shard.times[mask]
        of_actions[places] = action_rows[shard.actions[mask]]
        begin += len(counts)
    return Dataset(
        catalog=build_catalog(item_ids.gather(item_order), items, rows, times),
        actions=tuple(actions.gather(action_order).to_list()),
        user_ids=tuple(user_ids[user] for user in order.tolist()),
        offsets=offsets,
        rows=rows,
        times=times,
        action_rows=of_actions,
    )


def _number_by_first(
    firsts: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of what occurs, from 1 on by the first event of each, and their order."""
    order = np.argsort(firsts)[: np.count_nonzero(firsts < _NEVER)]
    rows = np.zeros(len(firsts), dtype=np.int64)
    rows[order] = np.arange(1, len(order) + 1)
    return rows, order


def _count_by_user(shard: Shard, mask: Mask) -> NDArray[np.int64]:
    before = np.concatenate(([0], np.cumsum(mask)))
    return np.diff(before[shard.offsets])


def _keep_first(shard: Shard, mask: Mask) -> Mask:
    """Keep one of equal events, which are next to each other: that of the lowest position."""
    events = np.flatnonzero(mask)
    is_repeat = np.ones(max(len(events) - 1, 0), dtype=np.bool_)
    for column in (shard.times, shard.items, shard.actions):
        is_repeat &= np.diff(column[events]) == 0
    repeats = events[1:][is_repeat]
    if len(repeats):
        # Few: the last event of a user may equal the first of the next.
        user_of = np.searchsorted(
            shard.offsets, np.stack((repeats, events[:-1][is_repeat])), "right"
        )
        mask[repeats[user_of[0] == user_of[1]]] = False
    return mask


def find_not_erased(shard: Shard, erasures: Erasures | None) -> Mask:
    """Find the events of a shard that are of no erased user."""
    kept = np.ones(len(shard), dtype=np.bool_)
    if erasures is None or not erasures.until:
        return kept
    for user, user_id in enumerate(shard.list_users()):
        until = erasures.until.get(hashlib.sha256(user_id.encode()).hexdigest())
        if until is not None:
            span = slice(shard.offsets[user], shard.offsets[user + 1])
            kept[span] = shard.times[span] > until
    return kept


def _leave_out_implausible(shards: Sequence[Shard], masks: list[Mask], now: int) -> LeftOutEvents:
    """Leave out the events that `check_times` refuses."""
    nothing = LeftOutEvents(0, 0, 0, None, None)
    if _are_all_plausible(shards, masks, now):
        return nothing
    times = np.concatenate([shard.times[mask] for shard, mask in zip(shards, masks, strict=True)])
    check = check_times(times, now)
    is_plausible = check.is_plausible
    begin = 0
    for mask in masks:
        end = begin + int(mask.sum())
        mask[mask] = is_plausible[begin:end]
        begin = end
    return nothing if is_plausible.all() else LeftOutEvents.of_check(times, check)


def _are_all_plausible(shards: Sequence[Shard], masks: list[Mask], now: int) -> bool:
    """Return true only if `check_times` refuses no event; it would sort them all in memory."""
    bounds = TimeBounds.at(now)
    first_day, last_day = (instant // MICROSECONDS_PER_DAY for instant in bounds)
    has_events = np.zeros(last_day - first_day + 1, dtype=np.bool_)
    for shard, mask in zip(shards, masks, strict=True):
        times = shard.times[mask]
        if not len(times):
            continue
        if times.min() < bounds.earliest or times.max() > bounds.latest:
            return False
        has_events[times // MICROSECONDS_PER_DAY - first_day] = True
    gaps = np.diff(np.flatnonzero(has_events))
    return not (gaps >= _LONG_GAP).any()


def _leave_out_excess(shards: Sequence[Shard], masks: list[Mask]) -> ExcessEvents:
    """Leave out the events beyond the limits of one user, of which those come first that count."""
    events = users = 0
    for shard, mask in zip(shards, masks, strict=True):
        chosen = _find_busy_days(shard, mask)
        if not len(chosen):
            continue
        chosen = chosen[np.argsort(shard.positions[chosen])]
        user_of = np.searchsorted(shard.offsets, chosen, side="right")
        is_excess = find_excess(user_of, shard.items[chosen].astype(np.int64), shard.times[chosen])
        mask[chosen[is_excess]] = False
        events += int(is_excess.sum())
        users += len(np.unique(user_of[is_excess]))
    return ExcessEvents(events, users)


def _find_busy_days(shard: Shard, mask: Mask) -> NDArray[np.int64]:
    """Find the events of users and days that have more than any limit allows."""
    events = np.flatnonzero(mask)
    if not len(events):
        return events
    user_of = shard.number_users()[events]
    days = shard.times[events] // MICROSECONDS_PER_DAY
    begins = np.flatnonzero((np.diff(user_of) != 0) | (np.diff(days) != 0)) + 1
    lengths = np.diff(np.concatenate(([0], begins, [len(events)])))
    return events[np.repeat(lengths > MOST_OF_ITEM_PER_DAY, lengths)]


def list_history(
    shard: Shard, user: int, item_ids: Sequence[str], actions: Sequence[str], kept: Mask
) -> list[Event]:
    """List those events of one user of a shard that are kept, oldest first."""
    span = slice(shard.offsets[user], shard.offsets[user + 1])
    columns = (column[span][kept[span]] for column in (shard.items, shard.times, shard.actions))
    return [
        Event(item_ids[item], at, actions[action])
        for item, at, action in zip(*(column.tolist() for column in columns), strict=True)
    ]
