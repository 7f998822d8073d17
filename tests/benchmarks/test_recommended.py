import tomllib
from pathlib import Path

import polars as pl
import pytest

from benchmarks.papers.harness.plan import Selection, plan
from benchmarks.papers.harness.recommended import recommend_for_suite
from benchmarks.papers.harness.run_cell import run_cell
from benchmarks.papers.harness.settings import digest
from benchmarks.papers.harness.suite import RECOMMENDED, Suite
from model.errors import TrainingError
from tests import tiny
from tests.benchmarks.tiny_suite import SUITE, folder_with_suite, record_of, suite_in
from training.config import RunConfig
from training.data.split import ByTimeConfig
from training.inspection import recommendation

ROWS = """
[[rows]]
name = "kairos"
label = "Kairos, recommended recipe"
class = "query time given"
recipe = "recommended"

[[rows]]
name = "small"
label = "Small"
class = "query time given"
recipe = "recommended"
without = ["wide.repeats", "fit.scalar_learning_rate", "fit.weight_decay"]
wide.calendar = false
encoder = { dim = 8, layers = 1, feed_forward = 8, time_encoding.periods = 2 }
fit = { epochs = 1 }
"""
WITH_RECOMMENDED = SUITE.replace("[base.split]", "[base]\nprofile_histories = 7\n\n[base.split]", 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return folder_with_suite(tmp_path, WITH_RECOMMENDED + ROWS)


@pytest.fixture
def suite(folder: Path) -> Suite:
    suite = Suite.read(folder / "suites" / "tiny.toml")
    return recommend_for_suite(suite, folder / "data", folder=folder)


def build(suite: Suite, row: str) -> RunConfig:
    return suite.build_config(suite.row(row), 5)


def test_the_row_has_the_recommended_recipe_of_its_suite(suite: Suite, folder: Path) -> None:
    written = RunConfig.read(folder / RECOMMENDED / "tiny.toml")
    config = build(suite, "kairos")
    assert config.encoder == written.encoder
    assert config.wide == written.wide is not None
    assert config.split == ByTimeConfig(test=0.15, validation=0.15)
    assert config.profile_histories == 7
    assert config.fit == written.fit.model_copy(update={"seed": 5, "refit": False})
    assert written.fit.refit


def test_the_recipe_reads_the_events_before_the_test_only(folder: Path, suite: Suite) -> None:
    def recommend_with(is_replaced: pl.Expr) -> str:
        """The recipe where some of the events are of items that nobody chose before."""
        new = pl.lit("new ") + pl.int_range(pl.len()).cast(pl.String)
        item = pl.when(is_replaced).then(new).otherwise("item_id")
        events.with_columns(item_id=item).write_parquet(file)
        recommend_for_suite(suite, folder / "data", folder=folder)
        return (folder / RECOMMENDED / "tiny.toml").read_text()

    file = folder / "data" / "tiny" / "events.parquet"
    events = pl.read_parquet(file)
    test_begins = events["timestamp"].quantile(0.85, "higher")
    recipe = (folder / RECOMMENDED / "tiny.toml").read_text()
    assert recommend_with(pl.col("timestamp") >= test_begins) == recipe
    assert recommend_with(pl.col("timestamp") < test_begins) != recipe


def test_a_row_changes_and_removes_recommended_settings(suite: Suite) -> None:
    full, changed = build(suite, "kairos"), build(suite, "small")
    assert full.wide
    assert changed.wide == full.wide.model_copy(update={"calendar": False, "repeats": True})
    assert changed.encoder.model_dump() == full.encoder.model_dump() | {
        "dim": 8,
        "layers": 1,
        "feed_forward": 8,
        "time_encoding": full.encoder.model_dump()["time_encoding"] | {"periods": 2},
    }
    assert full.fit.scalar_learning_rate is not None
    assert changed.fit.scalar_learning_rate is None
    kept = full.fit.model_copy(update={"scalar_learning_rate": None, "epochs": 1})
    assert changed.fit == kept


def test_the_written_recipe_is_read_with_the_suite(suite: Suite, folder: Path) -> None:
    assert Suite.read(folder / "suites" / "tiny.toml") == suite


def test_another_recommendation_makes_another_run(
    suite: Suite, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = digest(suite.merge_settings(suite.row("kairos"), 0))
    recommend_for_suite(suite, folder / "data", folder=folder)
    again = Suite.read(folder / "suites" / "tiny.toml")
    assert digest(again.merge_settings(again.row("kairos"), 0)) == before
    monkeypatch.setattr(recommendation, "TOKENS", (500, 500))
    changed = recommend_for_suite(suite, folder / "data", folder=folder)
    assert changed == Suite.read(folder / "suites" / "tiny.toml")
    assert digest(changed.merge_settings(changed.row("kairos"), 0)) != before
    mercer = suite.row("mercer")
    assert changed.merge_settings(mercer, 0) == suite.merge_settings(mercer, 0)


def test_a_recipe_of_other_data_than_the_records_is_refused(suite: Suite, folder: Path) -> None:
    record = folder / "results" / "tiny" / "mercer-0.json"
    record_of(suite, suite.row("mercer"), 0, 0.5).write(record)
    recipe = folder / RECOMMENDED / "tiny.toml"
    written = recipe.read_text()
    recommend_for_suite(suite, folder / "data", folder=folder)  # nothing has changed
    tiny.gap_world(users=9, length=8).write_parquet(folder / "data" / "tiny" / "events.parquet")
    with pytest.raises(TrainingError, match=r"mercer-0\.json is of .* or delete the record"):
        recommend_for_suite(suite, folder / "data", folder=folder)
    assert recipe.read_text() == written
    assert recommend_for_suite(suite, folder / "data", folder=None) != suite


def test_the_given_filters_decide_what_is_profiled(tmp_path: Path) -> None:
    filtered = WITH_RECOMMENDED.replace(
        "[base.split]", "[base.data]\nmin_user_events = 9\n[base.split]"
    )
    folder = folder_with_suite(tmp_path, filtered + ROWS)
    suite = Suite.read(folder / "suites" / "tiny.toml")
    with pytest.raises(TrainingError, match="min_user_events=9"):
        recommend_for_suite(suite, folder / "data", folder=folder)


def test_without_a_recommendation_the_command_is_named(folder: Path) -> None:
    suite = Suite.read(folder / "suites" / "tiny.toml")
    with pytest.raises(TrainingError, match="kairos bench papers --suite tiny --recommend"):
        build(suite, "kairos")
    assert build(suite, "mercer")


def test_a_recommended_row_keeps_the_questions(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="small: split: there is no such setting here"):
        suite_in(tmp_path, WITH_RECOMMENDED + ROWS + "split.test = 0.3\n")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            "test = 0.15",
            "tests = 0.15",
            r"by_time.tests: .*no such setting here \(did you mean .test.\?\); correct it",
        ),
        ("test = 0.15", "test = 1.5", r"split.by_time.test: .* but got 1\.5"),
        ("[base.split]", "[base.data]\nmin_item_events = -1\n[base.split]", "but got -1"),
    ],
)
def test_invalid_data_or_split_of_a_suite_are_named(
    old: str, new: str, problem: str, tmp_path: Path
) -> None:
    suite = suite_in(tmp_path, (SUITE + ROWS).replace(old, new, 1))
    with pytest.raises(TrainingError, match=rf"\[base\] of suites/tiny\.toml .*{problem}"):
        recommend_for_suite(suite, tmp_path / "data", folder=None)


def test_a_shortened_suite_shortens_the_recommended_recipe(suite: Suite) -> None:
    assert build(suite, "kairos").fit.epochs > 1
    shortened = suite.shorten(1)
    assert {build(shortened, row).fit.epochs for row in ("kairos", "small", "mercer")} == {1}


@pytest.mark.slow
def test_a_sample_runs_with_the_recipe_of_all_events(suite: Suite, folder: Path) -> None:
    selection = Selection(folder / "data", folder / "results", ("small",), users=20)
    (cell,) = plan(suite, selection).cells
    record = run_cell(cell, lambda _: None)
    assert record.report.rows["model"]["questions"] <= 20
    written = tomllib.loads((folder / RECOMMENDED / "tiny.toml").read_text())
    fit = record.settings["fit"]
    assert isinstance(fit, dict)
    assert fit["tokens"] == written["fit"]["tokens"]
    assert cell.is_done
