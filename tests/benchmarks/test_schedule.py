import re
from pathlib import Path

import pytest

from benchmarks.papers.harness.cell import Cell, ProgressEvent
from benchmarks.papers.harness.plan import Selection, plan
from benchmarks.papers.harness.record import Record
from benchmarks.papers.harness.schedule import run_cells
from model.errors import TrainingError
from tests.benchmarks.tiny_suite import ranked_rows, suite_in


class NoCell:
    """Progress of no cell."""

    def start(self, cell: Cell) -> None:
        raise AssertionError(cell.name)

    def update(self, cell: Cell, event: ProgressEvent) -> None: ...

    def finish(self, cell: Cell, record: Record) -> None: ...

    def fail(self, cell: Cell, reason: str) -> None: ...


@pytest.mark.parametrize(
    ("taken", "message"),
    [
        ("results", r"results/tiny cannot be: .* choose another with --folder"),
        ("results/tiny", r"results/tiny cannot be: .* choose another with --folder"),
        ("results/tiny/questions", r"tiny/questions cannot be: .* choose another with --folder"),
        ("bundles", r"bundles/tiny/counts-0 cannot be: .* choose another with --keep"),
    ],
)
def test_outputs_are_checked_before_cells_run(taken: str, message: str, tmp_path: Path) -> None:
    suite = suite_in(tmp_path)
    selection = Selection(tmp_path / "data", tmp_path / "results", ("counts",))
    cells = plan(suite, selection._replace(keep=tmp_path / "bundles")).cells
    file = tmp_path / taken
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    with pytest.raises(TrainingError, match=message):
        run_cells(cells, jobs=1, progress=NoCell())
    assert file.stat().st_size == 0


def test_broken_questions_run_no_cell(tmp_path: Path) -> None:
    suite = suite_in(tmp_path)
    selection = Selection(tmp_path / "data", tmp_path / "results", ("counts",))
    ranked_rows(tmp_path, suite, {"mercer": [3]})
    (file,) = (tmp_path / "results" / "tiny" / "questions").iterdir()
    file.write_text("{}")
    with pytest.raises(TrainingError, match=rf"{file.name}, but cannot be read"):
        run_cells(plan(suite, selection).cells, jobs=1, progress=NoCell())


class Failures(NoCell):
    """Progress of cells that fail: their reasons."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def start(self, cell: Cell) -> None: ...

    def fail(self, cell: Cell, reason: str) -> None:
        self.reasons.append(reason)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo no such loss >&2; exit 3", "no such loss"),
        ("exit 3", "ended with 3"),
        ("echo one >&2; echo two >&2; exit 1", r"two; its whole output is in .*kairos-tiny-counts"),
        ("kill -9 $$", "its process was ended by SIGKILL; free memory"),
        ("echo a warning >&2; kill -9 $$", r"ended by SIGKILL; .* its whole output is in .*kairos"),
    ],
)
def test_a_failed_cell_says_why(
    script: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(python))
    suite = suite_in(tmp_path)
    selection = Selection(tmp_path / "data", tmp_path / "results", ("counts", "mercer"))
    failures = Failures()
    failed = run_cells(plan(suite, selection).cells, jobs=2, progress=failures)
    # A failure stops no other cell.
    assert [failure.name for failure in failed] == [
        "tiny counts 0",
        "tiny mercer 0",
        "tiny mercer 3",
    ]
    assert all(re.search(reason, failure.reason) for failure in failed if "counts" in failure.name)
    assert sorted(failures.reasons) == sorted(failure.reason for failure in failed)


def test_a_cell_that_cannot_be_started_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "none"))
    suite = suite_in(tmp_path)
    selection = Selection(tmp_path / "data", tmp_path / "results", ("counts", "mercer"))
    failed = run_cells(plan(suite, selection).cells, jobs=1, progress=Failures())
    assert len(failed) == 3
    assert all("No such file" in failure.reason for failure in failed)


def test_a_directory_is_no_place_for_a_record(tmp_path: Path) -> None:
    suite = suite_in(tmp_path)
    selection = Selection(tmp_path / "data", tmp_path / "results", ("counts",))
    cells = plan(suite, selection).cells
    cells[0].record.mkdir(parents=True)
    with pytest.raises(TrainingError, match=r"counts-0\.json is a directory; move it away"):
        run_cells(cells, jobs=1, progress=NoCell())
