"""What a model in a notebook answers."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import kairos
from kairos.histories import UnknownUserError
from kairos.model import NoAttentionError, NoReportError
from model.clock import to_datetime
from model.encoders.markov import MarkovConfig
from model.errors import BundleError, EventSourceError, KairosError, UnknownItemError
from model.store.store import BundleStore
from tests import tiny
from tests.training.recipes import REFIT, RUN

AT = "2024-02-01T00:00:00Z"


def test_metrics_stand_beside_those_of_the_references(model: kairos.Model, tmp_path: Path) -> None:
    model.save(tmp_path)
    rows = json.loads((tmp_path / "report.json").read_text())["rows"]
    table = model.metrics
    assert {"model", "popular_all_time", "last_item_markov", "personal_frequency"} <= {
        *table["ranker"]
    }
    assert {row["ranker"]: row["ndcg@10"] for row in table.to_dicts()} == {
        name: row["ndcg@10"] for name, row in rows.items()
    }
    assert table.row(by_predicate=pl.col("ranker") == "model", named=True)["lead"] is None
    assert table.filter(pl.col("ranker") != "model")["lead"].null_count() == 0


def test_an_evaluation_measures_what_training_did(
    model: kairos.Model, events: pl.DataFrame
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.evaluate(events.to_pandas()).equals(model.metrics)


def test_an_evaluation_on_known_answers_warns(events: pl.DataFrame) -> None:
    counted = REFIT.model_copy(update={"encoder": MarkovConfig()})
    model = kairos.fit(events, recipe=counted, quiet=True)
    with pytest.warns(UserWarning, match="knows the answers"):
        model.evaluate(events)


def test_several_users_get_what_each_gets(model: kairos.Model) -> None:
    one, other = (model.recommend(user, at=AT, n=3) for user in ("u4", "u13"))
    assert model.recommend(["u4", "u13"], at=AT, n=3).equals(pl.concat([one, other]))
    assert one.columns == ["user_id", "rank", "item_id", "title", "score", "reason"]
    assert one["title"].to_list() == [f"Title of {item_id}" for item_id in one["item_id"]]
    assert model.recommend([], at=AT).is_empty()


def test_users_may_be_a_column(model: kairos.Model) -> None:
    expected = model.recommend(["u4", "u13"], at=AT)
    column = pl.Series(["u4", "u13"])
    for users in (column, column.to_pandas(), iter(column)):
        assert model.recommend(users, at=AT).equals(expected)


def test_integers_are_ids(events: pl.DataFrame) -> None:
    numbered = events.with_columns(pl.col("user_id").str.slice(1).cast(pl.Int64))
    model = kairos.fit(
        numbered, recipe=RUN.model_copy(update={"encoder": MarkovConfig()}), quiet=True
    )
    expected = model.recommend("4", at=AT)
    assert model.recommend(4, at=AT).equals(expected)
    assert model.recommend(pl.Series([4]), at=AT).equals(expected)
    assert model.card(4, at=AT).title == model.card("4", at=AT).title


@pytest.mark.parametrize(
    "users",
    [2.5, True, b"u4", ["u4", None], [["u4"]], np.array([[4]]), pl.DataFrame({"user_id": []})],
)
def test_what_is_no_id_is_refused(model: kairos.Model, users: Any) -> None:
    with pytest.raises(KairosError, match="a user's id is a text or an integer, but got"):
        model.recommend(users, at=AT)


def test_a_number_of_items_may_be_of_numpy(model: kairos.Model) -> None:
    assert len(model.recommend("u4", at=AT, n=np.int64(3))) == 3  # type: ignore[arg-type]


def test_users_and_a_history_are_one_too_many(model: kairos.Model, events: pl.DataFrame) -> None:
    for users in ("u4", ["u4"], []):
        with pytest.raises(KairosError, match="but got both"):
            model.recommend(users, history=events.head(0), at=AT)


@pytest.mark.parametrize("n", [-1, 2.5, "3", None, True])
def test_what_is_no_number_of_items_is_refused(model: kairos.Model, n: Any) -> None:
    with pytest.raises(KairosError, match="a number of items is an integer from 0 on, but got"):
        model.recommend("u4", at=AT, n=n)


def test_attention_is_by_event_or_by_basket(model: kairos.Model) -> None:
    by: Any = "basekt"
    with pytest.raises(KairosError, match="by 'event' or 'basket', but got 'basekt'"):
        model.attention("u4", by=by)


def test_a_history_is_answered_as_its_user(model: kairos.Model, events: pl.DataFrame) -> None:
    own = events.filter(pl.col("user_id") == "u4").select("item_id", "timestamp")
    expected = model.recommend("u4", at=AT).drop("user_id")
    answer = model.recommend(history=own.to_pandas(), at=AT)
    assert answer.drop("user_id").equals(expected)
    assert answer["user_id"].null_count() == len(answer)
    assert {*model.recommend(history=own.clear(), at=AT)["reason"]} == {"popular"}


def test_the_default_query_time_is_the_last_event(
    model: kairos.Model, events: pl.DataFrame
) -> None:
    last = events["timestamp"].dt.epoch("us").max() / 1e6  # type: ignore[operator]
    with pytest.warns(UserWarning, match="beyond_training_window"):
        expected = model.recommend("u4", at=last)
    assert model.recommend("u4").equals(expected)


def test_a_query_time_far_ahead_is_warned_of(model: kairos.Model) -> None:
    with pytest.warns(UserWarning, match="beyond_training_window.*pass at="):
        model.recommend("u4", at="2031-01-01")


def test_seen_items_are_left_out_on_request(model: kairos.Model, events: pl.DataFrame) -> None:
    happened = pl.col("timestamp") <= pl.lit(AT).str.to_datetime(time_zone="UTC")
    seen = {*events.filter(happened, pl.col("user_id") == "u4")["item_id"]}
    answers = (model.recommend("u4", at=AT, n=20, exclude_seen=it) for it in (True, False, None))
    without, with_seen, default = ({*answer["item_id"]} for answer in answers)
    assert not without & seen
    assert with_seen & seen
    assert default == with_seen  # as the recipe measures


def test_an_unknown_user_is_refused_with_some_known_ones(model: kairos.Model) -> None:
    with pytest.raises(UnknownUserError, match=r"'nobody' is none of the 30 users, such as 'u0'"):
        model.recommend("nobody")


def test_a_query_has_a_user_or_a_history(model: kairos.Model, events: pl.DataFrame) -> None:
    with pytest.raises(KairosError, match="got neither"):
        model.recommend()
    with pytest.raises(KairosError, match="got both"):
        model.attention("u4", history=events)
    with pytest.raises(EventSourceError, match="is of 30"):
        model.recommend(history=events)


def test_similar_items_have_rank_and_title(model: kairos.Model) -> None:
    table = model.similar("i1", n=3)
    assert table.columns == ["rank", "item_id", "title", "score"]
    assert table["rank"].to_list() == [1, 2, 3]
    assert "i1" not in {*table["item_id"]}
    with pytest.raises(UnknownItemError, match="'i99' is not among"):
        model.similar("i99")


def test_a_saved_model_answers_as_before(
    model: kairos.Model, events: pl.DataFrame, tmp_path: Path
) -> None:
    directory = model.save(tmp_path / "saved")
    assert model.save(tmp_path / "saved") == directory
    loaded = kairos.load(tmp_path / "saved", events)
    assert loaded.version == model.version == directory.name
    assert loaded.recommend("u4", at=AT).equals(model.recommend("u4", at=AT))
    assert loaded.metrics.equals(model.metrics)
    assert repr(loaded) == repr(model)


def test_a_model_loaded_without_events_needs_a_history(
    model: kairos.Model, events: pl.DataFrame, tmp_path: Path
) -> None:
    model.save(tmp_path)
    loaded = kairos.load(tmp_path)
    with pytest.raises(UnknownUserError, match=r"pass events= to kairos.load"):
        loaded.recommend("u4")
    own = events.filter(pl.col("user_id") == "u4")
    assert len(loaded.recommend(history=own)) == 10


def test_a_store_is_loaded_at_its_current_version(model: kairos.Model, tmp_path: Path) -> None:
    assert model.publish(tmp_path / "store", activate=True) == model.version
    other = tiny.write_bundle(tmp_path)
    BundleStore(tmp_path / "store").add_copy(other, activate=False)
    loaded = kairos.load(tmp_path / "store")
    assert loaded.version == model.version
    with pytest.raises(NoReportError, match="loaded without one"):
        _ = loaded.metrics


def test_what_holds_no_bundle_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="must be a bundle or contain one"):
        kairos.load(tmp_path)


def test_a_model_that_does_not_attend_says_so(events: pl.DataFrame) -> None:
    counted = RUN.model_copy(update={"encoder": MarkovConfig()})
    model = kairos.fit(events, recipe=counted, quiet=True)
    with pytest.raises(NoAttentionError, match="'markov' does not"):
        model.attention("u4")
    assert model.card("u4", at=AT).baskets == ()


def test_no_query_times_are_refused(model: kairos.Model) -> None:
    with pytest.raises(KairosError, match="pass at least one"):
        model.attention("u4", query_times=[])


def test_before_the_first_event_there_is_no_attention(model: kairos.Model) -> None:
    assert model.attention("u4", query_times=[to_datetime(tiny.FIRST_AT - 1)]).is_empty()
