import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from tests.training.inspection.event_tables import draw_events, make_events
from training.inspection.html import draw_bars, render_html
from training.inspection.profile import profile_events
from training.inspection.recommendation import recommend_recipe
from training.inspection.sections import BarChart, build_sections, format_duration

VOID = {"meta", "link", "br", "img", "input"}


class Structure(HTMLParser):
    """Checks that elements are closed in order, and counts them."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.counts: dict[str, int] = {}
        self.references: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        values = {name: value or "" for name, value in attrs}
        self.references += values.get("aria-labelledby", "").split()
        if "id" in values:
            self.ids.append(values["id"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1


def render(source: str = "events.csv") -> str:
    profile = profile_events(draw_events(days=400))
    return render_html(profile, recommend_recipe(profile), source)


def test_the_page_stands_alone() -> None:
    page = render()
    assert not re.search(r"<script|<link|<img|url\(|@import|https?:", page)


def test_every_plot_has_a_title_and_a_summary() -> None:
    structure = Structure()
    structure.feed(render())
    assert structure.open == []
    assert structure.counts["svg"] == structure.counts["desc"] == 7
    assert structure.references == structure.ids
    assert len(set(structure.ids)) == 2 * structure.counts["svg"]


def test_the_page_has_every_number_of_the_sections() -> None:
    page = render()
    for section in build_sections(profile_events(draw_events(days=400))):
        assert f"<h2>{section.title}</h2>" in page
        for fact in section.facts:
            assert fact.value in page
        for chart in section.charts:
            assert all(text in page for text in chart.texts)


def test_texts_of_the_data_are_escaped() -> None:
    hostile = "<script>alert(1)</script>"
    rows = [(f"u{n % 9}", hostile, n * 10**10) for n in range(300)]
    profile = profile_events(make_events(rows, action=hostile))
    page = render_html(profile, recommend_recipe(profile), hostile)
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_a_page_of_one_event_is_rendered() -> None:
    profile = profile_events(make_events([("a", "x", 0)]))
    assert "too few periods" in render_html(profile, recommend_recipe(profile), "one.csv")


def test_bars_are_in_proportion_and_labels_do_not_overlap() -> None:
    texts = ("2", "1", "0")
    chart = BarChart("t", ("a", "b", "c"), (2.0, 1.0, 0.0), texts, "s", (1.0, 1.0, 1.0))
    high, half, empty = draw_bars(chart)
    assert (high.y, half.height, empty.height) == (0, high.height / 2, 0)
    assert high.expected == half.y
    long = tuple(f"2024-01-{n:02}" for n in range(1, 31))
    crowded = draw_bars(BarChart("t", long, (1.0,) * 30, long, "s"))
    starts = [bar.label_x for bar in crowded if bar.label]
    assert len(starts) > 2
    assert min(later - earlier for earlier, later in pairwise(starts)) > 60


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.25, "250 ms"),
        (35, "35 s"),
        (90, "1.5 min"),
        (7_200, "2 h"),
        (86_400, "1 day"),
        (340_000, "3.9 days"),
        (63_115_200, "2 years"),
    ],
)
def test_durations_are_readable(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
