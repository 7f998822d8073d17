from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from benchmarks.papers.harness.measured_rows import MeasuredRow
from benchmarks.papers.harness.measured_suite import read_measured_suites
from benchmarks.papers.harness.question_ranks import RankedQuestions, encode_integers
from benchmarks.papers.harness.record import CurvePoint, Record
from benchmarks.papers.harness.row import Role
from benchmarks.papers.harness.suite import Suite
from benchmarks.papers.harness.suite_result import list_results
from benchmarks.papers.pages.curve_plot import (
    COMPARED,
    collect_learning_curves,
    digest_learning_curves,
    draw_learning_curves,
)
from benchmarks.papers.pages.lead_plot import (
    COLOURS,
    collect_drawn,
    digest_leads,
    draw_leads,
)
from benchmarks.papers.pages.render import render
from benchmarks.papers.pages.summary_page import (
    CONTROL_OF_TIMES,
    ROLES,
    render_summary,
    update_readme,
)
from model.errors import TrainingError
from tests.benchmarks.tiny_suite import SUITE, ranked_rows, suite_in

DEFAULT = SUITE.replace("seeds = [0, 3]", 'role = "default"\nseeds = [0, 1]')
DEFAULT = DEFAULT.replace(
    'label = "Positional"',
    'label = "Positional"\nrole = "peer"\npeer = { kind = "rectools_sasrec" }',
)
DEFAULT = DEFAULT.replace('label = "Mercer of degree 2"', 'label = "Degree 2"\nrole = "rival"')


def papers_with(folder: Path, answers: dict[str, list[int]], suite: str = DEFAULT) -> Path:
    """A folder with records of a suite that ranked so many targets of a hundred first."""
    papers = folder / "benchmarks" / "papers"
    read = suite_in(papers, suite)
    for each in ranked_rows(papers, read, answers):
        for record in each.records:
            record.write(papers / "results" / "tiny" / f"{record.row}-{record.seed}.json")
    return papers


def page_of(folder: Path, answers: dict[str, list[int]], suite: str = DEFAULT) -> str:
    return summary_of(papers_with(folder, answers, suite))


def summary_of(papers: Path) -> str:
    suites = read_measured_suites(papers)
    return render_summary(list_results(suites), suites)


def test_what_the_default_is_ahead_of_is_said(tmp_path: Path) -> None:
    page = page_of(tmp_path, {"mercer": [80, 82], "positional": [40], "degree_2": [50]})
    assert "- **A tiny world**. Ahead of all 3 others that were run." in page
    assert "Degree 2, one seed 50.00; lead **+31.00** (" in page
    assert "\nData sets where it is ahead of them all: A tiny world.\n" in page
    assert "is not ahead of every" not in page


def test_what_it_is_not_ahead_of_comes_first(tmp_path: Path) -> None:
    answers = {"mercer": [60, 62], "positional": [90], "degree_2": [60]}
    page = page_of(tmp_path, answers)
    assert "Behind Positional, one seed, **-29.00** (" in page
    assert "Not shown to be ahead of Degree 2, one seed, +1.00 (" in page
    assert "that was run, in the table's metric: A tiny world.\n" in page
    assert "ahead of them all" not in page
    assert page.index("Behind Positional, one seed") < page.index("## In one picture")


def test_data_sets_where_times_help_are_named(tmp_path: Path) -> None:
    control = DEFAULT.replace('label = "Degree 2"\nrole = "rival"', 'label = "No times"')
    control = control.replace('name = "degree_2"', f'name = "{CONTROL_OF_TIMES}"')
    begins = "\nTimes in place of positions in its encoder are shown to help on "
    below = "On A tiny world it is below popularity, so that lead is not the worth of times alone."
    # Popularity has 10.
    for right, text in (
        (40, "A tiny world (**+21.00** ("),
        (8, "A tiny world (**+53.00** ("),
        (61, "no data set. That they help is not shown on A tiny world (+0.00 ("),
    ):
        page = page_of(
            tmp_path / str(right), {"mercer": [60, 62], CONTROL_OF_TIMES: [right]}, control
        )
        assert begins + text in page
        assert "). The control with positions keeps the wide part" in page
        assert (below in page) == (right == 8)
    assert begins not in page_of(tmp_path / "none", {"mercer": [60, 62]}, control)


