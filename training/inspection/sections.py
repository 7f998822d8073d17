"""The profile as sections of facts, tables and bar charts, for the terminal and for HTML."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from model.clock import MICROSECONDS_PER_DAY, to_datetime
from training.inspection.action_names import format_name, list_names
from training.inspection.activity import Activity
from training.inspection.drift import Drift, PopularityComparison
from training.inspection.profile import DataProfile, Histogram, Quantiles


@dataclass(frozen=True)
class Fact:
    """One figure.

    Attributes:
        label: what it is.
        value: the figure as text.
        remark: how to read it; may be empty.
    """

    label: str
    value: str
    remark: str = ""


@dataclass(frozen=True)
class FactTable:
    """Figures in columns.

    Attributes:
        headers: the head of each column.
        rows: the cells; the first of each row is its name.
    """

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class BarChart:
    """Bars from zero.

    Attributes:
        title: what the bars are.
        labels: the name of each bar.
        values: the height of each bar.
        texts: the same as text.
        summary: the chart in one sentence, for readers who cannot see it.
        expected: a height to compare each bar with; None for nothing.
    """

    title: str
    labels: tuple[str, ...]
    values: tuple[float, ...]
    texts: tuple[str, ...]
    summary: str
    expected: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Section:
    """One part of the report."""

    title: str
    facts: tuple[Fact, ...] = ()
    table: FactTable | None = None
    charts: tuple[BarChart, ...] = ()


def build_sections(profile: DataProfile) -> tuple[Section, ...]:
    """Build the sections of the report on a profile."""
    return (
        _describe_findings(profile),
        _describe_size(profile),
        _describe_distributions(profile),
        _describe_repeats(profile),
        _describe_calendar(profile),
        _describe_drift(profile),
    )


def format_duration(seconds: float) -> str:
    """Format a duration in the largest unit that keeps it at least 1, such as `3.9 days`."""
    for unit, length in (("year", 365.25 * 86_400), ("day", 86_400.0), ("h", 3_600.0)):
        if seconds >= length:
            number = format_number(seconds / length)
            return f"{number} {unit}" + "s" * (number != "1" and unit != "h")
    if seconds >= 60:
        return f"{format_number(seconds / 60)} min"
    return f"{format_number(seconds)} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def format_number(value: float) -> str:
    """Format a number with two or three digits, and thousands apart."""
    return f"{value:,.0f}" if value >= 10 or value == round(value) else f"{value:.1f}"


def _describe_size(profile: DataProfile) -> Section:
    total = sum(count for _, count in profile.actions)
    facts = [
        Fact("Users", f"{profile.users:,}"),
        Fact("Items", f"{profile.items:,}"),
        Fact("Events", f"{profile.events:,}"),
        Fact(
            "Span",
            f"{_format_day(profile.first_at)} to {_format_day(profile.last_at)}",
            format_duration((profile.last_at - profile.first_at) / 1e6),
        ),
        Fact("Timestamps", f"whole {profile.resolution}s"),
        Fact(
            "Actions",
            list_names(
                [
                    f"{format_name(name)} {count:,} ({count / total:.1%})"
                    for name, count in profile.actions
                ]
            ),
            f"left out: {list_names([*map(format_name, profile.ignored_actions)])}"
            if profile.ignored_actions
            else "",
        ),
        Fact("Events of the top tenth of items", f"{profile.top_items:.0%}"),
    ]
    if profile.described_items is not None:
        facts.append(Fact("Items with a title or categories", f"{profile.described_items:.0%}"))
    if profile.cold is not None:
        facts.append(
            Fact(
                "Events of new items",
                f"{profile.cold.targets:.1%}",
                f"of the last tenth; {profile.cold.items:.1%} of its items were not seen before",
            )
        )
    return Section("Size", tuple(facts), charts=(_draw_volume(profile),))


def _draw_volume(profile: DataProfile) -> BarChart:
    volume = profile.volume
    width = int(volume.days * MICROSECONDS_PER_DAY)
    labels = tuple(_format_day(volume.begins + n * width) for n in range(len(volume.counts)))
    unit = format_duration(volume.days * 86_400) if volume.days > 1 else "day"
    return _draw_counts(f"Events per {unit}", labels, volume.counts)


def _describe_distributions(profile: DataProfile) -> Section:
    quantities: list[tuple[str, Quantiles, Callable[[float], str]]] = [
        ("Events per user", profile.user_events, format_number),
        ("Events per item", profile.item_events, format_number),
        ("Events per basket", profile.baskets.sizes, format_number),
    ]
    if profile.gaps is not None:
        quantities.append(("Between a user's instants", profile.gaps, format_duration))
    charts = [_draw_sizes("Users by their number of events", profile.user_histogram)]
    if profile.gap_histogram is not None:
        charts.append(_draw_durations("Times between a user's instants", profile.gap_histogram))
    columns = {
        "mean": "mean",
        "p10": "10%",
        "median": "median",
        "p90": "90%",
        "p99": "99%",
        "most": "most",
    }
    return Section(
        "Users, items and times",
        table=FactTable(
            ("", *columns.values()),
            tuple(
                (label, *(form(getattr(quantiles, name)) for name in columns))
                for label, quantiles, form in quantities
            ),
        ),
        charts=tuple(charts),
    )


def _describe_repeats(profile: DataProfile) -> Section:
    baskets = profile.baskets
    return Section(
        "Repeats and baskets",
        (
            Fact(
                "Repeats", f"{profile.repeats:.1%}", "events of an item that the user chose before"
            ),
            Fact("Ties", f"{baskets.tied_steps:.1%}", "steps to an event at the same instant"),
            Fact("Baskets", f"{baskets.count:,}", "events of one user at one instant"),
            Fact("Baskets of several items", f"{baskets.several_items:.1%}"),
            Fact(
                "Histories at one instant",
                f"{baskets.single_instant_events:.1%}",
                "events of users who have no earlier or later instant",
            ),
        ),
        charts=(_draw_sizes("Baskets by their number of events", baskets.size_histogram),)
        if baskets.tied_steps > 0
        else (),
    )


def _describe_calendar(profile: DataProfile) -> Section:
    return Section(
        f"Calendar ({profile.time_zone})",
        tuple(_describe_activity(one) for one in profile.activity),
        charts=tuple(_draw_activity(one) for one in profile.activity if one.distance is not None),
    )


def _describe_activity(activity: Activity) -> Fact:
    label = f"Activity by {activity.cycle}"
    if activity.distance is None:
        return Fact(label, "not measured", activity.note)
    remark = f"{activity.distance:.1%} of the visits would have to move to be even"
    remark += f" ({activity.noise or 0:.1%} by chance)"
    if activity.overlap is not None:
        remark += f"; overlap of the items {min(activity.overlap, 1):.2f}"
    if activity.gain is not None:
        remark += (
            f"; {'predicts' if activity.decides_items else 'does not predict'} what is chosen later"
        )
    return Fact(label, "uneven" if activity.is_uneven else "even", remark)


def _draw_activity(activity: Activity) -> BarChart:
    total = sum(activity.visits)
    shares = tuple(count / total for count in activity.visits)
    most = max(range(len(shares)), key=shares.__getitem__)
    unit = "hours" if activity.cycle == "hour" else "days"
    return BarChart(
        title=f"Visits by {activity.cycle}",
        labels=activity.labels,
        values=shares,
        texts=tuple(f"{share:.1%}" for share in shares),
        summary=f"Share of the {unit} on which a user has an event. Most in "
        f"{activity.labels[most]}: {shares[most]:.1%}. The marks are an even spread.",
        expected=activity.expected,
    )


def _describe_drift(profile: DataProfile) -> Section:
    facts: list[Fact] = []
    charts: tuple[BarChart, ...] = ()
    drift = profile.drift
    if drift is None or drift.overlaps[0] is None:
        facts.append(Fact("Overlap of periods", "not measured", "too few periods with events"))
    else:
        facts.append(
            Fact(
                f"Overlap with the {drift.unit} before",
                f"{min(drift.overlaps[0], 1):.2f}",
                "1: the same items in the same shares, beyond chance; 0: different items",
            )
        )
        charts = (_draw_drift(drift),)
    if profile.popularity is None:
        facts.append(Fact("Popularity", "not measured", "too few events"))
    return Section(
        "Drift: choices that change over time",
        tuple(facts),
        _compare_popularity(profile.popularity) if profile.popularity is not None else None,
        charts,
    )


def _draw_drift(drift: Drift) -> BarChart:
    known = [
        (lag, min(max(overlap, 0.0), 1.0))  # chance may lead a little beyond
        for lag, overlap in enumerate(drift.overlaps, start=1)
        if overlap is not None
    ]
    return BarChart(
        title=f"Overlap of the items of two {drift.unit}s, by the {drift.unit}s between them",
        labels=tuple(str(lag) for lag, _ in known),
        values=tuple(overlap for _, overlap in known),
        texts=tuple(f"{overlap:.2f}" for _, overlap in known),
        summary=f"From {known[0][1]:.2f} at {known[0][0]} to {known[-1][1]:.2f} at {known[-1][0]}.",
    )


def _compare_popularity(comparison: PopularityComparison) -> FactTable:
    rows = [("all time", f"{comparison.hit_rate:.1%}", "1.00")]
    rows += [
        (f"last {one.days} days", f"{one.hit_rate:.1%}", f"{one.gain:.2f}")
        for one in comparison.recent
    ]
    heads = (
        "Popularity of",
        f"Next item is among its ten most popular ({comparison.events:,} events)",
        "Predicted share of the next item, all time = 1",
    )
    return FactTable(heads, tuple(rows))


def _describe_findings(profile: DataProfile) -> Section:
    found = tuple(Fact(one.title.capitalize(), "", one.detail) for one in profile.findings)
    return Section("To check", found or (Fact("Nothing suspicious", "", ""),))


def _draw_sizes(title: str, histogram: Histogram) -> BarChart:
    return _draw_counts(title, tuple(_label_sizes(histogram.bounds)), histogram.counts)


def _label_sizes(bounds: tuple[float, ...]) -> Iterator[str]:
    for low, following in zip(bounds, (*bounds[1:], None), strict=True):
        if following is None:
            yield f"{low:.0f}+"
        else:
            yield f"{low:.0f}" if following == low + 1 else f"{low:.0f}-{following - 1:.0f}"


def _draw_durations(title: str, histogram: Histogram) -> BarChart:
    labels = [f"<{format_duration(histogram.bounds[1])}"]
    labels += [f"{format_duration(bound)}+" for bound in histogram.bounds[1:]]
    return _draw_counts(title, tuple(labels), histogram.counts)


def _draw_counts(title: str, labels: tuple[str, ...], counts: tuple[int, ...]) -> BarChart:
    most = max(range(len(counts)), key=counts.__getitem__)
    return BarChart(
        title=title,
        labels=labels,
        values=tuple(map(float, counts)),
        texts=tuple(f"{count:,}" for count in counts),
        summary=f"{len(counts)} bars, from {labels[0]} to {labels[-1]}. Most at {labels[most]}: "
        f"{counts[most]:,}.",
    )


def _format_day(instant: int) -> str:
    return f"{to_datetime(instant):%Y-%m-%d}"
