"""Versions that did not open, and when to open them again."""

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import final

from model.store.store import Fingerprint

FIRST_WAIT_SECONDS = 5.0
_LONGEST_WAIT_SECONDS = 300.0


@dataclass(slots=True)
class _Refusal:
    """The last failure of a version.

    Attributes:
        error: why it did not open.
        tried: the fingerprint of its files when it was tried.
        seen: the fingerprint at the last look, to wait until files stop changing.
        wait_seconds: how long it is left alone while its files do not change.
        due_at: when that ends, on the monotonic clock.
    """

    error: str
    tried: Fingerprint
    seen: Fingerprint
    wait_seconds: float
    due_at: float


@final
class Refusals:
    """Versions that did not open.

    One is due again once its files have changed and stay the same for two looks, so that a bundle
    which is copied back is opened at once and not after each file. Faults that leave the files as
    they are, such as a disk that does not answer, are waited out with growing intervals.
    """

    def __init__(self) -> None:
        self._refusals: dict[str, _Refusal] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._refusals)

    def get_error(self, version: str) -> str | None:
        """Return why a version did not open; None if it was not refused."""
        refusal = self._refusals.get(version)
        return None if refusal is None else refusal.error

    def is_due(
        self, version: str, fingerprint: Fingerprint, *, waits_until_still: bool = True
    ) -> bool:
        """Return whether a version is to be opened, given the fingerprint of its files now.

        Args:
            waits_until_still: whether files that have changed must be the same for two looks.
        """
        refusal = self._refusals.get(version)
        if refusal is None:
            return True
        is_still, refusal.seen = fingerprint == refusal.seen, fingerprint
        has_changed = fingerprint != refusal.tried
        return (
            has_changed and (is_still or not waits_until_still)
        ) or time.monotonic() >= refusal.due_at

    def add(self, version: str, error: str, fingerprint: Fingerprint) -> bool:
        """Record a failure; return whether it is another than the last one of this version.

        Args:
            fingerprint: of the version's files, read before they were opened.
        """
        previous = self._refusals.get(version)
        wait_seconds = FIRST_WAIT_SECONDS
        if previous is not None and previous.tried == fingerprint:
            wait_seconds = min(2 * previous.wait_seconds, _LONGEST_WAIT_SECONDS)
        self._refusals[version] = _Refusal(
            error, fingerprint, fingerprint, wait_seconds, time.monotonic() + wait_seconds
        )
        return previous is None or previous.error != error

    def discard(self, version: str) -> None:
        """Forget the failure of a version, if any."""
        self._refusals.pop(version, None)

    def retain(self, versions: Collection[str | None]) -> None:
        """Forget the failures of all other versions."""
        self._refusals = {v: kept for v, kept in self._refusals.items() if v in versions}
