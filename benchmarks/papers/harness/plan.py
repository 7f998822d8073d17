"""The cells of a suite, and the rows that cannot be run."""

import hashlib
from pathlib import Path
from typing import NamedTuple

from benchmarks.papers.harness.cell import Cell
from benchmarks.papers.harness.schedule import Failure
from benchmarks.papers.harness.suite import Row, Suite, build_peer
from model.errors import TrainingError


class Selection(NamedTuple):
    """The rows and seeds to run, and the folders of data, results and bundles."""

    data: Path
    """The folder with the data folders."""
    results: Path
    """The folder of the records, one folder per suite."""
    rows: tuple[str, ...] = ()
    """All of them by default."""
    seeds: tuple[int, ...] = ()
    """For every row; by default those of the row."""
    is_recorded: bool = False
    """Whether pages will show the records: they show no seeds but those of a row."""
    device: str = "cpu"
    threads: int = 1
    """Threads of each cell."""
    epochs: int | None = None
    """The epochs that the suite was shortened to, if it was."""
    users: int | None = None
    keep: Path | None = None
    benchmark: str = "papers"


class Plan(NamedTuple):
    """The cells of a suite, and the rows that cannot be run."""

    cells: list[Cell]
    failures: list[Failure]


def plan(suite: Suite, selection: Selection) -> Plan:
    """Plan a cell for every selected row and seed; an invalid row is returned as a failure.

    Raises:
        TrainingError: if there is no such row or seed, or no data.
    """
    named = [suite.row(name) for name in selection.rows]
    for row in named if selection.is_recorded else []:
        if other := sorted({*selection.seeds} - {*row.seeds}):
            raise TrainingError(
                f"pages show the seeds {[*row.seeds]} of row {row.name} of suite {suite.name}, but "
                f"got {other}; choose among them, or add others to the row"
            )
    folder = find_data(selection.data, suite.data)
    files = _digest_files(folder)
    result = Plan([], [])
    first: list[Cell] = []
    later: list[Cell] = []
    for row in named or suite.rows:
        try:
            cells = [
                _build_cell(suite, row, seed, selection, folder, files)
                for seed in selection.seeds or row.seeds
                if seed in row.seeds or not selection.is_recorded
            ]
        except TrainingError as error:
            result.failures.append(Failure(f"{suite.name} {row.name}", str(error)))
        else:
            if not cells:
                continue
            # Later seeds take what the first one has chosen; of a peer at least the epochs.
            is_tuned = bool(row.search or row.trials or row.peer)
            (first if is_tuned else result.cells).append(cells[0])
            (later if is_tuned else result.cells).extend(cells[1:])
    return Plan(first + result.cells + later, result.failures)


def _build_cell(
    suite: Suite, row: Row, seed: int, selection: Selection, folder: Path, files: dict[str, str]
) -> Cell:
    name = f"{row.name}-{seed}"
    keep = None if selection.keep is None else (selection.keep / suite.name / name).absolute()
    return Cell(
        suite=suite.name,
        row=row.name,
        seed=seed,
        settings=suite.merge_settings(row, seed),
        config=suite.build_config(row, seed),
        folder=folder.absolute(),
        data=files,
        search=row.search,
        trials=row.trials,
        peer=build_peer(suite, row),
        peer_budget_seconds=suite.get_budget(row),
        record=(selection.results / suite.name / f"{name}.json").absolute(),
        device=selection.device,
        threads=selection.threads,
        epochs=selection.epochs,
        benchmark=selection.benchmark,
        users=selection.users,
        keep=keep,
    )


def find_data(data: Path, name: str) -> Path:
    """Find the folder of a data set: in the folder of all data sets, or by its own path.

    Raises:
        TrainingError: if there is none.
    """
    for folder in (data / name, Path(name)):
        if (folder / "events.parquet").is_file():
            return folder
    raise TrainingError(
        f"the data of a suite is a folder {name} with events.parquet, in {data} or here, but there "
        "is none; set the folder with --data"
    )


def _digest_files(folder: Path) -> dict[str, str]:
    files = (folder / name for name in ("events.parquet", "items.parquet"))
    return {
        f"{folder.name}/{file.name}": hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
        if file.exists()
    }
