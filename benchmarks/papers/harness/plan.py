"""The cells of a suite, and the rows that cannot be run."""

from pathlib import Path
from typing import NamedTuple

from benchmarks.papers.harness.cell import Cell
from benchmarks.papers.harness.provenance import digest_data, format_data
from benchmarks.papers.harness.record import Record, name_record
from benchmarks.papers.harness.row import Row
from benchmarks.papers.harness.schedule import Failure
from benchmarks.papers.harness.search import check_choice
from benchmarks.papers.harness.suite import Suite, build_peer
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
        TrainingError: if there is no such row or seed, or no data, or if a record of other data
            would be replaced.
    """
    named = [suite.row(name) for name in selection.rows]
    if selection.is_recorded and selection.seeds:
        _check_seeds(suite, named, selection.seeds)
    folder = find_data(selection.data, suite.data)
    files = digest_data(folder)
    failures: list[Failure] = []
    given: list[Cell] = []
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
            failures.append(Failure(f"{suite.name} {row.name}", str(error)))
            continue
        for cell in cells:
            check_data(cell.record, cell.folder, cell.data)
        # Later seeds take what the first one has chosen; of a peer at least the epochs.
        if row.search or row.trials or row.peer:
            first += cells[:1]
            later += cells[1:]
        else:
            given += cells
    return Plan(first + given + later, failures)


def _build_cell(
    suite: Suite, row: Row, seed: int, selection: Selection, folder: Path, files: dict[str, str]
) -> Cell:
    record = (selection.results / suite.name / name_record(row.name, seed)).absolute()
    keep = None if selection.keep is None else selection.keep / suite.name / record.stem
    cell = Cell(
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
        record=record,
        device=selection.device,
        threads=selection.threads,
        epochs=selection.epochs,
        benchmark=selection.benchmark,
        users=selection.users,
        keep=None if keep is None else keep.absolute(),
    )
    check_choice(cell.search_space, cell.peer or cell.config)
    return cell


def _check_seeds(suite: Suite, named: list[Row], seeds: tuple[int, ...]) -> None:
    """Check that pages show the seeds of every named row, or else those of any row."""
    for row in named:
        if other := sorted({*seeds} - {*row.seeds}):
            raise TrainingError(
                f"pages show the seeds {[*row.seeds]} of row {row.name} of suite {suite.name}, but "
                f"got {other}; choose among them, or add others to the row"
            )
    known = {seed for row in suite.rows for seed in row.seeds}
    if known and known.isdisjoint(seeds):
        raise TrainingError(
            f"rows of suite {suite.name} have the seeds {sorted(known)}, but got {[*seeds]}; "
            "choose among them, or add others to a row"
        )


def check_data(record: Path, folder: Path, data: dict[str, str]) -> None:
    """Check that a record, if there is one, is of the data in a folder.

    Args:
        data: the sha256 of every file of the data, from `digest_data`.

    Raises:
        TrainingError: if it is of others.
    """
    found = Record.find(record)
    if found is not None and found.data != data:
        raise TrainingError(
            f"the records of a suite are of the same data, but {record} is of "
            f"{format_data(found.data)}, and {folder} has {format_data(data)}; name the folder of "
            "its data with --data, or delete the record"
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
