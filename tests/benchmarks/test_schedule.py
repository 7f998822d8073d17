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


def test_a_directory_is_no_place_for_a_record(tmp_path: Path) -> None:
    suite = suite_in(tmp_path)
    selection = Selection(tmp_path / "data", tmp_path / "results", ("counts",))
    cells = plan(suite, selection).cells
    cells[0].record.mkdir(parents=True)
    with pytest.raises(TrainingError, match=r"counts-0\.json is a directory; move it away"):
        run_cells(cells, jobs=1, progress=NoCell())
