"""One thing that was looked at, and how it was found."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "warning", "failure"]


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, what was found, and what to do about it.

    Attributes:
        name: stable, for programs.
        verdict: a warning is worth a look; with a failure something does not work.
        told: what was found.
        remedy: what to do; None where all is well.
    """

    name: str
    verdict: Verdict
    told: str
    remedy: str | None = None


Checks = Iterator[Check]
"""Found one after the other: what cannot be looked at is left out."""


def well(name: str, told: str) -> Check:
    """All is well."""
    return Check(name, "ok", told)


def doubtful(name: str, told: str, remedy: str) -> Check:
    """Worth a look."""
    return Check(name, "warning", told, remedy)


def broken(name: str, told: str, remedy: str) -> Check:
    """Something does not work."""
    return Check(name, "failure", told, remedy)


def surviving(checks: Callable[[], Checks], *, name: str, remedy: str) -> Checks:
    """The checks; where looking itself fails, that is what was found."""
    try:
        yield from checks()
    except Exception as error:
        yield broken(name, f"{type(error).__name__}: {error}", remedy)
