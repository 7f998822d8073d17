import math
from pathlib import Path

import pytest

from model.errors import TrainingError
from training.config import GateConfig, RunConfig
from training.retraining.gate import Decision, Evidence, decide

GOOD = Evidence(
    questions=500,
    metric=0.3,
    champion=0.29,
    over_champion=-0.002,
    popularity=0.2,
    over_popularity=0.08,
    index_recall=1.0,
    p95_seconds=0.004,
    user_share=0.02,
    item_share=0.01,
)


def failed(decision: Decision) -> set[str]:
    return {check.name for check in decision.checks if not check.passed}


def test_nothing_speaks_against_a_good_challenger() -> None:
    decision = decide(GateConfig(floor=0.25), GOOD)
    assert decision.promote
    assert [check.name for check in decision.checks] == [
        *("sound", "questions", "floor", "champion", "popularity", "index_recall", "latency"),
        *("user_share", "item_share"),
    ]
    assert decision.reason == "all 9 checks of the gate passed"


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"questions": 99}, "questions"),
        ({"metric": 0.2499}, "floor"),
        ({"over_champion": -0.0101}, "champion"),
        ({"over_popularity": 0.0}, "popularity"),
        ({"index_recall": 0.9899}, "index_recall"),
        ({"p95_seconds": 0.1001}, "latency"),
        ({"user_share": 0.2001}, "user_share"),
        ({"item_share": 0.2001}, "item_share"),
    ],
)
def test_one_broken_rule_is_enough_and_says_by_how_much(
    changed: dict[str, float], rule: str
) -> None:
    decision = decide(GateConfig(floor=0.25), GOOD.model_copy(update=changed))
    assert not decision.promote
    assert failed(decision) == {rule}
    (check,) = [check for check in decision.checks if check.name == rule]
    assert check.value == next(iter(changed.values()))
    assert decision.reason == check.sentence


@pytest.mark.parametrize(
    "at_the_threshold",
    [{"questions": 100}, {"metric": 0.25}, {"over_champion": -0.01}, {"index_recall": 0.99}],
)
def test_a_threshold_itself_is_enough(at_the_threshold: dict[str, float]) -> None:
    assert decide(GateConfig(floor=0.25), GOOD.model_copy(update=at_the_threshold)).promote


@pytest.mark.parametrize(
    "name", ["metric", "over_champion", "over_popularity", "index_recall", "p95_seconds"]
)
def test_what_is_not_a_number_passes_no_rule(name: str) -> None:
    decision = decide(GateConfig(), GOOD.model_copy(update={name: math.nan}))
    assert len(failed(decision)) == 1


def test_without_a_champion_its_check_is_skipped() -> None:
    first = GOOD.model_copy(update={"champion": None, "over_champion": None})
    decision = decide(GateConfig(), first)
    assert decision.promote
    assert "champion" not in {check.name for check in decision.checks}


def test_what_was_not_measured_does_not_pass() -> None:
    assert failed(decide(GateConfig(), Evidence())) == {
        *("questions", "floor", "popularity", "index_recall", "latency")
    }


def test_an_unsound_challenger_skips_all_other_checks() -> None:
    decision = decide(GateConfig(), GOOD.model_copy(update={"unsound": "the loss is nan"}))
    assert not decision.promote
    assert [check.name for check in decision.checks] == ["sound"]
    assert "the loss is nan" in decision.reason


def test_a_decision_survives_a_round_trip_through_json() -> None:
    decision = decide(GateConfig(), GOOD)
    assert Decision.model_validate_json(decision.model_dump_json()) == decision


def test_a_recipe_sets_the_gate(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text('[gate]\nmetric = "mrr"\nmay_lose = 0.02\n')
    assert RunConfig.read(recipe).gate == GateConfig(metric="mrr", may_lose=0.02)
    recipe.write_text("[gate]\nmay_loose = 0.02\n")
    with pytest.raises(TrainingError, match=r"gate\.may_loose"):
        RunConfig.read(recipe)
