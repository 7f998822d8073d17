from pathlib import Path

import pytest

from benchmarks.papers.harness.suite import Suite
from benchmarks.papers.pages.findings import check_figures
from model.errors import TrainingError
from tests.benchmarks.tiny_suite import compared


def test_findings_have_their_figures_from_the_records(suite: Suite, tmp_path: Path) -> None:
    text = "{mercer}, ahead by {mercer - positional}, {mercer / positional} times, {mercer cpu}"
    written = suite.model_copy(update={"findings": text})
    page = compared(tmp_path, written, {"mercer": [60], "positional": [40]})
    assert "60.00, ahead by **+20.00** (+" in page
    assert "), 1.50 times, 10" in page


def test_a_figure_without_a_record_is_an_error(suite: Suite, tmp_path: Path) -> None:
    wrong = suite.model_copy(update={"findings": "Mercer {mercer - caser}."})
    with pytest.raises(TrainingError, match="mercer - caser"):
        compared(tmp_path, wrong, {"mercer": [60]})


def test_findings_wait_for_the_rows_that_they_name(suite: Suite, tmp_path: Path) -> None:
    for text in ("Mercer: {mercer - positional}.", "Counts {counts mrr}.", "{degree_2 / mercer}"):
        early = suite.model_copy(update={"findings": f"So far. {text}"})
        page = compared(tmp_path, early, {"mercer": [60]})
        assert "So far." not in page
        assert "Without a record: Positional" in page


def test_a_figure_without_a_name_is_an_error(suite: Suite, tmp_path: Path) -> None:
    for figure in ("{}", "{ }"):
        wrong = suite.model_copy(update={"findings": f"Mercer {figure}."})
        with pytest.raises(TrainingError, match=rf"tiny names rows .* but {figure} does not"):
            compared(tmp_path, wrong, {"mercer": [60]})


def test_a_ratio_over_nothing_is_an_error(suite: Suite, tmp_path: Path) -> None:
    wrong = suite.model_copy(update={"findings": "Mercer {mercer / positional}."})
    with pytest.raises(TrainingError, match=r"but \{mercer / positional\} does not"):
        compared(tmp_path, wrong, {"mercer": [60], "positional": [0]})


def test_the_recall_of_repeats_and_of_new_items_can_be_named(suite: Suite, tmp_path: Path) -> None:
    text = "{mercer repeats}, {mercer new_items}; {popular_all_time new_items}"
    written = suite.model_copy(update={"findings": text})
    check_figures(written)
    # Every fourth target is a repeat; 60 of a hundred are ranked first, by popularity 10.
    page = compared(tmp_path, written, {"mercer": [60]})
    assert "\n\n60.00, 60.00; 9.33" in page


@pytest.mark.parametrize(
    "figure", ["mercer after_gap", "merceer", "mercer - counting - x", "mercer / x", "mercer mrrr"]
)
def test_a_wrong_figure_is_refused_before_training(suite: Suite, figure: str) -> None:
    wrong = suite.model_copy(update={"limits": f"It has {{{figure}}}."})
    with pytest.raises(TrainingError, match=f"findings or limits .* but .{figure}. does not"):
        check_figures(wrong)


def test_known_figures_are_not_refused(suite: Suite) -> None:
    forms = "{mercer} {mercer withheld} {mercer mrr} {mercer cpu} {mercer / counting}"
    leads = "{mercer - popular_all_time} {mercer - positional after_a_gap}"
    check_figures(suite.model_copy(update={"findings": forms, "limits": leads}))


def test_a_row_without_a_wide_part_has_no_live_popularity(suite: Suite) -> None:
    written = suite.model_copy(update={"findings": "{mercer live}"})
    with pytest.raises(TrainingError, match=r"but \{mercer live\} does not"):
        check_figures(written)
    wide = suite.row("mercer").model_copy(update={"wide": {}})
    check_figures(written.model_copy(update={"rows": (wide, *suite.rows[1:])}))
