import io
from pathlib import Path

import pytest

from benchmarks.papers.harness.cell import Cell, ProgressEvent
from benchmarks.papers.harness.plan import Selection, plan
from benchmarks.papers.harness.question_ranks import RankedQuestions
from benchmarks.papers.harness.record import Record
from benchmarks.papers.harness.run_cell import main, run_cell
from benchmarks.papers.harness.suite import Suite
from model.errors import TrainingError
from model.store.opening import open_predictor
from tests.benchmarks.tiny_suite import folder_with_suite, ranked_rows, record_of, suite_in


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_with_suite(tmp_path_factory.mktemp("papers"))


@pytest.fixture(scope="module")
def suite(folder: Path) -> Suite:
    return Suite.read(folder / "suites" / "tiny.toml")


@pytest.fixture(scope="module")
def cell(folder: Path, suite: Suite) -> Cell:
    selection = Selection(
        folder / "data", folder / "results", ("positional",), (7,), keep=folder / "bundles"
    )
    return plan(suite, selection).cells[0]


@pytest.fixture(scope="module")
def ran(cell: Cell) -> tuple[Record, list[ProgressEvent]]:
    signs: list[ProgressEvent] = []
    return run_cell(cell, signs.append), signs


def test_a_cell_writes_a_record_that_reproduces_it(
    cell: Cell, ran: tuple[Record, list[ProgressEvent]]
) -> None:
    record = Record.read(cell.record)
    assert record == ran[0]
    assert cell.record.name == "positional-7.json"
    assert (record.epochs, record.seed, record.threads) == (2, 7, 1)
    assert record.parameters > 24 * 8
    assert record.command == "kairos bench papers --suite tiny --rows positional --seeds 7"
    assert [*record.data] == ["tiny/events.parquet"]
    assert 0 <= record.report.rows["model"]["accuracy"] <= 1
    assert not [*cell.record.parent.glob(".*")]


def test_its_progress_events_cover_every_epoch(ran: tuple[Record, list[ProgressEvent]]) -> None:
    epochs = [sign for sign in ran[1] if sign.validation is not None]
    assert [(sign.epoch, sign.of) for sign in epochs] == [(1, 2), (2, 2)]


def test_a_record_keeps_the_rank_of_every_target(
    cell: Cell, ran: tuple[Record, list[ProgressEvent]]
) -> None:
    record = ran[0]
    assert record.questions_sha256 is not None
    file = RankedQuestions.find_file(cell.record.parent, record.questions_sha256)
    questions = RankedQuestions.read(file)
    for ranker in ("model", "model_withheld"):
        ranks = questions.read_ranks(record.ranks[ranker])
        rows = record.report.rows[ranker]
        assert ranks.questions == rows["questions"]
        assert ranks.per_question("mrr").mean() == pytest.approx(rows["mrr"])
    for name, encoded in questions.references.items():
        values = questions.read_ranks(encoded).per_question("ndcg@10")
        assert values.mean() == pytest.approx(record.report.rows[name]["ndcg@10"])
    after = record.report.after_a_gap["model"]["questions"]
    assert questions.is_after_gap.sum() == after


def test_a_record_keeps_the_learning_curve(ran: tuple[Record, list[ProgressEvent]]) -> None:
    curve = ran[0].curve
    assert [point.epoch for point in curve] == [1, 2]
    assert all("accuracy" in point.validation for point in curve)
    assert 0 <= curve[0].seconds <= curve[1].seconds <= ran[0].seconds


def test_its_bundle_can_be_kept(cell: Cell, ran: tuple[Record, list[ProgressEvent]]) -> None:
    assert cell.keep is not None
    (kept,) = cell.keep.iterdir()
    assert open_predictor(kept).bundle.manifest.provenance["best_epoch"] == ran[0].best_epoch


@pytest.mark.usefixtures("ran")
def test_a_cell_is_done_while_settings_and_data_stay(cell: Cell) -> None:
    fit = cell.settings["fit"]
    assert isinstance(fit, dict)
    longer = cell.settings | {"fit": fit | {"epochs": 3}}
    assert cell.is_done
    assert not cell.model_copy(update={"settings": longer}).is_done
    assert not cell.model_copy(update={"data": {"tiny/events.parquet": "1"}}).is_done
    assert not cell.model_copy(update={"record": cell.record.with_name("none.json")}).is_done


def test_half_a_record_does_not_count(cell: Cell, tmp_path: Path) -> None:
    half = tmp_path / "half.json"
    half.write_text('{"suite": "tiny"')
    assert not cell.model_copy(update={"record": half}).is_done
    with pytest.raises(TrainingError, match=r"half\.json is not: .*run its row again"):
        Record.read(half)
    with pytest.raises(TrainingError, match=r"none\.json, but cannot be read: it is missing"):
        RankedQuestions.read(tmp_path / "none.json")


def test_questions_of_another_catalog_are_not_overwritten(tmp_path: Path) -> None:
    suite = suite_in(tmp_path)
    ranked_rows(tmp_path, suite, {"mercer": [3]})
    (file,) = (tmp_path / "results" / "tiny" / "questions").iterdir()
    questions = RankedQuestions.read(file)
    other = questions.model_copy(update={"cold_targets": 5})
    with pytest.raises(TrainingError, match="it lacks 3, and of the same targets of this row 5"):
        other.write(tmp_path / "results" / "tiny")
    assert RankedQuestions.read(file) == questions


def test_a_record_is_written_over_at_once(tmp_path: Path) -> None:
    suite = suite_in(tmp_path)
    file = tmp_path / "results" / "record.json"
    for accuracy in (0.1, 0.2):
        record_of(suite, suite.row("mercer"), 0, accuracy).write(file)
    assert Record.read(file).report.rows["model"]["accuracy"] == 0.2
    assert [path.name for path in file.parent.iterdir()] == ["record.json"]


@pytest.mark.slow
def test_a_sample_learns_from_fewer_users(cell: Cell, tmp_path: Path) -> None:
    few = cell.model_copy(update={"users": 20, "keep": None, "record": tmp_path / "few.json"})
    record = run_cell(few, lambda _: None)
    assert record.report.rows["model"]["questions"] <= 20


@pytest.mark.slow
def test_a_process_prints_progress_and_errors(
    cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    quick = cell.model_copy(update={"keep": None, "record": tmp_path / "record.json"})
    monkeypatch.setattr("sys.stdin", io.StringIO(quick.model_dump_json()))
    assert main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert ProgressEvent.model_validate_json(lines[-1]).share == 1

    broken = cell.model_copy(update={"folder": tmp_path / "nowhere"})
    monkeypatch.setattr("sys.stdin", io.StringIO(broken.model_dump_json()))
    assert main() == 1
    assert "nowhere" in capsys.readouterr().err


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
