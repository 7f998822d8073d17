from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from tests.training.inspection.event_tables import (
    draw_choices_by_weekday,
    draw_events,
    draw_sessions,
    make_events,
)
from training.config import DataConfig, RunConfig, SoftmaxConfig
from training.data.split import ByTimeConfig, ByUserConfig, LeaveOneOutConfig, SplitConfig
from training.inspection.profile import DataProfile, profile_events
from training.inspection.recipe_text import format_recipe
from training.inspection.recommendation import (
    HISTORY_LENGTH_OF_REPEATS,
    HISTORY_LENGTHS,
    Recommendation,
    decide_predict,
    recommend_recipe,
)

DAY_SECONDS = 86_400


@pytest.fixture(scope="module")
def profile() -> DataProfile:
    return profile_events(draw_events())


def read_back(recommendation: Recommendation, directory: Path) -> RunConfig:
    file = directory / "recipe.toml"
    file.write_text(format_recipe(recommendation, "For a test."))
    return RunConfig.read(file)


def test_baskets_that_are_days_apart_are_predicted_as_baskets() -> None:
    assert decide_predict(profile_events(draw_sessions(gap_seconds=8 * DAY_SECONDS))) == (
        "next_basket"
    )


def test_ties_within_a_session_of_seconds_are_no_baskets() -> None:
    profile = profile_events(draw_sessions(gap_seconds=35))
    assert profile.baskets.tied_steps > 0.6
    assert decide_predict(profile) == "next_event"
    predict = recommend_recipe(profile).reasons[0]
    assert (predict.setting, predict.value) == ("data.predict", "next_event")
    assert "the next instant is only 35 s" in predict.reason


def test_single_events_are_predicted_one_by_one(profile: DataProfile) -> None:
    assert decide_predict(profile) == "next_event"


def test_histories_at_one_instant_are_no_baskets() -> None:
    rows = [(f"u{n % 10}", f"i{n}", 0) for n in range(100)]
    recommendation = recommend_recipe(profile_events(make_events(rows)))
    assert recommendation.config.data.predict == "next_event"
    assert "no user has events at two instants" in recommendation.reasons[0].reason


def test_repeats_decide_about_the_items_of_the_history(profile: DataProfile) -> None:
    returning = recommend_recipe(profile).config
    assert not returning.data.exclude_seen
    assert returning.wide is not None
    assert returning.wide.repeats
    new = recommend_recipe(replace(profile, repeats=0.002)).config
    assert new.data.exclude_seen
    assert new.wide is not None
    assert not new.wide.repeats


def test_settings_that_are_given_are_kept(profile: DataProfile) -> None:
    data = DataConfig(predict="next_basket", exclude_seen=True, ignored_actions=("cancel",))
    recommendation = recommend_recipe(profile, data, ByUserConfig(test=0.2))
    assert recommendation.config.data == data.model_copy(update={"read_actions": False})
    assert recommendation.config.split == ByUserConfig(test=0.2)
    reasons = {one.setting: one.reason for one in recommendation.reasons}
    assert reasons["data.predict"] == reasons["split.test"] == "as given"


def test_actions_are_read_if_there_are_several(profile: DataProfile) -> None:
    several = replace(profile, actions=(("buy", 9), ("view", 5)))
    assert recommend_recipe(several).config.data.read_actions
    one_left = replace(several, ignored_actions=("view",))
    assert not recommend_recipe(one_left).config.data.read_actions


@pytest.mark.parametrize(
    ("p90", "repeats", "length"),
    [(3, 0.5, 8), (16, 0.5, 16), (72, 0.5, 100), (5_000, 0.5, 400), (5_000, 0.0, 200)],
)
def test_max_history_covers_most_users(
    profile: DataProfile, p90: float, repeats: float, length: int
) -> None:
    users = replace(profile.user_events, p90=p90)
    longer = replace(profile, user_events=users, repeats=repeats)
    assert recommend_recipe(longer).config.encoder.max_history == length
    assert length in (*HISTORY_LENGTHS, HISTORY_LENGTH_OF_REPEATS)


def test_histories_are_no_longer_where_nothing_repeats(profile: DataProfile) -> None:
    users = replace(profile.user_events, p90=5_000)
    longer = replace(profile, user_events=users, repeats=0.0)
    ranks_seen = DataConfig(exclude_seen=False)
    assert recommend_recipe(longer, ranks_seen).config.encoder.max_history == HISTORY_LENGTHS[-1]


@pytest.mark.parametrize(
    ("events", "tokens", "dropout", "epochs", "warmup"),
    [
        (2_000, 200, 0.3, 12, 10),
        (600_000, 2_000, 0.2, 6, 100),
        (50_000_000, 6_400, 0.2, 2, 100),
    ],
)
def test_the_number_of_events_decides_the_budget(
    profile: DataProfile, events: int, tokens: int, dropout: float, epochs: int, warmup: int
) -> None:
    config = recommend_recipe(replace(profile, events=events)).config
    assert config.fit.tokens == tokens
    assert config.fit.epochs == epochs
    assert config.fit.warmup_steps == warmup
    assert config.encoder.kind == "self_attention"
    assert config.encoder.dropout == dropout


