from pathlib import Path

import pytest

from benchmarks.papers.harness.measured_rows import MeasuredRow, read_measured
from benchmarks.papers.harness.measured_suite import read_measured_suites
from benchmarks.papers.harness.suite import Suite
from benchmarks.papers.pages.plot import collect_dots, digest_figures, draw
from benchmarks.papers.pages.render import get_plot_path, has_digest, render
from benchmarks.papers.pages.tables_page import render_tables
from model.errors import TrainingError


def test_a_suite_without_records_is_not_on_the_page(suite: Suite, tmp_path: Path) -> None:
    assert suite.title not in render_tables(read_measured_suites(tmp_path))


def test_a_plot_is_deterministic_and_holds_its_digest(
    suite: Suite, measured: list[MeasuredRow]
) -> None:
    drawn = draw(suite, measured)
    assert drawn == draw(suite, measured)
    assert digest_figures(suite, measured) in drawn
    assert {dot.label for dot in collect_dots(suite, measured)} == {
        "Mercer",
        "Positional",
        "Mercer of degree 2",
    }
    unit = "accuracy, %; bars: standard deviation between seeds"
    for label in ("Mercer", "Positional", "degree", unit):
        assert f">{label}</text>" in drawn
    assert digest_figures(suite, measured[:1]) != digest_figures(suite, measured)
    fractions = suite.model_copy(update={"figures": "fraction"})
    assert digest_figures(fractions, measured) != digest_figures(suite, measured)


def test_the_page_and_its_plots_are_written_beside_the_records(
    suite: Suite, tmp_path: Path, measured: list[MeasuredRow]
) -> None:
    plot = get_plot_path(tmp_path, suite)
    assert render(tmp_path) == [tmp_path / "README.md"]
    assert not plot.exists()
    record = measured[0].records[0]
    record.write(tmp_path / "results" / "tiny" / "mercer-0.json")
    assert render(tmp_path) == [tmp_path / "README.md", plot]
    assert has_digest(plot, digest_figures(suite, read_measured(tmp_path, suite)))
    page = (tmp_path / "README.md").read_text()
    assert "plots/tiny.svg" in page
    # The other pages of this repository are not beside it.
    assert page.startswith("# Recorded results\n\n- The name of a row")
    assert "](../" not in page
    assert render(tmp_path) == [tmp_path / "README.md"]


def test_a_page_of_others_is_not_written_over(suite: Suite, tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("# My project\n")
    with pytest.raises(TrainingError, match=r"begins with '# Recorded results', .* is another"):
        render(tmp_path)
    assert page.read_text() == "# My project\n"


def test_a_plot_that_was_cut_is_drawn_again(
    suite: Suite, tmp_path: Path, measured: list[MeasuredRow]
) -> None:
    record = measured[0].records[0]
    record.write(tmp_path / "results" / "tiny" / "mercer-0.json")
    render(tmp_path)
    plot = get_plot_path(tmp_path, suite)
    whole = plot.read_text()
    plot.write_text(whole[: len(whole) // 2])
    assert plot in render(tmp_path)
    assert plot.read_text() == whole


def test_a_page_is_written_whole_or_not_at_all(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    render(tmp_path)
    page = tmp_path / "README.md"
    before = page.read_text()
    monkeypatch.setattr("benchmarks.papers.pages.render.render_tables", lambda *_, **__: "new")

    def fail(path: Path) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("model.bundle.atomic.flush", fail)
    with pytest.raises(OSError, match="disk is full"):
        render(tmp_path)
    assert [page.read_text(), *tmp_path.glob(".README*")] == [before]
