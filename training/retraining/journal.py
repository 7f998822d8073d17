"""What the job asks of those who keep records, and of those who watch it."""

from collections.abc import Collection
from typing import Any, Literal, Protocol, final

from model.store.store import BundleStore
from training.run import Progress

Phase = Literal["read", "fit", "evaluate", "write", "gate", "publish", "activate", "prune"]
"""`fit` to the training part of the events; `evaluate` beside champion and references; `write` the
bundle, refitted where the recipe asks for it; ask the `gate`."""


class Journal(Protocol):
    """Keeps the records of runs. The service's database does, which training does not know."""

    def begin(
        self, run_id: str, *, started_at: int, champion: str | None, report: dict[str, Any]
    ) -> None:
        """A run begins (epoch microseconds). Whatever run is recorded as going on has died."""

    def finish(
        self,
        run_id: str,
        *,
        finished_at: int,
        result: str,
        candidate: str | None,
        reason: str | None,
        report: dict[str, Any],
    ) -> None:
        """The run has come to its result. The report is as `RunReport` writes it."""

    def activate(self, version: str, reason: str) -> None:
        """Open a published version, make it the current one, and record that: all, or nothing."""

    def served_lately(self) -> Collection[str]:
        """Versions that an operator may want to go back to."""


@final
class NoJournal:
    """For runs without the service's database: the run's own directory is the record."""

    def __init__(self, store: BundleStore) -> None:
        self._store = store

    def begin(self, run_id: str, **_: object) -> None:
        """Record nothing."""

    def finish(self, run_id: str, **_: object) -> None:
        """Record nothing."""

    def activate(self, version: str, reason: str) -> None:  # noqa: ARG002 - nobody keeps it
        """Open it, and move the pointer."""
        self._store.open(version)
        with self._store.changing():
            self._store.activate(version)

    def served_lately(self) -> Collection[str]:
        """Nothing is known of the past."""
        return ()


class Watcher(Progress, Protocol):
    """Whoever wants to know how far the job has come."""

    def enter(self, phase: Phase) -> None:
        """A phase begins."""
