"""The choice of a row's settings by trials, made once for all of its seeds."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter

from benchmarks.papers.harness.record import TuningTrial, lock_file, write_atomically
from benchmarks.papers.harness.search import SearchSpace, find_best, search_settings
from benchmarks.papers.harness.settings import Settings, digest
from benchmarks.papers.harness.stopwatch import Stopwatch
from model.errors import DivergedError, TrainingError
from training.problems import format_problems

TRIALS = TypeAdapter(tuple[TuningTrial, ...])

DIVERGED = -1.0
"""The value of a trial whose training diverged."""


class Tuning(NamedTuple):
    """The trials that the settings of a row were chosen from, and the time this process spent."""

    trials: tuple[TuningTrial, ...] = ()
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def count_cpu_seconds(self, seed: int) -> float:
        """Count the processor seconds of the trials of one seed, of this process or an earlier."""
        return sum(trial.cpu_seconds for trial in self.trials if trial.seed == seed)


def tune_once(
    file: Path,
    space: SearchSpace,
    measure: Callable[[Settings], TuningTrial],
    report_trial: Callable[[int, TuningTrial], None],
    *,
    seed: int = 0,
    code: str = "",
) -> Tuning:
    """Choose the settings of a row once, for all of its seeds.

    Every trial is kept in a file when it ends, and is not made again: not by another seed, nor
    after an interrupt. Processes of other seeds wait for the one that chooses.

    Args:
        file: of the trials, as from `find_trials`.
        space: what is chosen from.
        measure: tries some settings.
        report_trial: receives the number of each new trial, from 1, and its result.
        seed: of the trials, to name those that diverge.
        code: a digest of the code that runs, for trials that name none.

    Raises:
        TrainingError: if the file is broken, or lacks trials and is of another seed; or if the
            training of every trial diverged.
    """
    stopwatch = Stopwatch()
    file.parent.mkdir(parents=True, exist_ok=True)
    with lock_file(file):
        tried = [*read_trials(file)] if file.exists() else []

        def measure_once(settings: Settings) -> TuningTrial:
            for earlier in tried:
                if earlier.settings == settings:
                    return earlier
            if tried and tried[0].seed != seed:
                raise TrainingError(
                    f"all trials of a row are of one seed, but those of {file}, which are not "
                    f"complete, are of seed {tried[0].seed}, and this run is of seed {seed}; run "
                    "that seed first, or delete the file"
                )
            lap = Stopwatch()
            try:
                measured = measure(settings)
            except DivergedError as error:
                # Other settings may do, and it would diverge again.
                measured = TuningTrial(
                    settings=settings, value=DIVERGED, seed=seed, problem=str(error)
                )
            _, cpu_seconds = lap.read()
            found = {"cpu_seconds": round(cpu_seconds, 1), "code": measured.code or code}
            tried.append(measured.model_copy(update=found))
            write_atomically(file, TRIALS.dump_python(tuple(tried), mode="json"))
            report_trial(len(tried), tried[-1])
            return tried[-1]

        trials = search_settings(space, measure_once)
        if (best := find_best(trials)).problem:
            raise TrainingError(
                f"some settings of a row must have a metric, but all {len(trials)} tried diverged, "
                f"the first by: {best.problem}; change what they are chosen from, and delete {file}"
            )
        return Tuning(trials, *stopwatch.read())


def read_trials(file: Path) -> tuple[TuningTrial, ...]:
    """Read the trials of a row.

    Raises:
        TrainingError: if the file is broken.
    """
    try:
        return TRIALS.validate_json(file.read_bytes())
    except (OSError, ValueError) as error:
        raise TrainingError(
            f"the trials of a row are JSON as `kairos bench papers` writes it, but {file} is not: "
            f"{format_problems(error)}; restore it, or delete it to try the settings again"
        ) from error


def find_trials(folder: Path, row: str, settings: Settings, data: Mapping[str, str]) -> Path:
    """Return the file of the trials of a row.

    Args:
        folder: of the records of a suite.
        settings: the row's settings before the choice; the seed among them does not count.
        data: the sha256 of every file of the data.
    """
    identity = digest({**_drop_seed(settings), "data": {**data}})
    return folder / "trials" / f"{row}-{identity[:12]}.json"


def _drop_seed(settings: Settings) -> Settings:
    fit = settings.get("fit")
    if not isinstance(fit, dict):
        return settings
    return settings | {"fit": {name: value for name, value in fit.items() if name != "seed"}}
