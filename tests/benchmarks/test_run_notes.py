from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.papers.harness.comparison import Comparison
from benchmarks.papers.harness.measured_rows import MeasuredRow
from benchmarks.papers.harness.measured_suite import read_measured_suites
from benchmarks.papers.harness.record import CurvePoint, PeerRun, TuningTrial
from benchmarks.papers.harness.settings import Settings
from benchmarks.papers.harness.suite import Suite
from benchmarks.papers.pages.tables_page import render_suite, render_tables
from tests.benchmarks.tiny_suite import line_of, ranked_rows, record_of
from training.evaluation.counting import CountingSettings


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


def test_what_losses_compare_a_target_with_is_said(suite: Suite, tmp_path: Path) -> None:
    mercer, positional = ranked_rows(tmp_path, suite, {"mercer": [60], "positional": [40]})
    default = replace(mercer, row=mercer.row.model_copy(update={"role": "default"}))
    configs: list[Settings] = [
        {"loss": "softmax", "negatives": 256, "max_history": 50},
        {"loss": "CE", "negatives": None, "max_history": 50},
        {"loss": "CE", "negatives": 32, "max_history": 50},
        {"regularization": 1.0, "max_history": 50},
    ]
    peers = [
        MeasuredRow(
            positional.row.model_copy(update={"role": "peer", "label": label}),
            (positional.records[0].model_copy(update={"config": config}),),
        )
        for label, config in zip("ABCD", configs, strict=True)
    ]
    comparison = Comparison.read(tmp_path, suite, [default])
    page = render_suite(suite, [default, *peers], comparison)
    # The catalog has 20 items, above which the softmax of the suite's base is not sampled.
    assert (
        " Their losses compare a target with all items, of A, B; 32 drawn for each, of C. "
        "That of the default: with all items.\n"
    ) in page


@pytest.mark.parametrize(("cpu_seconds", "ratio"), [(8, "2.0"), (4.4, None)])
def test_machines_of_other_speeds_are_named(
    suite: Suite, measured: list[MeasuredRow], cpu_seconds: float, ratio: str | None
) -> None:
    mercer = with_curve(measured[0], [0.1, 0.3, 0.2, 0.2])
    first = mercer.records[-1]
    last = first.curve[-1].model_copy(update={"cpu_seconds": cpu_seconds})
    second = first.model_copy(update={"curve": (*first.curve[:-1], last)})
    page = render_suite(suite, [MeasuredRow(mercer.row, (first, second))])
    text = f"differ: the CPU seconds of an epoch by up to {ratio} times between seeds of a row."
    assert (text in page) == (ratio is not None)
    assert ("Machines of one name" in page) == (ratio is not None)


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
