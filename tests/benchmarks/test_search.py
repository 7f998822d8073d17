import json
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from benchmarks.papers.harness.plan import Selection, plan
from benchmarks.papers.harness.record import TuningTrial
from benchmarks.papers.harness.run_cell import run_cell
from benchmarks.papers.harness.search import (
    build_measure,
    find_best,
    replace_settings,
    search_settings,
)
from benchmarks.papers.harness.settings import Settings
from benchmarks.papers.harness.suite import Suite
from benchmarks.papers.harness.tuning import Tuning, find_trials, read_trials, tune_once
from model.errors import DivergedError, TrainingError
from tests.benchmarks.tiny_suite import SUITE, folder_with_suite
from tests.training.progress import RecordingProgress
from training.data.sources import read_events
from training.run import train

CPU = torch.device("cpu")

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


def test_the_best_settings_on_validation_are_found(folder: Path, suite: Suite) -> None:
    events = read_events(folder / "data" / "tiny" / "events.parquet")
    row = suite.row("searched")
    trials = search_settings(
        row.search, build_measure(suite.build_config(row, 0), events, None, CPU)
    )
    assert len({trial.value for trial in trials}) > 1
    assert 4 <= len(trials) <= 6
    best = max(trials, key=lambda trial: trial.value)
    assert find_best(trials) == next(trial for trial in trials if trial.value == best.value)
    # Fitted with those settings, the model has that metric.
    assert build_measure(
        replace_settings(suite.build_config(row, 0), best.settings), events, None, CPU
    )({}).value == pytest.approx(find_best(trials).value)


def test_a_learned_recipe_is_tried_by_its_early_stopping(
    folder: Path, suite: Suite, tmp_path: Path
) -> None:
    events = read_events(folder / "data" / "tiny" / "events.parquet")
    config = suite.build_config(suite.row("mercer"), 0)
    measure = build_measure(config, events, None, CPU)
    trials = search_settings({"fit.learning_rate": [1e-3, 1e-7]}, measure)
    assert [trial.settings for trial in trials] == [
        {"fit.learning_rate": 1e-3},
        {"fit.learning_rate": 1e-7},
    ]
    assert all(0 <= trial.value <= 1 for trial in trials)
    for number, trial in enumerate(trials):
        output = tmp_path / f"{number}"
        tried = replace_settings(config, trial.settings)
        outcome = train(tried, events, None, output, progress=RecordingProgress())
        reached = [epoch.validation[config.fit.monitor] for epoch in outcome.epochs]
        assert trial.value == pytest.approx(max(reached))


def test_trials_leave_rare_items_out_as_runs_do(folder: Path, suite: Suite) -> None:
    events = read_events(folder / "data" / "tiny" / "events.parquet")
    config = suite.build_config(suite.row("searched"), 0)
    values = set()
    for least in (1, 10):
        data = config.data.model_copy(update={"min_item_events": least})
        config = config.model_copy(update={"data": data})
        values.add(build_measure(config, events, None, CPU)({}).value)
    assert len(values) == 2


def test_settings_that_go_together_are_searched_as_tables() -> None:
    pairs = [{"steps": 0}, {"steps": 9, "rate": 1}, {"steps": 9, "rate": 2}]
    measured = []

    def measure(settings: Settings) -> TuningTrial:
        measured.append(settings)
        kernel, weight = settings["encoder"], settings["encoder.weight"]
        assert isinstance(kernel, dict)
        assert isinstance(weight, int)
        # Steps help with a rate of 2 alone.
        value = {(9, 1): -0.5, (9, 2): 0.5}.get((kernel["steps"], kernel.get("rate")), 0.0)
        return TuningTrial(settings=settings, value=value + weight / 10, seed=0)

    trials = search_settings({"encoder": pairs, "encoder.weight": [1, 2]}, measure)
    assert find_best(trials).settings == {"encoder": pairs[2], "encoder.weight": 2}
    assert len(measured) == len(trials) == 3 + 1 + 2