def test_no_data_set_of_several_is_said_first(tmp_path: Path) -> None:
    answers = {"mercer": [60, 62], "positional": [90], "degree_2": [60]}
    suites = read_measured_suites(papers_with(tmp_path, answers))
    page = render_summary([*list_results(suites)] * 2, suites)
    assert "On none of the 2 data sets is the default ahead of every reference, rival, " in page


def test_a_table_counts_what_the_default_is_ahead_of(tmp_path: Path) -> None:
    suite = DEFAULT.replace('role = "rival"', 'role = "peer"\npeer = { kind = "rectools_sasrec" }')
    answers = {"mercer": [60, 62], "positional": [90], "degree_2": [40]}
    head = "| data set | references | rivals | peers | methods | variants | controls |"
    page = page_of(tmp_path / "all", answers, suite)
    assert head in page
    assert "| A tiny world | 1 of 1 |  | 1 of 2 | not run |  |  |" in page
    del answers["degree_2"]
    page = page_of(tmp_path / "some", answers, suite)
    assert "| A tiny world | 1 of 1 |  | 0 of 1 (1 not run) | not run |  |  |" in page


def test_the_reason_has_its_figures_from_the_records(tmp_path: Path) -> None:
    suite = DEFAULT.replace("data = ", 'limits = "It reads order: {positional}."\ndata = ', 1)
    page = page_of(tmp_path, {"mercer": [60, 62], "positional": [90]}, suite)
    assert "It reads order: 90.00." in page


def test_a_suite_without_a_record_of_the_default_is_named(tmp_path: Path) -> None:
    suite = DEFAULT.replace('role = "default"', 'role = "default"\nrecipe = "recommended"')
    papers = papers_with(tmp_path, {"positional": [40]}, suite)
    assert list_results(read_measured_suites(papers)) == []
    page = summary_of(papers)
    assert "Without comparable records of the default: A tiny world." in page


def test_the_picture_shows_the_best_reference_and_all_others(tmp_path: Path) -> None:
    papers = papers_with(tmp_path, {"mercer": [60, 62], "positional": [40], "degree_2": [50]})
    results = list_results(read_measured_suites(papers))
    ((title, opponents),) = collect_drawn(results)
    assert title == "A tiny world\naccuracy"
    assert [each.role for each, _ in opponents] == ["reference", "rival", "peer"]
    assert [lead.mean for _, lead in opponents] == pytest.approx([5.1, 0.22, 0.525])
    drawn = draw_leads(results)
    assert digest_leads(results) in drawn
    assert ">Degree 2, one seed</text>" in drawn


def test_methods_and_controls_stand_among_those_not_passed(tmp_path: Path) -> None:
    suite = DEFAULT.replace('role = "rival"', 'role = "method"')
    papers = papers_with(tmp_path, {"mercer": [60], "degree_2": [70], "positional": [58]}, suite)
    page = summary_of(papers)
    assert "Behind Degree 2, one seed, **-10.00**" in page
    assert "Positional, one seed, +2.00" in page
    assert "Without a record: 1 method." in page


def test_every_role_has_a_column_and_a_colour() -> None:
    assert {*ROLES} == {*COLOURS} == {*get_args(Role)} - {"default"}
    assert {*COMPARED} == {*get_args(Role)} - {"method", "reference"}


def test_a_headline_without_questions_is_refused(tmp_path: Path) -> None:
    papers = papers_with(tmp_path, {"mercer": [60], "positional": [40]})
    (file,) = (papers / "results" / "tiny" / "questions").iterdir()
    none_later = {"after_a_gap": encode_integers(np.zeros(100, dtype=np.int64))}
    RankedQuestions.read(file).model_copy(update=none_later).write(papers / "results" / "tiny")
    suite = papers / "suites" / "tiny.toml"
    suite.write_text('headline = "after_a_gap"\n' + suite.read_text())
    with pytest.raises(TrainingError, match="tiny has none of subset after_a_gap; set its headl"):
        render(papers)


