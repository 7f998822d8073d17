from pathlib import Path

import pytest

from benchmarks.papers.harness.measured_rows import MeasuredRow, read_measured
from benchmarks.papers.harness.measured_suite import read_measured_suites
from benchmarks.papers.harness.suite import Suite
from benchmarks.papers.pages.tables_page import render_tables
from model.errors import TrainingError
from tests.benchmarks.tiny_suite import SUITE, record_of, suite_in


def test_a_record_counts_while_its_settings_equal_the_suites(
    suite: Suite, tmp_path: Path, measured: list[MeasuredRow]
) -> None:
    for each in measured:
        for record in each.records:
            record.write(tmp_path / "results" / "tiny" / f"{record.row}-{record.seed}.json")
    assert read_measured(tmp_path, suite) == measured
    changed = suite.shorten(9)
    assert read_measured(tmp_path, changed) == []
    assert "A tiny world" in render_tables(read_measured_suites(tmp_path))


def test_a_record_of_a_seed_beside_the_rows_does_not_count(suite: Suite, tmp_path: Path) -> None:
    row = suite.row("mercer")
    for seed in (0, 3, 9):
        record = record_of(suite, row, seed, 0.5)
        record.write(tmp_path / "results" / "tiny" / f"mercer-{seed}.json")
    (measured,) = read_measured(tmp_path, suite)
    assert [record.seed for record in measured.records] == [0, 3]


@pytest.mark.parametrize("role", ["default", "method"])
def test_records_of_other_data_than_the_newest_do_not_count(role: str, tmp_path: Path) -> None:
    suite = suite_in(tmp_path, SUITE.replace("seeds = [0, 3]", f'role = "{role}"\nseeds = [0, 3]'))
    for name in ("mercer", "positional", "counts"):
        record = record_of(suite, suite.row(name), 0, 0.5)
        if name == "mercer":
            newer = {"data": {"tiny/events.parquet": "1" * 64}, "started_at": "2026-01-02"}
            record = record.model_copy(update=newer)
        record.write(tmp_path / "results" / "tiny" / f"{name}-0.json")
    measured = read_measured(tmp_path, suite)
    assert [each.row.name for each in measured] == ["mercer"]
    # A newer record of another row counts only without one of the default.
    record_of(suite, suite.row("counts"), 0, 0.5).model_copy(
        update={"started_at": "2026-01-03"}
    ).write(tmp_path / "results" / "tiny" / "counts-0.json")
    measured = read_measured(tmp_path, suite)
    of_default = ["mercer"] if role == "default" else ["positional", "counts"]
    assert [each.row.name for each in measured] == of_default


def test_a_copy_of_a_record_is_no_other_seed(suite: Suite, tmp_path: Path) -> None:
    folder = tmp_path / "results" / "tiny"
    record = record_of(suite, suite.row("mercer"), 0, 0.5)
    for name in ("mercer-0.json", "mercer-0-old.json", "mercer-00.json"):
        record.write(folder / name)
    (measured,) = read_measured(tmp_path, suite)
    assert measured.records == (record,)
    record.write(folder / "mercer-3.json")
    with pytest.raises(TrainingError, match=r"mercer-3\.json is of .* row mercer, seed 0; move it"):
        read_measured(tmp_path, suite)
