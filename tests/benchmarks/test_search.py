from pathlib import Path

import pytest

from benchmarks.papers.harness.cell import run_cell
from benchmarks.papers.harness.plan import Selection, plan
from benchmarks.papers.harness.search import choose_settings, replace_settings
from benchmarks.papers.harness.suite import Suite
from model.errors import TrainingError
from tests.benchmarks.tiny_suite import SUITE, folder_with_suite
from training.data.sources import read_events

COUNTING = """
[[rows]]
name = "searched"
label = "Counts, chosen"
class = "query time given"
encoder = { kind = "counting", dim = 1 }

[rows.search]
"encoder.weight" = [0.001, 1.0, 1000.0]
"encoder.half_life_days" = [30.0, 1.0]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_with_suite(tmp_path_factory.mktemp("papers"), SUITE + COUNTING)


@pytest.fixture(scope="module")
def suite(folder: Path) -> Suite:
    return Suite.read(folder / "suites" / "tiny.toml")


def test_the_best_settings_on_validation_are_chosen(folder: Path, suite: Suite) -> None:
    events = read_events(folder / "data" / "tiny" / "events.parquet")
    row = suite.row("searched")
    config, trials = choose_settings(suite.build_config(row, 0), row.search, events, None)
    best = max(trials, key=lambda trial: trial.value)
    chosen = {name: getattr(config.encoder, name.split(".")[1]) for name in row.search}
    assert chosen == best.settings
    assert len({trial.value for trial in trials}) > 1
    assert 4 <= len(trials) <= 6


def test_a_row_without_a_search_space_is_not_tried(folder: Path, suite: Suite) -> None:
    events = read_events(folder / "data" / "tiny" / "events.parquet")
    config = suite.build_config(suite.row("mercer"), 0)
    assert choose_settings(config, {}, events, None) == (config, ())


def test_a_record_holds_what_was_tried(folder: Path, suite: Suite) -> None:
    selection = Selection(folder / "data", folder / "results", ("searched",))
    (cell,) = plan(suite, selection).cells
    record = run_cell(cell, lambda _: None)
    assert cell.is_done
    best = max(record.trials, key=lambda trial: trial.value)
    encoder = record.config["encoder"]
    assert isinstance(encoder, dict)
    assert encoder["weight"] == best.settings["encoder.weight"]


def test_other_values_to_choose_from_are_other_settings(suite: Suite) -> None:
    row = suite.row("searched")
    fewer = row.model_copy(update={"search": {"encoder.weight": (1.0,)}})
    assert suite.merge_settings(row, 0) != suite.merge_settings(fewer, 0)
    assert suite.build_config(row, 0) == suite.build_config(fewer, 0)


def test_an_unknown_setting_of_a_search_is_named(suite: Suite) -> None:
    config = suite.build_config(suite.row("searched"), 0)
    with pytest.raises(TrainingError, match=r"encoder\.luck"):
        replace_settings(config, {"encoder.luck": 1})
