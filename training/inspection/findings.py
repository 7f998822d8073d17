"""Suspicious things in events: what to check before a model is trained on them."""

import shlex
from dataclasses import dataclass

import numpy as np
import polars as pl

from model.actions import is_undoing
from model.clock import MICROSECONDS_PER_DAY, to_datetime
from model.event_limits import MOST_OF_ITEM_PER_DAY, MOST_PER_DAY, find_excess
from model.event_time import EARLIEST_EVENT
from training.data.dataset import Dataset
from training.data.limited_users import FEW_ITEMS
from training.data.plausible_times import LeftOutEvents
from training.inspection.action_names import format_name, list_names

_FEW_EVENTS = 1_000
_MOST_OPTIONS = 20
_FEW_FOLLOWERS = 30


@dataclass(frozen=True)
class Finding:
    """One thing to check.

    Attributes:
        title: what was found, in a few words.
        detail: how much of it, and what to do.
    """

    title: str
    detail: str


def find_suspicious(
    dataset: Dataset,
    *,
    resolution: str,
    items: pl.DataFrame | None,
    now: int,
    left_out: LeftOutEvents,
) -> tuple[Finding, ...]:
    """Find what looks wrong in the events.

    Args:
        resolution: of the timestamps, such as "day".
        items: the table of items, if there is one.
        now: epoch microseconds; later events are in the future.
        left_out: those of the events that no training reads because of their times.
    """
    found = (
        _find_few_events(dataset),
        _find_duplicates(dataset),
        _find_left_out(left_out),
        _find_future(dataset, now),
        _find_implausibly_old(dataset),
        _find_whole_days(resolution),
        _find_bulk_instant(dataset, resolution),
        _find_single_instants(dataset),
        _find_silence(dataset),
        _find_heavy_user(dataset),
        _find_excess(dataset),
        _find_pumped_item(dataset),
        _find_single_events(dataset),
        _find_undoing_actions(dataset),
        _find_undescribed_items(dataset, items),
    )
    return tuple(finding for finding in found if finding is not None)


def _find_few_events(dataset: Dataset) -> Finding | None:
    if len(dataset) >= _FEW_EVENTS:
        return None
    return Finding(
        "few events",
        f"{len(dataset):,} events are too few to train and to measure a model on",
    )


def _find_duplicates(dataset: Dataset) -> Finding | None:
    same = pl.DataFrame([dataset.user_of, dataset.times, dataset.rows, dataset.action_rows])
    repeats = len(dataset) - same.n_unique()
    if repeats == 0:
        return None
    return Finding(
        "duplicates",
        f"{repeats:,} events ({repeats / len(dataset):.1%}) equal another in user, item, instant "
        "and action; drop them unless each counts",
    )


def _find_left_out(left_out: LeftOutEvents) -> Finding | None:
    if left_out.total == 0:
        return None
    return Finding(
        "implausible times",
        f"{left_out.describe()}; neither a training nor the figures of this report count them, so "
        "correct or drop them",
    )


def _find_future(dataset: Dataset, now: int) -> Finding | None:
    later = int(np.count_nonzero(dataset.times > now))
    if later == 0:
        return None
    return Finding(
        "timestamps in the future",
        f"{later:,} events are later than now, the last in "
        f"{to_datetime(int(dataset.times.max())):%Y-%m-%d}; a split by time would test on those "
        "that are not left out, so correct or drop them",
    )


def _find_implausibly_old(dataset: Dataset) -> Finding | None:
    early = int(np.count_nonzero(dataset.times < EARLIEST_EVENT))
    if early == 0:
        return None
    return Finding(
        "timestamps before 1990",
        f"{early:,} events, the first in {to_datetime(int(dataset.times.min())):%Y-%m-%d}; 1970 "
        "often means a missing time, or a number in another unit than seconds",
    )


def _find_whole_days(resolution: str) -> Finding | None:
    if resolution != "day":
        return None
    return Finding(
        "timestamps are whole days",
        "the order within a day and the hour are unknown; bring finer timestamps if there are any",
    )


def _find_bulk_instant(dataset: Dataset, resolution: str) -> Finding | None:
    """Find an instant that many users share, such as that of an import."""
    if resolution == "day":
        return None  # many users share each day
    begins = np.ones(len(dataset), dtype=np.bool_)
    begins[1:] = (np.diff(dataset.times) != 0) | (np.diff(dataset.user_of) != 0)
    instants, users = np.unique(dataset.times[begins], return_counts=True)
    most = int(users.argmax())
    if users[most] < max(10, 0.05 * len(dataset.user_ids)):
        return None
    return Finding(
        "one instant for many users",
        f"{users[most]:,} users have events at {to_datetime(int(instants[most])):%Y-%m-%d %H:%M:%S}"
        " UTC; if that is the time of an import, leave those events out",
    )


