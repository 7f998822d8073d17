"""The comparison of challenger and champion in a retraining job, and the gate's decision."""

import polars as pl

from tests.training.retraining.workspace import END, Workspace, add_later_events, find_check
from tests.training.ring import COUNTED, GATE, LEARNED, ring_world, shuffle_items
from training.config import FitConfig
from training.retraining.report import PAGE


def test_a_challenger_as_good_as_the_champion_takes_its_place(with_champion: Workspace) -> None:
    champion = with_champion.store.read_current()
    report = with_champion.retrain(with_champion.job(add_later_events(ring_world())))
    assert report.result == "promoted", report.reason
    assert report.champion == champion != with_champion.store.read_current()


def test_no_question_is_in_any_models_training_data(with_champion: Workspace) -> None:
    learned_until = int(ring_world()["timestamp"].to_physical().max())  # type: ignore[arg-type]
    comparison = with_champion.retrain(with_champion.job(add_later_events(ring_world()))).comparison
    assert comparison is not None
    assert comparison.first_at > learned_until
    assert comparison.known_to_champion == 0


def test_with_few_new_events_the_champion_is_favoured(
    with_champion: Workspace,
) -> None:
    report = with_champion.retrain(with_champion.job(known_by=END - 1))
    assert report.comparison is not None
    assert report.comparison.known_to_champion == report.comparison.questions
    assert "is favoured" in (with_champion.runs / report.directory / PAGE).read_text()


def test_all_models_rank_the_same_items(
    workspace: Workspace,
) -> None:
    small = ring_world(items=6)
    assert workspace.retrain(workspace.job(small)).result == "promoted"
    moved = ring_world(seed=1).with_columns(pl.col("timestamp") + pl.duration(days=50))
    report = workspace.retrain(workspace.job(pl.concat([small, moved])))
    assert report.comparison is not None
    assert report.comparison.candidates == 12
    rows = report.comparison.rows
    assert rows["champion"]["hit_rate@10"] <= 0.6  # half of the answers are new to it
    assert rows["challenger"]["hit_rate@10"] > 0.9
    assert report.result == "promoted"


def test_shuffled_labels_are_refused(with_champion: Workspace) -> None:
    champion = with_champion.store.read_current()
    report = with_champion.retrain(with_champion.job(shuffle_items(add_later_events(ring_world()))))
    assert report.result == "kept"
    assert not find_check(report, "popularity").passed
    assert with_champion.store.read_current() == champion
    assert len(with_champion.store.list_versions()) == 1
    assert "popularity" in str(report.reason)


def test_a_challenger_worse_than_the_champion_is_refused(with_champion: Workspace) -> None:
    new = add_later_events(ring_world())
    is_asked = new["timestamp"] > new["timestamp"].quantile(0.85)
    # The training events are shuffled; the questions are not.
    broken = pl.concat([shuffle_items(new.filter(~is_asked)), new.filter(is_asked)])
    lenient = GATE.model_copy(update={"popularity_lead": -1.0})
    champion = with_champion.store.read_current()
    config = COUNTED.model_copy(update={"gate": lenient})
    report = with_champion.retrain(with_champion.job(broken, config))
    assert report.result == "kept"
    assert not find_check(report, "champion").passed
    assert "lead over the champion" in str(report.reason)
    assert with_champion.store.read_current() == champion


def test_a_run_that_diverges_is_refused_by_the_gate(with_champion: Workspace) -> None:
    champion = with_champion.store.read_current()
    wild = FitConfig(epochs=2, tokens=400, warmup_steps=0, learning_rate=1e30)
    report = with_champion.retrain(
        with_champion.job(config=LEARNED.model_copy(update={"fit": wild}))
    )
    assert report.result == "kept"
    assert not find_check(report, "sound").passed
    assert report.candidate is None
    assert with_champion.store.read_current() == champion
