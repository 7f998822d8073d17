"""Changes of what is served, and what they say of which version came before which."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from model.store.traffic import Traffic

Move = Literal["activate", "publish", "retrain"]
"""Why a version became the current one: somebody named it, published it, or trained it."""

Kind = Literal[Move, "rollback", "traffic"]


@dataclass(frozen=True, slots=True)
class Change:
    """One change of what is served.

    Attributes:
        at: epoch microseconds, UTC.
        actor: who made it, as the gate names callers, or `cli:` and a name of the machine's.
        change: what it was; only "traffic" leaves the current version as it is.
        version: the current version after it.
        previous_version: the current version before it, as found, not as last written down.
        reason: why, in the actor's words.
        traffic: which versions answer beside the current one from then on.
    """

    at: int
    actor: str
    change: Kind
    version: str | None
    previous_version: str | None
    reason: str | None
    traffic: Traffic | None = None


def rollback_target(changes: Iterable[Change], current: str | None) -> str | None:
    """The version that a rollback leads to; None where none was current before this one.

    Args:
        changes: all of them, oldest first.
        current: the version that is current now, whoever made it so; None for none.
    """
    line = _line(changes)
    _follow(line, current)
    if current is None:
        return line[-1] if line else None
    return line[-2] if len(line) > 1 else None


def _line(changes: Iterable[Change]) -> list[str]:
    """The versions that lead to the current one, which is last; a rollback takes the last away."""
    line: list[str] = []
    for change in changes:
        if change.change == "traffic":
            continue
        # The pointer may have been moved without a word since the change before.
        _follow(line, change.previous_version)
        if change.change == "rollback":
            while line and line[-1] != change.version:
                line.pop()
        _follow(line, change.version)
    return line


def _follow(line: list[str], version: str | None) -> None:
    if version is not None and line[-1:] != [version]:
        line.append(version)
