from pathlib import Path

import numpy as np

from benchmarks.papers.harness.comparison import Comparison
from benchmarks.papers.harness.measured_rows import MeasuredRow
from benchmarks.papers.harness.question_ranks import RankedQuestions, encode_integers
from benchmarks.papers.harness.suite import Suite
from benchmarks.papers.pages.tables_page import render_suite
from tests.benchmarks.tiny_suite import SUITE, compared, line_of, ranked_rows, suite_in
from training.evaluation.counting import COUNTING_LIVE
from training.evaluation.metrics import Lead


def test_a_row_shows_mean_spread_cost_and_published_figures(
    suite: Suite, measured: list[MeasuredRow]
) -> None:
    line = line_of(render_suite(suite, measured), "Mercer")
    assert line == (
        "| Mercer `mercer` | method | query time given | 45.00 ± 7.07 | 60.00 ± 0.00 | 2 | 12,345 "
        "| 10 |  | 46.83 (a paper, Table 3) |"
    )


def test_references_stand_on_top(suite: Suite, measured: list[MeasuredRow]) -> None:
    lines = render_suite(suite, measured).splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("| ---"))
    assert lines[first + 1].startswith("| popularity, all time | reference |  | 25.00 | 60.00 |")


def rows_of_one_class(folder: Path) -> Suite:
    """The suite with rows that all read the query time."""
    return suite_in(folder / "one class", SUITE.replace('"order only"', '"query time given"'))


def test_the_row_ahead_of_its_class_is_marked(tmp_path: Path) -> None:
    suite = rows_of_one_class(tmp_path)
    answers = {"mercer": [60, 62], "positional": [40, 41, 42], "degree_2": [30]}
    page = compared(tmp_path, suite, answers)
    assert "| 61.00 ± 1.41 † |" in line_of(page, "Mercer")
    # Positions and degree 2 are behind.
    assert page.count("†") == 1


def test_a_row_beside_a_single_other_is_not_marked(suite: Suite, tmp_path: Path) -> None:
    answers = {"mercer": [60, 62], "positional": [40, 41, 42], "degree_2": [30]}
    assert "†" not in compared(tmp_path, suite, answers)


def test_a_trained_row_of_one_seed_is_not_marked(tmp_path: Path) -> None:
    answers = {"mercer": [60], "positional": [31], "degree_2": [30, 31]}
    assert "†" not in compared(tmp_path, rows_of_one_class(tmp_path), answers)


def test_no_row_is_marked_by_chance(tmp_path: Path) -> None:
    answers = {"mercer": [60, 61], "positional": [31], "degree_2": [59]}
    assert "†" not in compared(tmp_path, rows_of_one_class(tmp_path), answers)


def test_the_default_has_a_lead_over_every_row(tmp_path: Path) -> None:
    suite = suite_in(tmp_path, SUITE.replace("seeds = [0, 3]", 'role = "default"\nseeds = [0, 3]'))
    page = compared(tmp_path, suite, {"mercer": [60, 62], "positional": [40], "degree_2": [61]})
    assert " | lead of the default | " in page
    assert " | **+21.00** (+" in line_of(page, "Positional")
    assert " | +0.00 (-" in line_of(page, "Mercer of degree 2")
    assert " | **+51.00** (+" in line_of(page, "popularity, all time")


def test_counting_live_is_compared_with_live_popularity(tmp_path: Path) -> None:
    suite = suite_in(tmp_path, SUITE.replace("seeds = [0, 3]", 'role = "default"\nseeds = [0, 3]'))
    (row,) = ranked_rows(tmp_path, suite, {"mercer": [60, 60]})
    live = encode_integers(np.where(np.arange(100) < 70, 1, 2))
    for record in row.records:
        record.ranks["model_live"] = live
        record.report.rows[COUNTING_LIVE] = record.report.rows["popular_all_time"]
    (file,) = (tmp_path / "results" / suite.name / "questions").iterdir()
    questions = RankedQuestions.read(file)
    references = questions.references | {COUNTING_LIVE: questions.references["popular_all_time"]}
    questions.model_copy(update={"references": references}).write(file.parents[1])
    page = render_suite(suite, [row], Comparison.read(tmp_path, suite, [row]))
    assert " | **+60.00** (+" in line_of(page, "counting, live")
    assert " | **+50.00** (+" in line_of(page, "popularity, all time")


