from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.papers.harness.comparison import Comparison
from benchmarks.papers.harness.measured_rows import MeasuredRow, read_measured
from benchmarks.papers.harness.measured_suite import read_measured_suites
from benchmarks.papers.harness.record import CurvePoint, PeerRun, TuningTrial
from benchmarks.papers.harness.suite import Suite
from benchmarks.papers.pages.findings import check_figures
from benchmarks.papers.pages.plot import collect_dots, digest_figures, draw
from benchmarks.papers.pages.render import get_plot_path, has_digest, render
from benchmarks.papers.pages.tables_page import render_suite, render_tables
from model.errors import TrainingError
from tests.benchmarks.tiny_suite import SUITE, ranked_rows, record_of, suite_in
from training.evaluation.counting import CountingSettings
from training.evaluation.metrics import Lead


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return suite_in(tmp_path)


@pytest.fixture
def measured(suite: Suite) -> list[MeasuredRow]:
    reached = {"mercer": {0: 0.4, 3: 0.5}, "positional": {0: 0.3}, "degree_2": {0: 0.41}}
    return [
        MeasuredRow(
            suite.row(name),
            tuple(record_of(suite, suite.row(name), seed, value) for seed, value in seeds.items()),
        )
        for name, seeds in reached.items()
    ]


def line_of(page: str, label: str) -> str:
    """Find the first line of a row or reference, whether its name follows the label or not."""
    starts = (f"| {label} |", f"| {label} `")
    return next(line for line in page.splitlines() if line.startswith(starts))


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


def compared(folder: Path, suite: Suite, answers: dict[str, list[int]]) -> str:
    """Render rows whose seeds rank so many targets of a hundred first, the others second."""
    measured = ranked_rows(folder, suite, answers)
    return render_suite(suite, measured, Comparison.read(folder, suite, measured))


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


@pytest.mark.parametrize(
    "figure", ["mercer after_gap", "merceer", "mercer - counting - x", "mercer / x", "mercer mrrr"]
)
def test_a_wrong_figure_is_refused_before_training(suite: Suite, figure: str) -> None:
    wrong = suite.model_copy(update={"limits": f"It has {{{figure}}}."})
    with pytest.raises(TrainingError, match=f"findings or limits .* but .{figure}. does not"):
        check_figures(wrong)


def test_known_figures_are_not_refused(suite: Suite) -> None:
    forms = "{mercer} {mercer live} {mercer mrr} {mercer cpu} {mercer / counting}"
    leads = "{mercer - popular_all_time} {mercer - positional after_a_gap}"
    check_figures(suite.model_copy(update={"findings": forms, "limits": leads}))


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


def test_rows_without_a_record_are_named(suite: Suite, measured: list[MeasuredRow]) -> None:
    assert "Without a record: Counts." in render_suite(suite, measured)


def test_rows_of_other_data_or_questions_are_named(suite: Suite, tmp_path: Path) -> None:
    rows = ranked_rows(tmp_path, suite, {"mercer": [60], "positional": [40], "degree_2": [50]})
    changes: dict[str, dict[str, object]] = {
        "mercer": {"started_at": "2026-01-02"},
        "positional": {"data": {"tiny/events.parquet": "1" * 64}},
        "degree_2": {"questions_sha256": "9" * 64},
    }
    for each in rows:
        record = each.records[0].model_copy(update=changes[each.row.name])
        record.write(tmp_path / "results" / "tiny" / record.file_name)
    page = render_tables(read_measured_suites(tmp_path))
    assert "Without a record: Counts. Records of other data are left out: Positional." in page
    assert "Records of other questions are not compared: Mercer of degree 2." in page


def test_a_seed_of_other_data_is_named(suite: Suite, tmp_path: Path) -> None:
    for seed, data in ((0, "0"), (3, "1")):
        record = record_of(suite, suite.row("mercer"), seed, 0.5).model_copy(
            update={"data": {"tiny/events.parquet": data * 64}, "started_at": f"2026-01-0{seed}"}
        )
        record.write(tmp_path / "results" / "tiny" / record.file_name)
    page = render_tables(read_measured_suites(tmp_path))
    assert "Records of other data are left out: Mercer." in page


