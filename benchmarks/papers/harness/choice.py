"""The choice of a row's settings, made once for all of its seeds."""

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock
from pydantic import TypeAdapter

from benchmarks.papers.harness.record import TriedSettings, write_atomically
from benchmarks.papers.harness.stopwatch import Stopwatch
from benchmarks.papers.harness.suite import Settings, digest


class Chosen(NamedTuple):
    """What the settings of a row were chosen from, and what the choice took."""

    trials: tuple[TriedSettings, ...] = ()
    seconds: float = 0.0
    cpu_seconds: float = 0.0


def choose_once(
    folder: Path,
    row: str,
    settings: Settings,
    data: Mapping[str, str],
    choose: Callable[[], tuple[TriedSettings, ...]],
) -> Chosen:
    """Choose the settings of a row once, for all of its seeds; what was tried is kept in a file.

    Processes of other seeds wait for the one that chooses.

    Args:
        folder: the folder of the records of a suite, in which the file is kept.
        row: the row's name.
        settings: the row's settings before the choice; the seed among them does not count.
        data: the sha256 of every file of the data.
        choose: tries settings, in order.
    """
    identity = digest({**_drop_seed(settings), "data": {**data}})
    file = folder / "trials" / f"{row}-{identity[:12]}.json"
    trials = TypeAdapter(tuple[TriedSettings, ...])
    stopwatch = Stopwatch()
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(Path(tempfile.gettempdir()) / f"kairos-{identity}.lock"):
        if file.exists():
            return Chosen(trials.validate_json(file.read_bytes()), *stopwatch.read())
        tried = choose()
        write_atomically(file, trials.dump_python(tried, mode="json"))
        return Chosen(tried, *stopwatch.read())


def _drop_seed(settings: Settings) -> Settings:
    fit = settings.get("fit")
    if not isinstance(fit, dict):
        return settings
    return settings | {"fit": {name: value for name, value in fit.items() if name != "seed"}}
