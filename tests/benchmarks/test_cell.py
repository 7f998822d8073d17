import io
import json
import shutil
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from benchmarks.papers.harness.cell import Cell, ProgressEvent, Run
from benchmarks.papers.harness.plan import Selection, plan
from benchmarks.papers.harness.question_ranks import RankedQuestions
from benchmarks.papers.harness.recipe_run import run_recipe
from benchmarks.papers.harness.record import Record
from benchmarks.papers.harness.run_cell import main, run_cell
from benchmarks.papers.harness.suite import Suite
from model.errors import TrainingError
from model.store.opening import open_predictor
from tests import tiny
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


@pytest.fixture
def counting(tmp_path: Path) -> Cell:
    """A cell of a model that is fitted by counting, with data of its own."""
    folder = folder_with_suite(tmp_path)
    suite = Suite.read(folder / "suites" / "tiny.toml")
    selection = Selection(folder / "data", folder / "results", ("counts",))
    return plan(suite, selection).cells[0]


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
    assert len(questions.is_repeat) == rows["questions"]


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


def test_a_directory_in_place_of_a_record_is_named(tmp_path: Path) -> None:
    (tmp_path / "mercer-0.json").mkdir()
    with pytest.raises(TrainingError, match=r"mercer-0\.json is not: .*run its row again"):
        Record.read(tmp_path / "mercer-0.json")


@pytest.mark.parametrize("part", ["report", "ranks"])
def test_a_record_without_its_model_is_refused(part: str, tmp_path: Path) -> None:
    suite = suite_in(tmp_path)
    (row,) = ranked_rows(tmp_path, suite, {"mercer": [3]})
    file = tmp_path / "mercer-0.json"
    row.records[0].write(file)
    content = json.loads(file.read_text())
    del (content["report"]["rows"] if part == "report" else content["ranks"])["model"]
    file.write_text(json.dumps(content))
    with pytest.raises(TrainingError, match=rf"mercer-0\.json is not: .*{part}.* lacks the model"):
        Record.read(file)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_record_without_a_figure_is_refused(value: float, tmp_path: Path) -> None:
    suite = suite_in(tmp_path)
    file = tmp_path / "mercer-0.json"
    record_of(suite, suite.row("mercer"), 0, 0.5).write(file)
    content = json.loads(file.read_text())
    content["report"]["rows"]["model"]["mrr"] = value
    file.write_text(json.dumps(content))
    with pytest.raises(TrainingError, match=r"report.rows has no figure of \['mrr'\] for model"):
        Record.read(file)


def test_questions_of_another_catalog_are_not_overwritten(tmp_path: Path) -> None:
    suite = suite_in(tmp_path)
    ranked_rows(tmp_path, suite, {"mercer": [3]})
    (file,) = (tmp_path / "results" / "tiny" / "questions").iterdir()
    questions = RankedQuestions.read(file)
    # A catalog of as many items that lacks as many targets.
    other = questions.model_copy(update={"catalog_sha256": "d" * 64})
    with pytest.raises(TrainingError, match=r"\(c{12}\) has 20 items .* this row \(d{12}\) 20 and"):
        other.write(tmp_path / "results" / "tiny")
    assert RankedQuestions.read(file) == questions


def test_a_row_of_another_catalog_is_refused_before_its_run(
    counting: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run_cell(counting, lambda _: None)
    assert first.questions_sha256 is not None
    file = RankedQuestions.find_file(counting.record.parent, first.questions_sha256)
    content = json.loads(file.read_text())
    file.write_text(json.dumps(content | {"catalog_sha256": "d" * 64}))
    counting.record.unlink()
    monkeypatch.setattr(f"{run_cell.__module__}.run_recipe", None)
    with pytest.raises(TrainingError, match="all rows of a suite rank the same catalog"):
        run_cell(counting, lambda _: None)
    file.write_text(json.dumps(content))
    monkeypatch.undo()
    assert run_cell(counting, lambda _: None).report == first.report


def test_the_command_of_a_record_names_its_device(counting: Cell) -> None:
    other = counting.model_copy(update={"device": "cpu:0"})
    assert run_cell(other, lambda _: None).command.endswith(" --seeds 0 --device cpu:0")


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


def test_a_cell_of_other_data_than_planned_is_not_run(counting: Cell) -> None:
    tiny.gap_world(users=20, length=8).write_parquet(counting.folder / "events.parquet")
    with pytest.raises(TrainingError, match=r"data of its plan, tiny/events\.parquet \w{12}, but"):
        run_cell(counting, lambda _: None)
    assert not counting.record.exists()


def test_data_that_change_during_a_run_leave_no_record(
    counting: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_and_change(*arguments: Any) -> Run:
        found = run_recipe(*arguments)
        tiny.gap_world(users=20, length=8).write_parquet(counting.folder / "events.parquet")
        return found

    monkeypatch.setattr(f"{run_cell.__module__}.run_recipe", run_and_change)
    with pytest.raises(TrainingError, match=r"data of its plan, tiny/events\.parquet \w{12}, but"):
        run_cell(counting, lambda _: None)
    assert not counting.record.exists()


def test_a_record_names_the_code_at_the_start_of_its_run(
    counting: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = ["at the start"]

    def run_and_edit(*arguments: Any) -> Run:
        code[0] = "edited meanwhile"
        return run_recipe(*arguments)

    monkeypatch.setattr(f"{run_cell.__module__}.run_recipe", run_and_edit)
    monkeypatch.setattr(f"{run_cell.__module__}.digest_code", lambda: code[0])
    assert run_cell(counting, lambda _: None).code == "at the start"


def test_a_cell_that_another_process_runs_is_waited_for(
    counting: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Record] = []
    second = Thread(target=lambda: found.append(run_cell(counting, lambda _: None)))

    def run_beside_another(*arguments: Any) -> Run:
        second.start()  # twice would be an error
        second.join(timeout=0.3)
        assert second.is_alive()
        return run_recipe(*arguments)

    monkeypatch.setattr(f"{run_cell.__module__}.run_recipe", run_beside_another)
    first = run_cell(counting, lambda _: None)
    second.join(timeout=60)
    assert found == [first]


def test_a_record_is_written_before_its_bundle_is_kept(
    counting: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(shutil, "copytree", fail)
    keeping = counting.model_copy(update={"keep": tmp_path / "bundles"})
    with pytest.raises(TrainingError, match=r"no space left; .* delete .*counts-0\.json"):
        run_cell(keeping, lambda _: None)
    assert counting.is_done