@given(
    st.lists(
        st.lists(st.integers(0, 3), min_size=1, max_size=4, unique=True), min_size=1, max_size=3
    )
)
def test_a_search_ends_where_no_single_change_helps(axes: list[list[int]]) -> None:
    search = {str(number): values for number, values in enumerate(axes)}

    def measure(settings: Settings) -> TuningTrial:
        value = sum(abs(int(str(value)) - 2) * (1 + int(name)) for name, value in settings.items())
        return TuningTrial(settings=settings, value=value / 100, seed=0)

    trials = search_settings(search, measure)
    best = sum(
        max(abs(value - 2) for value in values) * (1 + number) for number, values in enumerate(axes)
    )
    assert find_best(trials).value == best / 100
    assert len({repr(trial.settings) for trial in trials}) == len(trials)


@pytest.mark.parametrize("name", ["counts", "mercer"])
def test_settings_are_not_chosen_without_validation(name: str, folder: Path, suite: Suite) -> None:
    events = read_events(folder / "data" / "tiny" / "events.parquet")
    config = suite.build_config(suite.row(name), 0)
    split = config.split.model_copy(update={"validation": 0.0})
    config = config.model_copy(update={"split": split})
    with pytest.raises(TrainingError, match="validation questions, but the split has none; give"):
        build_measure(config, events, None, CPU)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1.5, -1.5])
def test_a_trial_that_is_no_metric_is_refused(value: float, tmp_path: Path) -> None:
    file = tmp_path / "mercer-1.json"
    file.write_text(json.dumps([{"settings": {}, "value": value}]))
    with pytest.raises(TrainingError, match=r"mercer-1\.json is not: .*value.*delete it to try"):
        read_trials(file)


def test_a_record_holds_what_was_tried(folder: Path, suite: Suite) -> None:
    selection = Selection(folder / "data", folder / "results", ("searched",))
    (cell,) = plan(suite, selection).cells
    assert cell.count_earlier_trials() == 0
    record = run_cell(cell, lambda _: None)
    assert cell.is_done
    assert cell.count_earlier_trials() == len(record.trials) > 0
    (file,) = (folder / "results" / "tiny" / "trials").iterdir()
    # Later seeds take what the first one has chosen.
    kept = [trial.model_copy(update={"seed": 7}) for trial in record.trials]
    file.write_text(json.dumps([trial.model_dump() for trial in kept]))
    later = run_cell(cell.model_copy(update={"record": cell.record.with_name("again.json")}), print)
    assert later.trials == tuple(kept)
    assert later.choice_cpu_seconds == 0
    tried = sum(trial.cpu_seconds for trial in record.trials)
    assert record.choice_cpu_seconds == pytest.approx(tried, abs=0.05)
    best = max(record.trials, key=lambda trial: trial.value)
    encoder = record.config["encoder"]
    assert isinstance(encoder, dict)
    assert encoder["weight"] == best.settings["encoder.weight"]


def test_seeds_that_start_together_choose_once(tmp_path: Path) -> None:
    made: list[int] = []

    def measure(seed: int, settings: Settings) -> TuningTrial:
        time.sleep(0.05)
        made.append(seed)
        return TuningTrial(settings=settings, value=0.5, seed=seed)

    def choose(seed: int) -> Tuning:
        file = find_trials(tmp_path, "searched", {"fit": {"seed": seed, "epochs": 2}}, {})
        space: dict[str, list[JsonValue]] = {"encoder.weight": [1.0, 2.0]}
        return tune_once(file, space, partial(measure, seed), ignore, seed=seed)

    with ThreadPoolExecutor(4) as pool:
        runs = [*pool.map(choose, range(4))]
    assert {trial.seed for run in runs for trial in run.trials} == {*made}
    assert len(made) == 2


