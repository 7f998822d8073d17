"""Which cells a suite has, and which of them can be run."""

import hashlib
from pathlib import Path
from typing import NamedTuple

from benchmarks.papers.harness.cell import Cell
from benchmarks.papers.harness.schedule import Failure
from benchmarks.papers.harness.suite import Row, Suite
from model.errors import TrainingError


class Selection(NamedTuple):
    """What is wanted of a suite, and where things are."""

    data: Path
    """The folder with the data folders."""
    results: Path
    """The folder of the records, one folder per suite."""
    rows: tuple[str, ...] = ()
    """All of them by default."""
    seeds: tuple[int, ...] = ()
    """For every row; each row's own by default."""
    device: str = "cpu"
    users: int | None = None
    keep: Path | None = None


class Plan(NamedTuple):
    """The cells of a suite, and the rows that cannot be run."""

    cells: list[Cell]
    failures: list[Failure]


def plan(suite: Suite, wishes: Selection) -> Plan:
    """Every wanted row with every seed; a row that does not fit stops no other.

    Raises:
        TrainingError: if there is no such row, or no data.
    """
    folder = _data_folder(wishes.data, suite.data)
    files = _digests(folder)
    found = Plan([], [])
    for row in [suite.row(name) for name in wishes.rows] or suite.rows:
        try:
            for seed in wishes.seeds or row.seeds:
                found.cells.append(_cell(suite, row, seed, wishes, folder, files))
        except TrainingError as error:
            found.failures.append(Failure(f"{suite.name} {row.name}", str(error)))
    return found


def _cell(
    suite: Suite, row: Row, seed: int, wishes: Selection, folder: Path, files: dict[str, str]
) -> Cell:
    name = f"{row.name}-{seed}"
    keep = None if wishes.keep is None else (wishes.keep / suite.name / name).absolute()
    return Cell(
        suite=suite.name,
        row=row.name,
        seed=seed,
        settings=suite.settings(row, seed),
        config=suite.config(row, seed),
        folder=folder.absolute(),
        data=files,
        record=(wishes.results / suite.name / f"{name}.json").absolute(),
        device=wishes.device,
        users=wishes.users,
        keep=keep,
    )


def _data_folder(data: Path, name: str) -> Path:
    for folder in (data / name, Path(name)):
        if (folder / "events.parquet").is_file():
            return folder
    raise TrainingError(
        f"the data of a suite is a folder {name} with events.parquet, in {data} or here, but there "
        "is none; say where with --data"
    )


def _digests(folder: Path) -> dict[str, str]:
    files = (folder / name for name in ("events.parquet", "items.parquet"))
    return {
        f"{folder.name}/{file.name}": hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
        if file.exists()
    }