@pytest.mark.parametrize(
    ("items", "tied_steps", "is_sampled"),
    [(5_000, 0.0, False), (20_000, 0.0, True), (20_000, 0.9, False)],
)
def test_many_predictions_over_many_items_are_sampled(
    profile: DataProfile, items: int, tied_steps: float, is_sampled: bool
) -> None:
    baskets = replace(profile.baskets, tied_steps=tied_steps)
    gaps = replace(profile.gaps, median=DAY_SECONDS) if profile.gaps else None
    large = replace(profile, events=500_000, items=items, baskets=baskets, gaps=gaps)
    loss = recommend_recipe(large).config.fit.loss
    assert isinstance(loss, SoftmaxConfig)
    assert (loss.sample_above == 0) == is_sampled


@pytest.mark.parametrize("gap_seconds", [35, 8 * DAY_SECONDS])
@pytest.mark.parametrize(
    "data", [None, DataConfig(ignored_actions=('a "b"\\c', "Rückgabe", "\x7f\x1b"))]
)
def test_a_written_recipe_is_read_back(
    gap_seconds: int, data: DataConfig | None, tmp_path: Path
) -> None:
    profile = profile_events(draw_sessions(gap_seconds=gap_seconds))
    recommendation = recommend_recipe(profile, data)
    assert read_back(recommendation, tmp_path) == recommendation.config


def test_every_setting_of_a_written_recipe_has_its_reason(profile: DataProfile) -> None:
    recommendation = recommend_recipe(profile)
    text = " ".join(format_recipe(recommendation, "For a test.").replace("\n# ", " ").split())
    assert text.startswith("# For a test.")
    for one in recommendation.reasons:
        assert one.reason in text
        assert len(one.reason) > 10


def test_a_header_with_line_breaks_stays_a_comment(profile: DataProfile, tmp_path: Path) -> None:
    recommendation = recommend_recipe(profile)
    file = tmp_path / "recipe.toml"
    file.write_text(format_recipe(recommendation, "For\n[fit]\nepochs = 99"))
    assert RunConfig.read(file).fit.epochs == recommendation.config.fit.epochs


def test_control_characters_of_actions_are_escaped(profile: DataProfile, tmp_path: Path) -> None:
    hostile = replace(profile, actions=(("buy", 9), ("\x1b[2J\x7f", 5)))
    recommendation = recommend_recipe(hostile)
    assert read_back(recommendation, tmp_path) == recommendation.config
    assert r"buy, \x1b[2J\x7f" in (tmp_path / "recipe.toml").read_text()


def test_control_characters_of_the_header_are_escaped(profile: DataProfile) -> None:
    assert format_recipe(recommend_recipe(profile), "Of \x1b.csv").startswith("# Of \\x1b.csv\n")


def test_only_the_most_frequent_actions_are_named(profile: DataProfile) -> None:
    many = replace(profile, actions=tuple((f"{n}" + "a" * 10_000, 1) for n in range(1_000)))
    (reason,) = (it for it in recommend_recipe(many).reasons if it.setting == "data.read_actions")
    assert reason.reason.endswith("…, 980 more")
    assert len(reason.reason) < 2_000


def find_calendar_phase(events: pl.DataFrame) -> tuple[object, str]:
    recommendation = recommend_recipe(profile_events(events))
    assert recommendation.config.wide is not None
    (reason,) = (one for one in recommendation.reasons if one.setting == "wide.calendar")
    assert recommendation.config.wide.calendar is reason.value
    return reason.value, reason.reason


def test_the_phase_of_the_query_time_is_left_out_of_sessions() -> None:
    for gap_seconds, is_session in ((35, True), (3_599, True), (8 * DAY_SECONDS, False)):
        value, reason = find_calendar_phase(draw_sessions(gap_seconds=gap_seconds))
        assert value is False
        assert ("would name the session" in reason) is is_session


@pytest.mark.parametrize(
    ("gap_seconds", "split", "weight"),
    [
        (35, None, 0.1),
        (35, ByTimeConfig(), 0.1),
        (35, ByUserConfig(), 1.0),
        (35, LeaveOneOutConfig(), 1.0),
        (3_600, None, 1.0),
    ],
)
def test_sessions_weigh_less_where_users_are_asked_on_return(
    gap_seconds: int, split: SplitConfig | None, weight: float
) -> None:
    profile = profile_events(draw_sessions(gap_seconds=gap_seconds))
    recommendation = recommend_recipe(profile, split=split)
    assert recommendation.config.fit.session_weight == weight
    settings = {one.setting for one in recommendation.reasons}
    assert ("fit.session_weight" in settings) is (weight < 1)


def test_the_phase_is_used_where_it_predicts_later_choices() -> None:
    assert find_calendar_phase(draw_choices_by_weekday(users=60))[0] is True
    value, reason = find_calendar_phase(draw_choices_by_weekday(users=60, shuffled=True))
    assert (value, "predicts what is chosen" in reason) == (False, True)
    assert find_calendar_phase(draw_events())[0] is False


def test_duplicates_of_single_events_are_no_baskets() -> None:
    events = draw_events()
    assert decide_predict(profile_events(pl.concat([events] * 3))) == "next_event"
    sessions = draw_sessions(gap_seconds=8 * DAY_SECONDS)
    assert decide_predict(profile_events(pl.concat([sessions] * 3))) == "next_basket"
