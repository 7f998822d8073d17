from pathlib import Path

import pytest

from benchmarks.papers.harness.plan import Selection, plan
from benchmarks.papers.harness.suite import Suite
from model.errors import TrainingError
from tests.benchmarks.tiny_suite import SUITE, folder_with_suite, record_of, suite_in


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_with_suite(tmp_path_factory.mktemp("papers"))


@pytest.fixture(scope="module")
def suite(folder: Path) -> Suite:
    return Suite.read(folder / "suites" / "tiny.toml")


def test_a_plan_skips_an_invalid_row(folder: Path, suite: Suite) -> None:
    wrong = suite.row("counts").model_copy(update={"encoder": {"kind": "crystal_ball"}})
    rows = tuple(wrong if row.name == "counts" else row for row in suite.rows)
    suite = suite.model_copy(update={"rows": rows})
    found = plan(suite, Selection(folder / "data", folder / "results"))
    assert [cell.name for cell in found.cells] == [
        "tiny mercer 0",
        "tiny mercer 3",
        "tiny positional 0",
        "tiny degree_2 0",
    ]
    assert [failure.name for failure in found.failures] == ["tiny counts"]


def test_a_named_row_has_its_own_seeds_only(folder: Path, suite: Suite) -> None:
    selection = Selection(folder / "data", folder / "results", seeds=(0, 7), is_recorded=True)
    assert {cell.seed for cell in plan(suite, selection).cells} == {0}
    assert {cell.seed for cell in plan(suite, selection._replace(is_recorded=False)).cells} == {
        0,
        7,
    }
    with pytest.raises(TrainingError, match=r"seeds \[0, 3\] of row mercer .* got \[7\]"):
        plan(suite, selection._replace(rows=("mercer",)))


def test_missing_data_is_refused(suite: Suite, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"folder tiny with events\.parquet"):
        plan(suite, Selection(tmp_path, tmp_path))


def test_seeds_of_no_row_are_refused(folder: Path, suite: Suite) -> None:
    selection = Selection(folder / "data", folder / "results", seeds=(5,), is_recorded=True)
    with pytest.raises(TrainingError, match=r"tiny have the seeds \[0, 3\], but got \[5\]"):
        plan(suite, selection)


def test_a_record_of_other_data_is_not_replaced(tmp_path: Path) -> None:
    suite = suite_in(tmp_path)
    selection = Selection(tmp_path / "data", tmp_path / "results", ("mercer",))
    record = record_of(suite, suite.row("mercer"), 3, 0.5)
    record.write(tmp_path / "results" / "tiny" / "mercer-3.json")
    with pytest.raises(
        TrainingError,
        match=r"mercer-3\.json is of tiny/events\.parquet 0{12}, and .* --data, or delete",
    ):
        plan(suite, selection)
    # Other rows can be run, and so can this one once the record is gone.
    assert plan(suite, selection._replace(rows=("counts",))).cells
    (tmp_path / "results" / "tiny" / "mercer-3.json").write_text("half")
    assert len(plan(suite, selection).cells) == 2


@pytest.mark.parametrize(
    "row",
    [
        'encoder.kind = "self_attention"\nsearch = { "encoder.luck" = [1, 2] }',
        'encoder.kind = "self_attention"\nsearch = { "fit.epochs" = [1, 2, -1] }',
        'encoder.kind = "self_attention"\ntrials = [{ "fit.epochs" = 1 }, { "fit.luck" = 1 }]',
        'role = "peer"\npeer.kind = "rectools_hstu"\ntrials = [{ blocks = 2 }, { luck = 2 }]',
        'role = "peer"\npeer.kind = "rectools_hstu"\nsearch = { blocks = [2, 0] }',
    ],
)
def test_a_choice_of_invalid_settings_is_not_planned(row: str, tmp_path: Path) -> None:
    head = '[[rows]]\nname = "wrong"\nlabel = "Wrong"\nclass = "query time given"\n'
    suite = suite_in(tmp_path, SUITE + head + row)
    found = plan(suite, Selection(tmp_path / "data", tmp_path / "results", ("wrong", "counts")))
    assert [cell.row for cell in found.cells] == ["counts"]
    (failure,) = found.failures
    assert failure.name == "tiny wrong"
    assert "names known settings with values that fit, but " in failure.reason
    assert failure.reason.endswith("; correct the row")