def test_the_headline_may_be_of_questions_after_a_gap(tmp_path: Path) -> None:
    suite = suite_in(tmp_path, SUITE.replace("plot = ", 'headline = "after_a_gap"\nplot = '))
    page = compared(tmp_path, suite, {"mercer": [60], "positional": [40]})
    heads = "| accuracy, %, after a gap | mrr, %, after a gap | accuracy, %, all questions |"
    assert heads in page
    assert "| 20.00 | 60.00 | 60.00 |" in line_of(page, "Mercer")


def test_questions_users_and_cold_targets_are_counted(suite: Suite, tmp_path: Path) -> None:
    page = compared(tmp_path, suite, {"mercer": [60]})
    assert "100 questions of 50 users, 50 of them later than the last event" in page
    assert "100 targets, of which 3 are cold items" in page


def test_what_is_withheld_stands_apart(suite: Suite, measured: list[MeasuredRow]) -> None:
    page = render_suite(suite, measured)
    assert "| Mercer | 45.00 ± 7.07 | 40.00 ± 7.07 |" in page
    of_query_time = page[page.index("| query time |") : page.index("| after a gap")]
    assert "Positional" not in of_query_time
    assert page.count("| Positional |") == 1
    assert page.count("| Positional `positional` |") == 1
    assert "All 4 runs: 0.0 hours of one core." in page


def test_questions_after_a_gap_stand_apart(suite: Suite, measured: list[MeasuredRow]) -> None:
    page = render_suite(suite, measured)
    head = "| after a gap (120 of 200 questions) | accuracy, %, given | withheld |"
    after_gap = page[page.index(head) :]
    assert "| Mercer | 35.00 ± 7.07 | 33.00 ± 7.07 |" in after_gap
    assert "| Positional | 20.00 |  |" in after_gap


def test_without_questions_at_one_instant_no_gap_stands_apart(
    suite: Suite, measured: list[MeasuredRow]
) -> None:
    for each in measured:
        for record in each.records:
            record.report.after_a_gap.update(record.report.rows)
    assert "after a gap" not in render_suite(suite, measured)


def test_live_popularity_has_a_column_where_a_model_reads_it(
    suite: Suite, measured: list[MeasuredRow]
) -> None:
    head = "given, live popularity"
    assert head not in render_suite(suite, measured)
    rows = measured[0].records[0].report.rows
    rows["model_live"] = rows["model"] | {"accuracy": 0.77}
    page = render_suite(suite, measured)
    assert head in page
    assert "77.00" in page


def with_counting(measured: MeasuredRow) -> MeasuredRow:
    """The same records with the rows of the counting reference, better than all others."""
    popular = measured.records[0].report.rows["popular_all_time"]
    rows = {
        "counting": popular | {"accuracy": 0.35, "ndcg@10": 0.5},
        "counting_live": popular | {"accuracy": 0.37, "ndcg@10": 0.9},
    }
    return MeasuredRow(
        measured.row,
        tuple(
            record.model_copy(
                update={
                    "report": record.report.model_copy(
                        update={
                            "rows": record.report.rows | rows,
                            "ahead": record.report.ahead
                            | {name: Lead(0.2, 0.1, 0.3) for name in rows},
                        }
                    )
                }
            )
            for record in measured.records
        ),
    )


def test_counting_is_shown_where_any_record_has_it(
    suite: Suite, measured: list[MeasuredRow]
) -> None:
    assert "counting" not in render_suite(suite, measured)
    page = render_suite(suite, [*measured[:-1], with_counting(measured[-1])])
    assert line_of(page, "counting, frozen").startswith(
        "| counting, frozen | reference |  | 35.00 |"
    )
    assert line_of(page, "counting, live").startswith("| counting, live | reference |  | 37.00 |")