def with_curve(
    row: MeasuredRow, values: list[float], every: int = 1, **changes: object
) -> MeasuredRow:
    """Give the last record of a row a learning curve, of one point in so many epochs."""
    curve = tuple(
        CurvePoint(
            epoch=every * number,
            seconds=number,
            cpu_seconds=number,
            loss=1.0,
            validation={"accuracy": value, "ndcg@10": value},
        )
        for number, value in enumerate(values, 1)
    )
    last = row.records[-1].model_copy(update={"curve": curve, **changes})
    return MeasuredRow(row.row, (*row.records[:-1], last))


def test_rows_that_were_still_rising_are_named(suite: Suite, measured: list[MeasuredRow]) -> None:
    page = render_suite(suite, measured)
    assert "best after the last epoch" not in page
    mercer, positional, degree_2 = measured
    rows = [
        with_curve(mercer, [0.1, 0.3, 0.2]),
        with_curve(positional, [0.1, 0.2, 0.3]),
        with_curve(degree_2, [0.1, 0.3, 0.3]),
    ]
    assert "so not shown to be at its best: Positional." in render_suite(suite, rows)


def test_a_row_rises_by_the_metric_that_it_stops_by(
    suite: Suite, measured: list[MeasuredRow]
) -> None:
    row = with_curve(measured[1], [0.1, 0.3, 0.2])
    record = row.records[0]
    rising = (point.validation | {"mrr": point.seconds} for point in record.curve)
    curve = tuple(
        point.model_copy(update={"validation": values})
        for point, values in zip(record.curve, rising, strict=True)
    )

    def page_of(monitor: str) -> str:
        config = record.config | {"fit": {"monitor": monitor}}
        changed = record.model_copy(update={"curve": curve, "config": config})
        return render_suite(suite, [measured[0], MeasuredRow(row.row, (changed,))])

    assert "best after the last epoch" in page_of("mrr")
    assert "best after the last epoch" not in page_of("accuracy")


def test_peers_that_the_budget_ended_are_named(suite: Suite, measured: list[MeasuredRow]) -> None:
    run = PeerRun(fit_seconds=1, test_seconds=1, peak_mib=1, known_items=1, versions={})
    positional = measured[1]

    def page_of(values: list[float], epochs: int = 9, every: int = 1) -> str:
        config = {"patience": 2, "max_history": 9, "epochs": epochs}
        peer = with_curve(positional, values, every, peer=run, config=config)
        return render_suite(suite, [measured[0], peer])

    ended = (
        "Ended by the budget before patience ran out, so not shown to be at its best: Positional."
    )
    assert ended in page_of([0.1, 0.3, 0.2])
    assert ended not in page_of([0.1, 0.3, 0.2, 0.2])
    assert ended not in page_of([0.1, 0.3, 0.2], epochs=3)
    assert ended not in page_of([0.1, 0.3, 0.2], epochs=15, every=5)
    # One that still rose is named once.
    assert ended not in page_of([0.1, 0.2, 0.3])
    assert "Positional." in page_of([0.1, 0.2, 0.3]).partition("With some seed best after")[2]


def test_the_days_of_the_records_are_named(suite: Suite, measured: list[MeasuredRow]) -> None:
    assert "Run 2026-01-01." in render_suite(suite, measured)
    later = measured[0].records[0].model_copy(update={"started_at": "2026-02-03T23:00:00+00:00"})
    runs = [*measured, MeasuredRow(measured[0].row, (later,))]
    assert "Run 2026-01-01 to 2026-02-03." in render_suite(suite, runs)


