"""The events of each user that a model in a notebook can look up."""

from collections.abc import Iterable
from operator import index

import polars as pl

from kairos.frames import Frame, to_history
from model.clock import now
from model.errors import KairosError
from model.history import Event
from training.data.dataset import Dataset
from training.data.plausible_times import drop_implausible

UserId = str | int
"""As the column `user_id` has it: an integer stands for its digits."""

_MOST_NAMED = 3


class UnknownUserError(KairosError):
    """A user id is not among the events."""

    code = "unknown_user"


class Histories:
    """The histories of all users of some events, as a query holds them."""

    def __init__(self, events: pl.DataFrame) -> None:
        """Lay out events; those at times that training leaves out are left out here, too.

        Args:
            events: as `kairos.frames.to_events` returns them.

        Raises:
            TrainingError: if there are none.
        """
        self._dataset = Dataset.of(drop_implausible(events, now())[0])
        self._numbers = {user: number for number, user in enumerate(self._dataset.user_ids)}

    @property
    def last_at(self) -> int:
        """Epoch microseconds of the last event."""
        return int(self._dataset.times.max())

    def find(self, user_id: str) -> tuple[Event, ...]:
        """Return the events of a user, oldest first.

        Raises:
            UnknownUserError: if the user has none.
        """
        number = self._numbers.get(user_id)
        if number is None:
            some = ", ".join(map(repr, self._dataset.user_ids[:_MOST_NAMED]))
            raise UnknownUserError(
                f"a user has events, but {user_id!r} is none of the {len(self._numbers):,} users, "
                f"such as {some}; correct the id, or pass history="
            )
        return self._dataset.history(number)


def read_history(frame: Frame) -> tuple[Event, ...]:
    """Read the events of one user from a frame with `item_id` and `timestamp`, oldest first.

    Raises:
        EventSourceError: if an event is invalid, or the events are of several users.
    """
    events = to_history(frame)
    return () if events.is_empty() else Dataset.of(events).history(0)


def to_user_id(user: object) -> str:
    """Return the id of a user as a text.

    Raises:
        KairosError: if it is neither a text nor an integer.
    """
    if isinstance(user, str):
        return user
    try:
        if not isinstance(user, bool):
            return str(index(user))  # type: ignore[arg-type]
    except TypeError:
        pass
    raise KairosError(
        f"a user's id is a text or an integer, but got {type(user).__name__}: {str(user)[:40]}; "
        "pass ids of the column user_id"
    )


def list_users(users: UserId | Iterable[UserId]) -> list[str]:
    """List the ids of one user or of several, also of a column of a frame.

    Raises:
        KairosError: if one of them is no id, or it is a whole frame.
    """
    is_one = isinstance(users, str | bytes) or hasattr(users, "columns")
    if is_one or not isinstance(users, Iterable) or not getattr(users, "shape", True):
        return [to_user_id(users)]
    return [to_user_id(user) for user in users]