def test_a_readme_that_lacks_the_last_marker_is_refused() -> None:
    with pytest.raises(TrainingError, match="the page lacks '<!-- rendered from"):
        update_readme("Above. <!-- results --> table\n## Install\n", [])


def test_a_variant_of_the_default_is_no_rival(tmp_path: Path) -> None:
    variant = DEFAULT.replace('role = "rival"', 'role = "variant"')
    with pytest.raises(TrainingError, match="a variant is the recommended recipe with a part"):
        suite_in(tmp_path, variant)
    variant = variant.replace('"variant"', '"variant"\nrecipe = "recommended"')
    (result,) = list_results(
        read_measured_suites(papers_with(tmp_path, {"mercer": [60], "positional": [40]}, variant))
    )
    assert result.count_runs("variant") == (0, 1)
    assert result.count_runs("rival") == (0, 0)
    assert "Without a record: Degree 2; 1 method." in summary_of(tmp_path / "benchmarks/papers")


def test_compared_rows_without_a_record_are_named(tmp_path: Path) -> None:
    page = page_of(tmp_path, {"mercer": [60], "degree_2": [40]})
    ahead = "Ahead of all 2 others that were run."
    run = "A tiny world (1 of 2 rivals, peers and variants run)"
    assert f"\nData sets where it is ahead of those that were run: {run}.\n" in page
    assert "ahead of them all" not in page
    assert f"{ahead}\n  - Without a record: Positional; 1 method.\n" in page
    assert "| not run |" in page


def test_the_best_of_some_rows_says_how_many_were_run(tmp_path: Path) -> None:
    suite = DEFAULT.replace('role = "peer"\npeer = { kind = "rectools_sasrec" }', 'role = "rival"')
    answers = {"mercer": [60], "degree_2": [40]}
    assert " run) |" not in page_of(tmp_path / "all", answers)
    page = page_of(tmp_path / "some", answers, suite)
    table = page.partition("## In figures")[2]
    (row,) = (line for line in table.splitlines() if line.startswith("| A tiny world |"))
    assert "Degree 2, one seed 40.00; lead **+20.00** (" in row
    assert row.count(" (1 of 2 run) |") == 1


def test_a_trained_row_of_two_seeds_is_not_marked(tmp_path: Path) -> None:
    suite = DEFAULT.replace('role = "rival"', 'role = "rival"\nseeds = 2')
    page = page_of(tmp_path, {"mercer": [60], "degree_2": [40, 42]}, suite)
    assert "Degree 2 41.00; lead **+19.00** (" in page


def test_a_row_without_a_random_training_is_not_marked(tmp_path: Path) -> None:
    papers = papers_with(tmp_path, {"mercer": [60], "degree_2": [40]})
    file = papers / "results" / "tiny" / "degree_2-0.json"
    record = Record.read(file)
    for change in ({"epochs": 0}, {"config": {"kind": "rectools_ease"}}):
        record.model_copy(update=change).write(file)
        assert "Degree 2 40.00; lead **+20.00** (" in summary_of(papers)


def test_references_of_equal_ranks_count_once(tmp_path: Path) -> None:
    papers = papers_with(tmp_path, {"mercer": [60]})
    file = papers / "results" / "tiny" / "mercer-0.json"
    record = Record.read(file)
    assert record.questions_sha256 is not None
    folder = papers / "results" / "tiny"
    questions = RankedQuestions.read(RankedQuestions.find_file(folder, record.questions_sha256))
    popular = questions.references["popular_all_time"]
    third = encode_integers(np.repeat([0, 1, 0], [10, 10, 80]))
    more = {"personal_frequency": popular, "repeat_last": third}
    for name in more:
        record.report.rows[name] = record.report.rows["popular_all_time"]
    record.write(file)
    questions.model_copy(update={"references": questions.references | more}).write(folder)
    page = summary_of(papers)
    assert "Ahead of all 2 others that were run." in page
    assert "| popularity, all time 10.00;" in page