def test_a_record_counts_while_its_settings_equal_the_suites(
    suite: Suite, tmp_path: Path, measured: list[MeasuredRow]
) -> None:
    for each in measured:
        for record in each.records:
            record.write(tmp_path / "results" / "tiny" / f"{record.row}-{record.seed}.json")
    assert read_measured(tmp_path, suite) == measured
    changed = suite.shorten(9)
    assert read_measured(tmp_path, changed) == []
    assert "A tiny world" in render_tables(read_measured_suites(tmp_path))


def test_a_record_of_a_seed_beside_the_rows_does_not_count(suite: Suite, tmp_path: Path) -> None:
    row = suite.row("mercer")
    for seed in (0, 3, 9):
        record = record_of(suite, row, seed, 0.5)
        record.write(tmp_path / "results" / "tiny" / f"mercer-{seed}.json")
    (measured,) = read_measured(tmp_path, suite)
    assert [record.seed for record in measured.records] == [0, 3]


@pytest.mark.parametrize("role", ["default", "method"])
def test_records_of_other_data_than_the_newest_do_not_count(role: str, tmp_path: Path) -> None:
    suite = suite_in(tmp_path, SUITE.replace("seeds = [0, 3]", f'role = "{role}"\nseeds = [0, 3]'))
    for name in ("mercer", "positional", "counts"):
        record = record_of(suite, suite.row(name), 0, 0.5)
        if name == "mercer":
            newer = {"data": {"tiny/events.parquet": "1" * 64}, "started_at": "2026-01-02"}
            record = record.model_copy(update=newer)
        record.write(tmp_path / "results" / "tiny" / f"{name}-0.json")
    measured = read_measured(tmp_path, suite)
    assert [each.row.name for each in measured] == ["mercer"]
    # A newer record of another row counts only without one of the default.
    record_of(suite, suite.row("counts"), 0, 0.5).model_copy(
        update={"started_at": "2026-01-03"}
    ).write(tmp_path / "results" / "tiny" / "counts-0.json")
    measured = read_measured(tmp_path, suite)
    of_default = ["mercer"] if role == "default" else ["positional", "counts"]
    assert [each.row.name for each in measured] == of_default


def test_choices_and_versions_of_the_code_are_named(
    suite: Suite, measured: list[MeasuredRow]
) -> None:
    tried = TuningTrial(settings={"encoder.dim": 8}, value=0.4, code="c")
    settings: Settings = {"fit.learning_rate": 1e-5, "fit.loss": {"kind": "bpr"}}
    best = TuningTrial(settings=settings, value=0.5, code="c")
    first, *others = measured
    updates: list[dict[str, object]] = [
        {"trials": (tried, best), "choice_cpu_seconds": 7200.0, "code": "a"},
        {"code": "b"},
    ]
    changed = tuple(
        record.model_copy(update=update)
        for record, update in zip(first.records, updates, strict=True)
    )
    page = render_suite(suite, [MeasuredRow(first.row, changed), *others])
    # The other records do not name theirs.
    versions = "They and their trials are of at least 3 versions of the code (`code` of records)."
    assert f"All 4 runs: 2.0 hours of one core. {versions}" in page
    assert "| 12,345 | 10 | 7,200 |" in line_of(page, "Mercer")
    assert "and those chosen: Mercer 2 (learning_rate 1e-05, kind bpr)." in page


def test_choices_at_the_end_of_what_was_tried_are_named(
    suite: Suite, measured: list[MeasuredRow]
) -> None:
    first, *others = measured
    row = first.row.model_copy(
        update={
            "search": {
                "encoder.weight": (1.0, 3.0, 10.0),
                "encoder.share": (0.0, 0.5),
                "encoder.half_life_days": (30.0, 1.5),
                "encoder.form": ("paper", "code"),
            }
        }
    )
    tried = TuningTrial(
        settings={
            "encoder.weight": 3.0,
            "encoder.share": 0.0,
            "encoder.half_life_days": 30.0,
            "encoder.form": "code",
        },
        value=0.5,
    )
    records = tuple(record.model_copy(update={"trials": (tried,)}) for record in first.records)
    page = render_suite(suite, [MeasuredRow(row, records), *others])
    assert "Chosen at an end of the values tried: Mercer (half_life_days 30)." in page
    assert "Chosen at an end" not in render_suite(suite, measured)


