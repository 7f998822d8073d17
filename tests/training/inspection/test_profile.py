from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from model.errors import TrainingError
from tests.training.inspection.event_tables import (
    DAY,
    HOUR,
    START,
    draw_choices_by_weekday,
    draw_events,
    make_events,
)
from training.config import DataConfig
from training.data.columns import EVENT_SCHEMA
from training.inspection.findings import Finding
from training.inspection.profile import DataProfile, profile_events


def titles(profile: DataProfile) -> set[str]:
    return {finding.title for finding in profile.findings}


def find(profile: DataProfile, title: str) -> Finding:
    (found,) = [finding for finding in profile.findings if finding.title == title]
    return found


def test_counts_and_repeats_of_a_small_table_are_exact() -> None:
    profile = profile_events(
        make_events(
            [
                ("a", "x", 0),
                ("a", "y", 0),  # a basket of two
                ("a", "x", DAY),  # a repeat
                ("b", "x", HOUR),
                ("b", "x", HOUR),  # a duplicate is no repeat
                ("a", "z", 3 * DAY),
            ]
        )
    )
    assert (profile.users, profile.items, profile.events) == (2, 3, 6)
    assert profile.repeats == pytest.approx(1 / 6)
    assert profile.baskets.tied_steps == pytest.approx(2 / 4)
    assert profile.baskets.count == 4
    assert profile.baskets.several_items == pytest.approx(1 / 4)
    assert profile.baskets.single_instant_events == pytest.approx(2 / 6)
    assert profile.gaps is not None
    assert (profile.gaps.mean, profile.gaps.most) == (1.5 * 86_400, 2 * 86_400)
    assert profile.user_events.most == 4
    assert sum(profile.volume.counts) == 6
    assert profile.days == 3


def test_histograms_count_every_value_in_its_bin() -> None:
    rows = [(f"u{user}", "x", n * DAY) for user, n in ((0, 0), (1, 0), (1, 1))]
    rows += [("u2", "x", n * DAY) for n in range(5)]
    profile = profile_events(make_events(rows))
    assert profile.user_histogram.bounds == (1, 2, 3, 5)
    assert profile.user_histogram.counts == (1, 1, 0, 1)
    assert profile.gap_histogram is not None
    days = dict(zip(profile.gap_histogram.bounds, profile.gap_histogram.counts, strict=True))
    assert days[86_400] == sum(days.values()) == 5


def test_cold_items_are_counted_in_the_last_tenth() -> None:
    rows = [(f"u{n % 3}", "old", n * HOUR) for n in range(18)]
    rows += [("u0", "new", 20 * HOUR), ("u1", "old", 21 * HOUR)]
    profile = profile_events(make_events(rows))
    assert profile.cold is not None
    assert (profile.cold.targets, profile.cold.items) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("step", "resolution"),
    [
        (DAY, "day"),
        (HOUR, "hour"),
        (60_000_000, "minute"),
        (1_000_000, "second"),
        (1_000, "millisecond"),
        (1, "microsecond"),
    ],
)
def test_the_resolution_is_the_coarsest_unit_that_fits(step: int, resolution: str) -> None:
    profile = profile_events(make_events([("a", "x", n * 7 * step) for n in range(1, 50)]))
    assert profile.resolution == resolution


def test_midnights_of_a_time_zone_with_summer_time_are_days() -> None:
    rows = [("a", "x", n * DAY + (4 if n < 60 else 5) * HOUR) for n in range(120)]
    profile = profile_events(make_events(rows))
    assert profile.resolution == "day"
    assert "timestamps are whole days" in titles(profile)
    assert [one.distance is None for one in profile.activity] == [True, False, True]


def test_even_activity_is_even_and_uneven_activity_is_not() -> None:
    even = {one.cycle: one for one in profile_events(draw_events(days=730)).activity}
    assert not any(one.is_uneven for one in even.values())
    office = [
        ("u", f"i{day % 5}", day * DAY + hour * HOUR)
        for day in range(400)
        if day % 7 < 5
        for hour in (9, 15)
    ]
    uneven = {one.cycle: one for one in profile_events(make_events(office)).activity}
    assert uneven["weekday"].distance == pytest.approx(2 / 7, abs=0.01)
    assert uneven["weekday"].visits[5:] == (0, 0)
    assert uneven["hour"].distance == pytest.approx(22 / 24)
    assert not uneven["month"].is_uneven


def test_activity_is_not_measured_on_a_span_shorter_than_cycles() -> None:
    (hour, weekday, month) = profile_events(draw_events(days=5)).activity
    assert hour.distance is not None
    assert weekday.distance is None
    assert "14 days" in weekday.note
    assert "360 days" in month.note


def test_items_chosen_by_weekday_lower_the_overlap() -> None:
    rows = [
        (f"u{user}", "weekend" if day % 7 >= 5 else "workday", day * DAY + user * HOUR)
        for day in range(70)
        for user in range(12)
    ]
    weekday = profile_events(make_events(rows)).activity[1]
    # Of the 21 pairs of different weekdays, ten are both workdays and one is the weekend.
    assert weekday.overlap == pytest.approx(11 / 21, abs=0.01)


def test_how_well_a_weekday_predicts_choices_is_known() -> None:
    weekday = profile_events(draw_choices_by_weekday(users=200)).activity[1]
    # Eight items of sixteen are possible on a day, with shares of 1 / 5.7 on workdays.
    by_day = 5 / 7 * np.log(7 / 5) + 2 / 7 * np.log(7 / 2)
    assert weekday.gain == pytest.approx(by_day, abs=0.05)
    assert weekday.decides_items
    assert weekday.gain_error is not None
    assert 0 < weekday.gain_error < 0.02