def test_all_questions_stand_below_those_after_a_gap(tmp_path: Path) -> None:
    suite = 'headline = "after_a_gap"\n' + DEFAULT
    papers = papers_with(tmp_path, {"mercer": [60], "positional": [41]}, suite)
    lines = summary_of(papers).splitlines()
    (first,) = (number for number, line in enumerate(lines) if "accuracy, %, after a gap" in line)
    assert "| 60.00 |" in lines[first]
    assert "Positional, one seed 40.00;" in lines[first]
    assert "accuracy, %, all questions | 60.00 |" in lines[first + 1]
    assert "Positional, one seed 41.00;" in lines[first + 1]


def test_page_and_readme_are_written_beside_the_records(tmp_path: Path) -> None:
    papers = papers_with(tmp_path, {"mercer": [60, 62], "positional": [40]})
    (tmp_path / "docs").mkdir()
    readme = tmp_path / "README.md"
    readme.write_text("a\n<!-- results -->\nold\n<!-- rendered from the records -->\nb\n")
    written = render(papers)
    assert tmp_path / "docs" / "results.md" in written
    page = readme.read_text()
    assert page.startswith("a\n<!-- results -->\n\n| data set |")
    assert page.endswith("<!-- rendered from the records -->\nb\n")
    assert "old" not in page
    assert "| 61.00 |" in page
    for broken in ("", "<!-- results -->"):
        with pytest.raises(TrainingError, match=r"the page lacks .*; put it back"):
            update_readme(broken, list_results(read_measured_suites(papers)))


@pytest.mark.parametrize("name", ["mine", "benchmarks/mine", "elsewhere/papers"])
def test_another_folder_leaves_the_pages_of_a_checkout(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = tmp_path / "checkout"
    papers_with(checkout, {"mercer": [60, 62], "positional": [40]})
    (checkout / name).parent.mkdir(exist_ok=True)
    (checkout / "benchmarks" / "papers").rename(checkout / name)
    (checkout / "docs").mkdir()
    files = [checkout / "README.md", checkout / "docs/models.md", checkout / "docs/results.md"]
    for file in files:
        file.write_text("<!-- results --><!-- rendered from the records -->")
    monkeypatch.chdir(checkout)
    written = render(Path(name))
    assert Path(name) / "README.md" in written
    assert {file.read_text() for file in files} == {
        "<!-- results --><!-- rendered from the records -->"
    }


def test_the_summary_names_rows_that_are_not_compared(tmp_path: Path) -> None:
    papers = papers_with(tmp_path, {"mercer": [60], "positional": [40], "degree_2": [50]})
    changes: dict[str, dict[str, object]] = {
        "positional": {"data": {"tiny/events.parquet": "1" * 64}},
        "degree_2": {"questions_sha256": "9" * 64},
    }
    for name, change in changes.items():
        file = papers / "results" / "tiny" / f"{name}-0.json"
        Record.read(file).model_copy(update=change).write(file)
    page = summary_of(papers)
    assert "- Without a record: 1 method.\n" in page
    assert "- Records of other data are left out: Positional.\n" in page
    assert "- Records of other questions are not compared: Degree 2.\n" in page


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return suite_in(tmp_path, DEFAULT)


def with_curve(row: MeasuredRow) -> MeasuredRow:
    curve = tuple(
        CurvePoint(
            epoch=epoch,
            seconds=20.0 * epoch,
            cpu_seconds=12.0 * epoch,
            loss=1.0,
            validation={"accuracy": 0.1 * epoch},
        )
        for epoch in (1, 2)
    )
    records = (record.model_copy(update={"curve": curve}) for record in row.records)
    return MeasuredRow(row.row, tuple(records))


def test_learning_curves_are_of_processor_time(suite: Suite, tmp_path: Path) -> None:
    rows = ranked_rows(tmp_path, suite, {"mercer": [60, 62], "positional": [40], "counts": [9]})
    curves = collect_learning_curves(suite, [with_curve(rows[0]), with_curve(rows[1]), rows[2]])
    assert [(curve.label, curve.seed) for curve in curves] == [
        ("Mercer", 0),
        ("Positional", 0),
    ]
    assert curves[0].minutes == [0.2, 0.4]
    drawn = draw_learning_curves(suite, curves)
    assert digest_learning_curves(suite, curves) in drawn
    assert drawn.count(">Mercer</text>") == 1
