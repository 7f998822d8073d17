"""The events a run learns from: those known at one instant, of users who are still to be known."""

from typing import NamedTuple

import polars as pl

from model.clock import to_datetime
from model.errors import TrainingError
from training.data.erasures import Erasures
from training.data.sources import name_of, read_events
from training.retraining.report import DataRead


class Known(NamedTuple):
    """Events, and what they are."""

    events: pl.DataFrame
    described: DataRead


def read_known(location: str, *, until: int, known_by: int, erasures: Erasures) -> Known:
    """The events that had happened by one instant and arrived by another, however late it is now.

    Args:
        location: as for `training.data.sources.read_events`.
        until: epoch microseconds; later events are left out.
        known_by: epoch microseconds; what arrived later is left out, where the source tells.
        erasures: files are copies of old events, and may still hold those of erased users.

    Raises:
        EventSourceError: if the events cannot be read.
        TrainingError: if there are none.
    """
    read = read_events(location, until, known_by=known_by)
    events = erasures.leave_out(read)
    if events.is_empty():
        raise TrainingError(
            f"a run learns from events, but {name_of(location)} had none by {to_datetime(until)} "
            f"that had arrived by {to_datetime(known_by)}; check --until, and give --known-by a "
            "later instant where old events were imported"
        )
    described = DataRead.model_validate(
        {
            "source": name_of(location),
            "until": to_datetime(until),
            "known_by": to_datetime(known_by),
            "events": len(events),
            "users": events["user_id"].n_unique(),
            "items": events["item_id"].n_unique(),
            "first_at": events["timestamp"].min(),
            "last_at": events["timestamp"].max(),
            "erased_events": len(read) - len(events),
        }
    )
    return Known(events, described)
