"""Attention over the query time: the long table, its baskets, the figure and the card."""

import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.collections import QuadMesh

import kairos
from kairos.lift import EVEN, HIGH, LOW, to_colour
from kairos.tables import sum_baskets
from model.errors import KairosError
from tests.architecture.repository import ROOT
from tests.training.recipes import RUN

START = datetime(2024, 1, 1, tzinfo=UTC)


def history_of(days: list[int], items: list[str] | None = None) -> pl.DataFrame:
    """A history with an event per day that is listed; a day listed twice is a basket of two."""
    at = [START + timedelta(days=day) for day in days]
    return pl.DataFrame({"item_id": items or [f"i{n}" for n in range(len(days))], "timestamp": at})


def name_all_items(title: str, model: kairos.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives every item of the model this title."""
    catalog = model.predictor.catalog
    named = replace(catalog, titles=(title,) * len(catalog))
    bundle = replace(model.predictor.bundle, catalog=named)
    monkeypatch.setattr(model.predictor, "bundle", bundle)


def test_the_weights_of_a_query_time_sum_to_one(model: kairos.Model) -> None:
    table = model.attention("u1")
    sums = table.group_by("query_time").agg(pl.col("weight").sum())["weight"].to_numpy()
    assert sums == pytest.approx(np.ones(len(sums)), abs=1e-5)
    assert (table["timestamp"] <= table["query_time"]).all()


def test_a_weight_equals_that_of_a_single_answer(model: kairos.Model) -> None:
    history, at = history_of([0, 3, 9, 20]), START + timedelta(days=21)
    swept = model.attention(history=history, query_times=[at])["weight"].to_list()
    answer = model.card(history=history, at=at).answer
    assert answer.attention is not None
    assert swept == pytest.approx(answer.attention.weights, abs=1e-6)


def test_events_that_are_no_longer_read_have_no_weight(model: kairos.Model) -> None:
    read = RUN.encoder.max_history
    query_times = [START + timedelta(days=day) for day in (read - 1, read + 1)]
    table = model.attention(history=history_of(list(range(read + 2))), query_times=query_times)
    earlier, later = table["weight"].is_null()[:read], table["weight"].is_null()[read:]
    assert earlier.to_list() == [False] * read
    assert later.to_list() == [True, True] + [False] * read


def test_a_basket_has_the_weights_of_its_events(model: kairos.Model) -> None:
    history, at = history_of([0, 0, 5, 7, 7]), START + timedelta(days=8)
    events = model.attention(history=history, query_times=[at])
    baskets = model.attention(history=history, query_times=[at], by="basket")
    weights = events["weight"].to_list()
    sums = [sum(weights[:2]), weights[2], sum(weights[3:])]
    assert baskets["events"].to_list() == [2, 1, 2]
    assert baskets["weight"].to_list() == pytest.approx(sums)
    shares = [sums[0] / (2 / 5), sums[1] / (1 / 5), sums[2] / (2 / 5)]
    assert baskets["lift"].to_list() == pytest.approx(shares, rel=1e-4)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.floats(0.001, 1)), min_size=1, max_size=20),
    st.integers(1, 3),
)
def test_the_mean_lift_over_the_events_is_one(
    events: list[tuple[int, float]], query_times: int
) -> None:
    rows = [
        {
            "query_time": START + timedelta(days=100 + query_time),
            "timestamp": START + timedelta(days=day),
            "weight": weight,
        }
        for query_time in range(query_times)
        for day, weight in sorted(events)
    ]
    baskets = sum_baskets(pl.DataFrame(rows))
    means = baskets.group_by("query_time").agg(
        mean=(pl.col("lift") * pl.col("events")).sum() / pl.col("events").sum()
    )
    assert means["mean"].to_list() == pytest.approx([1.0] * query_times)


@pytest.mark.parametrize(
    ("lift", "colour"), [(0, LOW), (0.1, LOW), (0.25, LOW), (1, EVEN), (4, HIGH), (99, HIGH)]
)
def test_the_colours_of_lift_are_fixed(lift: float, colour: str) -> None:
    assert to_colour(lift) == colour


def test_the_colours_are_those_of_the_dashboard() -> None:
    style = (ROOT / "app" / "dashboard" / "static" / "shell" / "style.css").read_text("utf-8")
    for name, colour in (("low", LOW), ("even", EVEN), ("high", HIGH)):
        assert f"--lift-{name}: {colour};" in style


@given(st.floats(0, 100))
def test_no_lift_is_white(lift: float) -> None:
    assert to_colour(lift) != "#ffffff"


def test_the_figure_is_white_before_a_basket(model: kairos.Model) -> None:
    days = [0, 10, 30]
    query_times = [START + timedelta(days=day + 1) for day in days]
    figure = model.plot_attention(history=history_of(days), query_times=query_times)
    (mesh,) = [it for it in figure.axes[0].collections if isinstance(it, QuadMesh)]
    missing = np.ma.getmaskarray(mesh.get_array()).reshape(3, 3)
    assert missing.tolist() == [[False] * 3, [True, False, False], [True, True, False]]
    assert mesh.get_clim() == (-2, 2)


def test_the_figure_draws_ranks_and_marks_an_instant(model: kairos.Model) -> None:
    at = START + timedelta(days=12)
    history, query_times = history_of([0, 10]), [START + timedelta(days=it) for it in (1, 11, 20)]
    figure = model.plot_attention(history=history, query_times=query_times, at=at, n=3)
    ranks = figure.axes[1]
    *items, mark = ranks.get_lines()
    best = {model.recommend(history=history, at=one, n=1)["title"][0] for one in query_times}
    assert best <= {str(line.get_label()).strip() for line in items}
    assert ranks.get_ylim() == (3.5, 0.5)
    assert mark.get_xdata()[0] == pytest.approx(at.timestamp() / 86_400)  # type: ignore[index]
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_any_title_can_be_drawn(model: kairos.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = replace(
        model.predictor.catalog, titles=("_$\\frac{$",) * len(model.predictor.catalog)
    )
    bundle = replace(model.predictor.bundle, catalog=catalog)
    monkeypatch.setattr(model.predictor, "bundle", bundle)
    figure = model.plot_attention("u1")
    assert figure._repr_png_().startswith(b"\x89PNG")
    legend = figure.axes[1].get_legend()
    assert legend is not None
    assert {text.get_text().strip() for text in legend.get_texts()} == {"_$\\frac{$"}


def test_without_matplotlib_the_error_names_the_extra(
    model: kairos.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "kairos.figures", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    with pytest.raises(KairosError, match=r"pip install matplotlib"):
        model.plot_attention("u1")


def test_a_card_shows_the_recommended_items_and_the_baskets(model: kairos.Model) -> None:
    at = START + timedelta(days=8)
    card = model.card(history=history_of([0, 0, 5, 7]), at=at, n=3)
    items = model.recommend(history=history_of([0, 0, 5, 7]), at=at, n=3)
    assert [one.name for one in card.items] == items["title"].to_list()
    assert [one.when for one in card.baskets] == [
        "2024-01-01 00:00",
        "2024-01-06 00:00",
        "2024-01-08 00:00",
    ]
    assert sum(one.weight for one in card.baskets) == pytest.approx(1)
    html = card._repr_html_()
    assert all(title in html for title in items["title"])
    assert "4 events read" in html
    assert str(items["title"][0]) in repr(card)
    assert all(f"{one.when}  {one.weight:6.1%}" in repr(card) for one in card.baskets)


def test_a_card_escapes_what_others_wrote(
    model: kairos.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    attack = "<script>alert('\"&')</script>"
    name_all_items(attack, model, monkeypatch)
    html = model.card("u1")._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;alert(" in html


def test_a_card_says_why_in_the_words_of_the_dashboard(model: kairos.Model) -> None:
    at = START + timedelta(days=8)
    history = history_of([0, 1, 5], ["i3", "i3", "i1"])
    card = model.card(history=history, at=at, n=20, exclude_seen=False)
    catalog = model.predictor.catalog
    repeated = catalog.title(catalog.row("i3"))
    (reason,) = [one.reason for one in card.items if one.name == repeated]
    assert reason.startswith("In this user's history 2 times, last 7 days ago")
    assert reason in card._repr_html_().replace("&#39;", "'")