def _find_single_instants(dataset: Dataset) -> Finding | None:
    starts, ends = dataset.offsets[:-1], dataset.offsets[1:]
    counts = ends - starts
    single = (dataset.times[starts] == dataset.times[ends - 1]) & (counts > 1)
    events = int(counts[single].sum())
    if events < 0.05 * len(dataset):
        return None
    return Finding(
        "whole histories at one instant",
        f"{np.count_nonzero(single):,} users ({events / len(dataset):.1%} of the events) have all "
        "their events at one instant; they teach nothing about what follows",
    )


def _find_silence(dataset: Dataset) -> Finding | None:
    instants = np.unique(dataset.times)
    if len(instants) < 100:
        return None
    gaps = np.diff(instants)
    longest = int(gaps.argmax())
    days = gaps[longest] / MICROSECONDS_PER_DAY
    if gaps[longest] < 0.05 * (instants[-1] - instants[0]) or days < 1:
        return None
    return Finding(
        "a silent stretch",
        f"no event of any user for {days:,.0f} days from "
        f"{to_datetime(int(instants[longest])):%Y-%m-%d}; are events missing?",
    )


def _find_heavy_user(dataset: Dataset) -> Finding | None:
    counts = np.diff(dataset.offsets)
    heaviest = int(counts.argmax())
    share = counts[heaviest] / len(dataset)
    if len(counts) < 20 or share < 0.02 or counts[heaviest] < 100 * np.median(counts):
        return None
    return Finding(
        "one user with a large share",
        f"user {dataset.user_ids[heaviest]!r} has {counts[heaviest]:,} events ({share:.1%}); a "
        "shared account or a crawler would bias the popularity of all items",
    )


def _find_excess(dataset: Dataset) -> Finding | None:
    users = dataset.user_of
    excess = find_excess(users, dataset.rows.astype(np.int64), dataset.times)
    if not excess.any():
        return None
    counts = np.bincount(users[excess])
    named = ", ".join(repr(dataset.user_ids[user]) for user in counts.argsort()[::-1][:3])
    return Finding(
        "more events than one user can have",
        f"{int(excess.sum()):,} events of {np.count_nonzero(counts):,} users, most of {named}, are "
        f"beyond {MOST_PER_DAY:,} a day or {MOST_OF_ITEM_PER_DAY} a day of one item; no training "
        "reads them",
    )


def _find_pumped_item(dataset: Dataset) -> Finding | None:
    """Find an item that is chosen by many users who choose nothing else, such as new accounts."""
    pairs = pl.DataFrame([dataset.user_of, dataset.rows], schema=["user", "row"]).unique()
    of_one_item = pairs.filter(pl.len().over("user") == 1)
    if len(of_one_item) < _FEW_FOLLOWERS or len(dataset.catalog) < FEW_ITEMS:
        return None
    alone = np.bincount(of_one_item["row"].to_numpy(), minlength=len(dataset.catalog) + 1)
    choosers = np.bincount(pairs["row"].to_numpy(), minlength=len(dataset.catalog) + 1)
    most = int(alone.argmax())
    others = len(dataset.user_ids) - choosers[most]
    usual = (len(of_one_item) - alone[most]) / max(others, 1)
    share = alone[most] / choosers[most]
    if alone[most] < _FEW_FOLLOWERS or share < max(0.5, 3 * usual):
        return None
    return Finding(
        "one item of users who choose nothing else",
        f"{alone[most]:,} of {choosers[most]:,} users of item "
        f"{dataset.catalog.item_id(most)!r} have no event of another (of the other users, "
        f"{usual:.0%} have one item only); are they new accounts that praise it?",
    )


def _find_single_events(dataset: Dataset) -> Finding | None:
    counts = np.bincount(dataset.rows)[1:]
    single = int(np.count_nonzero(counts == 1))
    if single < 0.05 * len(counts):
        return None
    return Finding(
        "items with one event",
        f"{single:,} of {len(counts):,} items ({single / len(counts):.0%}); their vectors cannot "
        "be learned well: data.min_item_events leaves them out",
    )


def _find_undoing_actions(dataset: Dataset) -> Finding | None:
    names = [action for action in dataset.actions if is_undoing(action)]
    if not names:
        return None
    shown = [format_name(name) for name in names]
    options = " ".join(f"--ignore-action {shlex.quote(name)}" for name in shown[:_MOST_OPTIONS])
    return Finding(
        "actions that may undo others",
        f"{list_names(shown)}: if a recommendation should not lead to them, leave them out with "
        f"{options}",
    )


def _find_undescribed_items(dataset: Dataset, items: pl.DataFrame | None) -> Finding | None:
    if items is None:
        return None
    known = set(items["item_id"])
    missing = sum(item_id not in known for item_id in dataset.catalog.item_ids)
    if missing == 0:
        return None
    return Finding(
        "items without a description",
        f"{missing:,} of {len(dataset.catalog):,} items with events are missing in the items; "
        "they have neither title nor categories",
    )