def test_chance_predicts_no_later_choices() -> None:
    found = 0
    for seed in range(40):
        hour, weekday, month = profile_events(draw_events(days=60, seed=seed)).activity
        found += hour.decides_items + weekday.decides_items
        assert month.gain is None
    assert found <= 2


def test_later_choices_of_new_items_only_are_not_measured() -> None:
    rows = [(f"u{n % 5}", f"i{n}", n * HOUR) for n in range(800)]
    hour = profile_events(make_events(rows)).activity[0]
    assert (hour.gain, hour.decides_items) == (None, False)


def test_ignored_actions_are_counted_and_left_out() -> None:
    table = make_events([("a", "x", 0), ("a", "y", DAY), ("b", "x", DAY)], ["buy", "cancel", "buy"])
    profile = profile_events(table, data=DataConfig(ignored_actions=("cancel", "unheard")))
    assert profile.events == 2
    assert profile.actions == (("buy", 2), ("cancel", 1))
    assert profile.ignored_actions == ("cancel",)
    assert profile.used_actions == 1


def test_no_events_are_refused_with_a_remedy() -> None:
    with pytest.raises(TrainingError, match="the source has none; check the path"):
        profile_events(EVENT_SCHEMA.to_frame())
    with pytest.raises(TrainingError, match=r"only ignored actions, \['event'\]; ignore fewer"):
        profile_events(draw_events(), data=DataConfig(ignored_actions=("event",)))


@pytest.mark.parametrize(
    "rows",
    [
        [("a", "x", 0)],
        [("a", "x", 0), ("b", "y", 0)],
        [("a", f"i{n}", n) for n in range(200)],
        [("a", "x", -START), ("b", "y", 7_000_000 * 86_400 * 1_000)],
        [("a", "x", (-62_135_596_800) * 1_000_000 - START), ("a", "y", 200_000_000_000_000_000)],
    ],
    ids=["one event", "one instant", "one user", "1970", "the year 1"],
)
def test_odd_tables_have_a_profile(rows: list[tuple[str, str, int]]) -> None:
    assert profile_events(make_events(rows)).events == len(rows)


def test_suspicious_things_are_found_with_their_numbers() -> None:
    clean = draw_events()
    first = clean["timestamp"].min()
    odd = pl.concat(
        [
            clean,
            clean.head(7),  # duplicates
            clean.head(3).with_columns(
                pl.lit(0).cast(EVENT_SCHEMA["timestamp"]).alias("timestamp")
            ),
            clean.unique("user_id").with_columns(
                pl.lit("imported").alias("item_id"), pl.lit(first).alias("timestamp")
            ),
            clean.head(1).with_columns(pl.lit("refund").alias("action")),
        ],
    )
    profile = profile_events(odd, now=START + 100 * DAY)
    assert "7 events" in find(profile, "duplicates").detail
    assert "3 events, the first in 1970" in find(profile, "timestamps before 1990").detail
    assert "40 users" in find(profile, "one instant for many users").detail
    assert "--ignore-action refund" in find(profile, "actions that may undo others").detail
    assert "a silent stretch" in titles(profile)
    later = clean.filter(pl.col("timestamp").to_physical() > START + 100 * DAY)
    assert f"{len(later):,} events" in find(profile, "timestamps in the future").detail
    assert profile_events(clean, now=START + 300 * DAY).findings == ()


@pytest.mark.parametrize(
    "at", [0, -62_135_596_800_000_000, START - 9_000 * DAY, START + 9**5 * DAY]
)
def test_one_implausible_event_is_named_and_changes_no_figure(at: int) -> None:
    events = draw_events()
    odd = events.head(1).with_columns(timestamp=pl.lit(at).cast(EVENT_SCHEMA["timestamp"]))
    now = START + 300 * DAY
    plain, changed = (
        profile_events(table, now=now) for table in (events, pl.concat([odd, events]))
    )
    assert "1 events with implausible times" in find(changed, "implausible times").detail
    assert replace(changed, findings=(), actions=()) == replace(plain, findings=(), actions=())


def test_a_heavy_user_and_items_with_one_event_are_found() -> None:
    rows = [(f"u{n % 30}", f"i{n % 5}", n * HOUR) for n in range(60)]
    rows += [("crawler", f"once{n}", n * HOUR + 1) for n in range(400)]
    profile = profile_events(make_events(rows))
    assert "'crawler' has 400 events (87.0%)" in find(profile, "one user with a large share").detail
    assert "400 of 405 items" in find(profile, "items with one event").detail


def test_floods_are_found_with_their_users_and_items() -> None:
    clean = draw_events(users=200)
    assert titles(profile_events(clean)) == set()
    crawler = make_events([("crawler", "i3", second * 1_000_000) for second in range(130)])
    profile = profile_events(pl.concat([clean, crawler]))
    found = find(profile, "more events than one user can have").detail
    assert "30 events of 1 users, most of 'crawler'" in found
    praise = make_events([(f"new{n}", "i3", n * HOUR) for n in range(600)])
    profile = profile_events(pl.concat([clean, praise]))
    assert "600 of" in find(profile, "one item of users who choose nothing else").detail


def test_items_without_a_description_are_found() -> None:
    items = pl.DataFrame(
        {"item_id": ["i0", "i1"], "title": ["Zero", None], "categories": [[], []]},
        schema={"item_id": pl.String, "title": pl.String, "categories": pl.List(pl.String)},
    )
    profile = profile_events(draw_events(items=4), items)
    assert profile.described_items == 0.25
    assert "2 of 4 items" in find(profile, "items without a description").detail