def test_what_a_row_sets_itself_is_among_the_values_tried(
    suite: Suite, measured: list[MeasuredRow]
) -> None:
    # The recipe has a dropout of 0.1.
    trials = ({"encoder.dropout": 0.2}, {"fit.learning_rate": 0.5})
    row = measured[0].row.model_copy(update={"trials": trials})

    def page_of(values: tuple[float, ...]) -> str:
        tried = tuple(
            TuningTrial(settings=settings, value=value)
            for settings, value in zip(trials, values, strict=True)
        )
        records = (measured[0].records[0].model_copy(update={"trials": tried}),)
        return render_suite(suite, [MeasuredRow(row, records), *measured[1:]])

    ends = "Chosen at an end of the values tried: Mercer "
    assert ends + "(dropout 0.2, learning_rate 0.001)" in page_of((0.6, 0.5))
    assert ends + "(dropout 0.1, learning_rate 0.5)" in page_of((0.5, 0.6))


def test_zero_and_limits_are_no_ends(suite: Suite, measured: list[MeasuredRow]) -> None:
    search = {"encoder.group_decay": (0.5, 1.0), "encoder.recency": (5.0, 0.0)}
    row = measured[0].row.model_copy(update={"search": search})
    tried = TuningTrial(settings={"encoder.group_decay": 1.0, "encoder.recency": 0.0}, value=0.5)
    records = (measured[0].records[0].model_copy(update={"trials": (tried,)}),)
    page = render_suite(suite, [MeasuredRow(row, records), *measured[1:]])
    assert "Chosen at an end" not in page


def test_trials_and_counting_at_an_end_are_named(suite: Suite, tmp_path: Path) -> None:
    measured = ranked_rows(tmp_path, suite, {"mercer": [60], "positional": [40]})
    comparison = Comparison.read(tmp_path, suite, measured)
    assert comparison is not None
    trials = tuple({"fit.next_time_weight": weight} for weight in (1.0, 0.1, 0.01))
    row = measured[0].row.model_copy(update={"trials": trials})
    tried = tuple(
        TuningTrial(settings=settings, value=value)
        for settings, value in zip(trials, (0.5, 0.4, 0.6), strict=True)
    )
    record = measured[0].records[0].model_copy(update={"trials": tried})
    page = render_suite(suite, [MeasuredRow(row, (record,)), measured[1]], comparison)
    assert "Chosen at an end of the values tried: Mercer (next_time_weight 0.01)." in page
    for settings, end in (
        (CountingSettings(weight=30.0, half_life_days=None), "weight 30"),
        (CountingSettings(half_life_days=30.0), "half_life_days 30"),
        (CountingSettings(window_days=1.0), "window_days 1"),
        (CountingSettings(half_life_days=240.0, window_days=112.0), None),
    ):
        questions = comparison.questions.model_copy(update={"counting": settings})
        page = render_suite(suite, measured, replace(comparison, questions=questions))
        assert ("Chosen at an end" in page) is (end is not None)
        assert end is None or f"the counting references ({end})." in page


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


def test_a_copy_of_a_record_is_no_other_seed(suite: Suite, tmp_path: Path) -> None:
    folder = tmp_path / "results" / "tiny"
    record = record_of(suite, suite.row("mercer"), 0, 0.5)
    for name in ("mercer-0.json", "mercer-0-old.json", "mercer-00.json"):
        record.write(folder / name)
    (measured,) = read_measured(tmp_path, suite)
    assert measured.records == (record,)
    record.write(folder / "mercer-3.json")
    with pytest.raises(TrainingError, match=r"mercer-3\.json is of .* row mercer, seed 0; move it"):
        read_measured(tmp_path, suite)


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
