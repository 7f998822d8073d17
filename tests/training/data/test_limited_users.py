"""Limits of what a single user counts, on tables of events."""

import polars as pl
import pytest

from tests.architecture.repository import ROOT
from tests.training.inspection.event_tables import draw_events, make_events
from training.data.limited_users import drop_excess, find_largest_item_share, find_largest_share
from training.data.plausible_times import drop_implausible
from training.data.sources import read_events


def test_the_first_events_of_a_day_are_kept_in_their_order() -> None:
    clean = draw_events(events=500)
    crawler = make_events([("crawler", "i3", second * 1_000_000) for second in range(300)])
    kept, excess = drop_excess(pl.concat([clean, crawler]))
    assert kept.equals(pl.concat([clean, crawler.head(100)]))
    assert (excess.events, excess.users) == (200, 1)
    assert find_largest_share(pl.concat([clean, crawler])) == 300 / 800


def test_an_item_of_accounts_that_have_little_else_is_found() -> None:
    clean = draw_events(events=500, items=30)
    promoters = make_events(
        [
            (f"new{number}", "i3" if event else "i4", number * 1_000_000)
            for number in range(100)
            for event in range(6)
        ]
    )
    clean_share = find_largest_item_share(clean)
    assert clean_share is not None
    assert clean_share < 0.05
    share = find_largest_item_share(pl.concat([clean, promoters]))
    assert share is not None
    assert share >= 500 / 1_100


def test_users_of_one_item_are_usual_in_a_small_catalog() -> None:
    assert find_largest_item_share(make_events([("a", "i1", 0), ("b", "i1", 1)])) is None


@pytest.mark.slow
def test_nothing_of_the_demo_is_left_out() -> None:
    events = read_events(ROOT / "demo" / "events.parquet")
    plausible, left_out = drop_implausible(events, now=1_700_000_000_000_000)
    assert left_out.total == 0
    assert drop_excess(plausible)[0].equals(events)