def test_a_choice_that_was_interrupted_goes_on(tmp_path: Path) -> None:
    tried: list[Settings] = []

    def measure(settings: Settings) -> TuningTrial:
        if len(tried) == 2:
            raise KeyboardInterrupt
        tried.append(settings)
        return TuningTrial(settings=settings, value=len(tried) / 10, seed=0)

    choice: list[Settings] = [{"encoder.weight": weight} for weight in (1.0, 2.0, 3.0)]
    reported: list[int] = []

    def report(number: int, trial: TuningTrial) -> None:
        reported.append(number)

    with pytest.raises(KeyboardInterrupt):
        tune_once(tmp_path / "trials.json", choice, measure, report)
    tried.clear()
    chosen = tune_once(tmp_path / "trials.json", choice, measure, report)
    assert tried == [{"encoder.weight": 3.0}]
    assert [trial.value for trial in chosen.trials] == [0.1, 0.2, 0.1]
    assert reported == [1, 2, 3]


def test_a_trial_that_diverges_ends_no_other(tmp_path: Path) -> None:
    space: list[Settings] = [{"rate": 0.1}, {"rate": 9.0}, {"rate": 0.3}]
    tried: list[object] = []

    def measure(settings: Settings) -> TuningTrial:
        tried.append(settings["rate"])
        if settings["rate"] == 9.0:
            raise DivergedError("the loss is NaN")
        return TuningTrial(settings=settings, value=0.25)

    def tune(space: list[Settings]) -> Tuning:
        return tune_once(tmp_path / "trials.json", space, measure, ignore)

    assert [trial.problem for trial in tune(space).trials] == ["", "the loss is NaN", ""]
    assert find_best(tune(space).trials).settings == {"rate": 0.1}
    assert tried == [0.1, 9.0, 0.3]
    with pytest.raises(TrainingError, match="all 1 tried diverged, the first by: the loss is NaN"):
        tune([{"rate": 9.0}])


def test_a_trial_names_the_code_that_made_it(tmp_path: Path) -> None:
    def measure(settings: Settings) -> TuningTrial:
        return TuningTrial(settings=settings, value=0.5)

    file = tmp_path / "trials.json"
    (trial,) = tune_once(file, [{}], measure, ignore, code="a digest").trials
    assert trial.code == "a digest"
    # It is not made again by other code, and keeps the digest of its own.
    assert tune_once(file, [{}], measure, ignore, code="another").trials == (trial,)


def test_the_trials_of_a_row_are_of_one_seed(tmp_path: Path) -> None:
    space: list[Settings] = [{"rate": 0.1}, {"rate": 0.3}]

    def measure(seed: int, settings: Settings) -> TuningTrial:
        return TuningTrial(settings=settings, value=0.5, seed=seed)

    file = tmp_path / "trials.json"
    tune_once(file, space[:1], partial(measure, 0), ignore, seed=0)
    with pytest.raises(TrainingError, match=r"are of seed 0, and this run is of seed 1; run that"):
        tune_once(file, space, partial(measure, 1), ignore, seed=1)
    whole = tune_once(file, space, partial(measure, 0), ignore, seed=0)
    assert tune_once(file, space, partial(measure, 1), ignore, seed=1).trials == whole.trials


@pytest.mark.parametrize("content", ["", '[{"settings": {}', "[{}]"])
def test_broken_trials_are_named_with_the_remedy(content: str, tmp_path: Path) -> None:
    def measure(settings: Settings) -> TuningTrial:
        raise AssertionError(settings)

    file = tmp_path / "trials.json"
    file.write_text(content)
    with pytest.raises(TrainingError, match=r"trials\.json is not: .*delete it to try"):
        tune_once(file, [{}], measure, ignore)


def ignore(number: int, trial: TuningTrial) -> None: ...


def test_other_values_to_choose_from_are_other_settings(suite: Suite) -> None:
    row = suite.row("searched")
    fewer = row.model_copy(update={"search": {"encoder.weight": (1.0,)}})
    assert suite.merge_settings(row, 0) != suite.merge_settings(fewer, 0)
    assert suite.build_config(row, 0) == suite.build_config(fewer, 0)


def test_an_unknown_setting_of_a_search_is_named(suite: Suite) -> None:
    config = suite.build_config(suite.row("searched"), 0)
    with pytest.raises(TrainingError, match=r"encoder\.luck"):
        replace_settings(config, {"encoder.luck": 1})
