"""The result of one check."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "warning", "failure"]


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check.

    Attributes:
        name: identifies the check; stable, so programs may compare it.
        verdict: `failure` if something does not work, `warning` if it may soon not.
        finding: what was found.
        remedy: what to do; None for `ok`.
    """

    name: str
    verdict: Verdict
    finding: str
    remedy: str | None = None


Checks = Iterator[Check]
"""Checks in order; those that cannot be made are left out."""


def ok(name: str, finding: str) -> Check:
    """Create a check without a problem."""
    return Check(name, "ok", finding)


def warning(name: str, finding: str, remedy: str) -> Check:
    """Create a check with a problem that does not affect the service yet."""
    return Check(name, "warning", finding, remedy)


def failure(name: str, finding: str, remedy: str) -> Check:
    """Create a check of something that does not work."""
    return Check(name, "failure", finding, remedy)


def catch_errors(checks: Callable[[], Checks], *, name: str, remedy: str) -> Checks:
    """Yield the checks; an exception of a check becomes a failure."""
    try:
        yield from checks()
    except Exception as error:
        yield failure(name, f"{type(error).__name__}: {error}", remedy)
