import numpy as np
import polars as pl
import pytest

from model.bundle.attention_profile import SCHEMA
from model.encoders.personal_frequency import PersonalFrequencyConfig
from model.encoders.self_attention import SelfAttentionConfig
from model.recommender import RecommenderConfig
from model.time_encodings.mercer import MercerConfig
from model.wide import WideConfig
from tests import tiny
from tests.tiny import DAY, FIRST_AT
from training.data.dataset import Dataset
from training.evaluation.attention_profile import HISTORIES_PER_BIN, profile_attention

ENCODER = SelfAttentionConfig(
    dim=8, heads=2, layers=1, feed_forward=8, max_history=6, time_encoding=MercerConfig(periods=3)
)


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    """Sixty users; the first item of each is viewed and of category "a", the second bought."""
    happened = []
    for user in range(60):
        at = FIRST_AT + user * DAY
        for index, wait in enumerate((0.0, 0.5, 3.0, 20.0)):
            happened.append((f"u{user}", f"i{index}", int(at + wait * DAY)))
    events = tiny.event_log(happened).with_columns(
        action=pl.when(pl.col("item_id") == "i0").then(pl.lit("view")).otherwise(pl.lit("buy"))
    )
    items = pl.DataFrame(
        {"item_id": ["i0", "i1"], "title": [None, None], "categories": [["a"], ["a", "b"]]},
        schema_overrides={"title": pl.String},
    )
    return Dataset.of(events, items)


def profile(dataset: Dataset, config: RecommenderConfig | None = None) -> pl.DataFrame | None:
    config = config or RecommenderConfig(items=4, encoder=ENCODER)
    return profile_attention(tiny.recommender(config), dataset, max_history=6, histories=40)


@pytest.fixture(scope="module")
def curves(dataset: Dataset) -> pl.DataFrame:
    found = profile(dataset)
    assert found is not None
    return found


def test_the_curves_have_the_columns_of_a_bundle(curves: pl.DataFrame) -> None:
    assert curves.columns == list(SCHEMA)
    assert curves.cast(SCHEMA).null_count().sum_horizontal().item() == 0  # type: ignore[arg-type]


def test_weights_are_shares_and_every_drawn_history_counts_once(curves: pl.DataFrame) -> None:
    assert curves["mean"].is_between(0, 1).all()
    whole = curves.filter(pl.col("by") == "all")
    assert whole.filter(pl.col("view") == "observed")["count"].sum() == 40
    assert set(whole.filter(pl.col("view") == "predicted")["count"]) == {40}


def test_every_action_and_category_has_its_curve(curves: pl.DataFrame) -> None:
    named = set(curves.select("by", "name").unique().iter_rows())
    assert named == {
        ("all", ""),
        ("action", "view"),
        ("action", "buy"),
        ("category", "a"),
        ("category", "b"),
    }


def test_actions_part_the_histories(curves: pl.DataFrame) -> None:
    of_actions = curves.filter((pl.col("by") == "action") & (pl.col("view") == "observed"))
    assert of_actions["count"].sum() == 40


def test_the_last_event_of_a_single_one_has_all_the_weight(dataset: Dataset) -> None:
    found = profile(
        dataset,
        RecommenderConfig(items=4, encoder=ENCODER.model_copy(update={"max_history": 1})),
    )
    assert found is not None
    only = found.filter((pl.col("name") == "view") & (pl.col("view") == "predicted"))
    assert only["mean"].to_list() == pytest.approx([1.0] * len(only))


def observed(curves: pl.DataFrame | None) -> pl.DataFrame:
    """The points of all histories."""
    assert curves is not None
    return curves.filter((pl.col("view") == "observed") & (pl.col("by") == "all"))


def apart(waits: list[float], *, basket: int = 1) -> Dataset:
    """A user per wait, with two baskets so many days apart, and one user with a single basket."""
    instants = [(f"u{number}", (0.0, wait)) for number, wait in enumerate(waits)]
    return Dataset.of(
        tiny.event_log(
            [
                (user, f"i{index % 4}", int(FIRST_AT + day * DAY))
                for user, days in [*instants, ("once", (0.0,))]
                for day in days
                for index in range(basket)
            ]
        )
    )


def test_histories_of_the_profile_end_between_baskets() -> None:
    seen = observed(profile(apart([5.0] * 30, basket=3)))
    assert seen["interval_days"].to_list() == pytest.approx([5.0])
    assert seen["count"].to_list() == [30]


def test_without_a_second_basket_there_is_no_profile() -> None:
    assert profile(apart([], basket=3)) is None


def test_an_observed_point_is_at_its_bins_geometric_mean() -> None:
    waits = np.geomspace(0.01, 500, 40)
    seen = observed(profile(apart(waits.tolist())))
    middles = np.exp(np.log(waits).reshape(-1, HISTORIES_PER_BIN).mean(1))
    assert seen["count"].to_list() == [HISTORIES_PER_BIN] * len(middles)
    assert seen["interval_days"].to_list() == pytest.approx(middles.tolist(), rel=1e-3)


def test_a_curve_of_few_histories_is_one_point() -> None:
    seen = observed(profile(apart([1.0, 10.0, 100.0])))
    assert seen["interval_days"].to_list() == pytest.approx([10.0])


def test_histories_that_waited_equally_long_stand_at_one_point() -> None:
    seen = observed(profile(apart([1.0] * 30 + [20.0] * 10)))
    assert seen["interval_days"].to_list() == pytest.approx([1.0, 20.0])
    assert seen["count"].to_list() == [30, 10]


def test_a_model_that_does_not_attend_has_no_profile(dataset: Dataset) -> None:
    config = RecommenderConfig(items=4, encoder=PersonalFrequencyConfig())
    assert profile(dataset, config) is None


def test_the_same_draws_give_the_same_curves(dataset: Dataset, curves: pl.DataFrame) -> None:
    again = profile(dataset)
    assert again is not None
    np.testing.assert_array_equal(again["mean"].to_numpy(), curves["mean"].to_numpy())


def test_the_wide_part_is_not_computed(dataset: Dataset) -> None:
    config = RecommenderConfig(items=4, encoder=ENCODER, wide=WideConfig())
    recommender = tiny.recommender(config)
    assert recommender.wide is not None
    calls: list[object] = []
    recommender.wide.register_forward_hook(lambda *_: calls.append(None))
    assert profile_attention(recommender, dataset, max_history=6, histories=40) is not None
    assert not calls
