"""The files that a peer's process reads: plain arrays, with numpy alone."""

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

TASK, FIT, REFIT, VALIDATION, TEST = (
    "task.json",
    "fit.npz",
    "refit.npz",
    "validation.npz",
    "test.npz",
)
"""What the process reads; without `fit.npz` there is no early stopping, and without `refit.npz` and
`test.npz` no second fit and no test."""

PROGRESS = "progress "
"""What begins a line of standard output with seconds, epoch and metrics, as JSON."""

SCORES, SCORES_WITHHELD, RESULT = "scores.npy", "scores_withheld.npy", "result.json"
"""What the process writes."""

PROBLEM = "problem"
"""The one entry of the result of a model that diverged."""


@dataclass(frozen=True)
class _Arrays:
    """Arrays in one file."""

    def write(self, file: Path) -> None:
        """Write as npz."""
        np.savez(file, **{field.name: getattr(self, field.name) for field in fields(self)})

    @classmethod
    def read(cls, file: Path) -> Self:
        """Read what `write` wrote."""
        with np.load(file) as arrays:
            return cls(**{field.name: arrays[field.name] for field in fields(cls)})


@dataclass(frozen=True)
class Sequences(_Arrays):
    """Events for training, by user and time; events of one instant are in the order to learn.

    Attributes:
        items: number of items in the catalog; rows are 1 to this.
        rows: item row per event.
        times: epoch microseconds per event.
        offsets: sequence `s` owns events `offsets[s]` up to `offsets[s + 1]`.
    """

    items: NDArray[np.int64]
    rows: NDArray[np.int32]
    times: NDArray[np.int64]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True)
class QuestionFile(_Arrays):
    """Questions: after the events `starts[q]` up to `ends[q]`, which items come at the query time?

    Attributes:
        items: as in `Sequences`; the rows are of the same catalog.
        rows: item row per event of a catalog item; no event later than its user's last question.
        times: epoch microseconds per event.
        starts: first event of the user of each question. Prefixes of one user share their events.
        ends: the event after the last of each history.
        query_times: epoch microseconds per question.
        target_offsets: question `q` owns targets `target_offsets[q]` up to `target_offsets[q + 1]`;
            all 0 in the file of the test, whose targets no peer is given.
        target_rows: item row per target; 0 if the catalog does not hold the item.
    """

    items: NDArray[np.int64]
    rows: NDArray[np.int32]
    times: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    query_times: NDArray[np.int64]
    target_offsets: NDArray[np.int64]
    target_rows: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.starts)


@dataclass(frozen=True)
class Task:
    """What the process does with the files.

    Attributes:
        settings: the peer's settings, as `benchmarks.papers.peers.config` defines them.
        seed: of weights, batches and negatives.
        threads: of the process.
        budget_seconds: fitting ends with the first epoch after these; validation is not counted.
        monitor: the validation metric of early stopping.
        exclude_seen: whether validation leaves out the items of the history.
        session_seconds: an event nearer to the user's event before is of the same session.
    """

    settings: dict[str, Any]
    seed: int
    threads: int
    budget_seconds: float
    monitor: str
    exclude_seen: bool
    session_seconds: int

    def write(self, file: Path) -> None:
        """Write as JSON."""
        file.write_text(json.dumps(self.__dict__, indent=1) + "\n", "utf-8")

    @classmethod
    def read(cls, file: Path) -> Self:
        """Read what `write` wrote."""
        return cls(**json.loads(file.read_text("utf-8")))
