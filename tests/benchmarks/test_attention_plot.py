import pytest

from benchmarks.papers.harness.record import ProfilePoint
from benchmarks.papers.pages.attention_plot import digest_curves, draw_attention
from benchmarks.papers.pages.render import has_digest


def curve(view: str, by: str, name: str, count: int = 100) -> list[ProfilePoint]:
    return [
        ProfilePoint(view=view, by=by, name=name, interval_days=days, mean=0.5, sd=0.1, count=count)
        for days in (0.01, 1.0, 100.0)
    ]


CURVES = [
    *curve("observed", "action", "buy"),
    *curve("observed", "category", "tea"),
    *curve("predicted", "action", "buy"),
    *curve("observed", "category", "seldom", count=3),
]


def test_the_three_panels_name_their_curves() -> None:
    plot = draw_attention("A shop", CURVES)
    for text in ("A shop", "buy", "tea", "predicted"):
        assert text in plot


def test_a_point_of_few_histories_is_not_drawn() -> None:
    assert "seldom" not in draw_attention("A shop", CURVES)


def test_a_panel_without_a_curve_stays_empty() -> None:
    plot = draw_attention("A shop", curve("observed", "action", "buy"))
    assert plot.count(">buy<") == 1


def test_a_plot_is_deterministic_and_holds_its_digest(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    file = tmp_path_factory.mktemp("plots") / "attention.svg"
    file.write_text(draw_attention("A shop", CURVES), "utf-8")
    assert file.read_text("utf-8") == draw_attention("A shop", CURVES)
    assert has_digest(file, digest_curves("A shop", CURVES))
    assert not has_digest(file, digest_curves("A shop", CURVES[1:]))
    assert not has_digest(file, digest_curves("A mall", CURVES))
