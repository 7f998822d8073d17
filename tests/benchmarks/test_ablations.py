from pathlib import Path

import pytest

from benchmarks.ablations.harness.ablations import (
    Ablations,
    changes,
    check_epochs,
    get_epochs,
    read_ablation,
    select_rows,
)
from benchmarks.ablations.harness.effects import compare_with_whole
from benchmarks.ablations.harness.page import render_ablation, render_ablations
from benchmarks.papers.harness.comparison import Comparison
from benchmarks.papers.harness.measured_rows import MeasuredRow
from benchmarks.papers.harness.plan import Selection, plan
from benchmarks.papers.harness.record import Record
from benchmarks.papers.harness.run_cell import run_cell
from benchmarks.papers.harness.suite import Suite
from model.errors import TrainingError
from tests.benchmarks.tiny_ablations import (
    ABLATIONS,
    ablation_record_of,
    folder_with_ablations,
    read_tiny_ablation,
    write_questions,
)

FULL = {"model": 100, "model_live": 120, "model_withheld": 80}
NO_DRIFT = {"model": 70, "model_withheld": 80}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = folder_with_ablations(tmp_path_factory.mktemp("benchmarks"))
    write_questions(folder / "ablations")
    return folder


@pytest.fixture(scope="module")
def suite(folder: Path) -> Suite:
    return read_tiny_ablation(folder)


def measure(suite: Suite, row: str, right: dict[str, int], **options: int) -> MeasuredRow:
    return MeasuredRow(suite.row(row), (ablation_record_of(suite, row, right, **options),))


def compare(folder: Path, suite: Suite, whole: MeasuredRow, row: MeasuredRow) -> Comparison:
    return compare_with_whole(folder / "ablations", suite, [whole, row])[row.row.name]


def test_a_row_that_changes_nothing_is_not_run(suite: Suite) -> None:
    assert [row.name for row in suite.rows if not changes(suite, row)] == ["no_baskets"]
    selected = select_rows(suite, ("full", "no_baskets", "no_wide"))
    assert [row.name for row in selected.rows] == ["full", "no_wide"]
    assert len(select_rows(suite).rows) == 4


def test_an_unknown_row_or_suite_is_refused(suite: Suite, folder: Path) -> None:
    with pytest.raises(TrainingError, match="no_magic"):
        select_rows(suite, ("no_magic",))
    with pytest.raises(TrainingError, match=r"\['tiny'\], but got 'huge'"):
        Ablations.read(folder / "ablations").read_suite("huge", folder / "papers")
    with pytest.raises(TrainingError, match=r"ablations\.toml.*set --folder"):
        Ablations.read(folder)


def test_a_row_keeps_everything_but_its_part(suite: Suite) -> None:
    full = suite.build_config(suite.row("full"), 0)
    assert full.wide
    without = suite.build_config(suite.row("no_wide"), 0)
    assert without == full.model_copy(update={"wide": None})
    no_drift = suite.build_config(suite.row("no_drift"), 0)
    wide = full.wide.model_copy(update={"popularity": False})
    assert no_drift == full.model_copy(update={"wide": wide})


def test_an_effect_is_the_difference_on_the_same_questions(suite: Suite, folder: Path) -> None:
    comparison = compare(
        folder, suite, measure(suite, "full", FULL), measure(suite, "no_drift", NO_DRIFT)
    )
    effect = comparison.compare("no_drift", "full")
    assert effect.mean == pytest.approx(-0.15)
    assert effect.low < -0.15 < effect.high < 0
    assert comparison.compare("no_drift", "full", ranker="model_withheld") == (0, 0, 0)


def test_a_model_without_counts_is_its_own_live_model(suite: Suite, folder: Path) -> None:
    comparison = compare(
        folder, suite, measure(suite, "full", FULL), measure(suite, "no_drift", NO_DRIFT)
    )
    effect = comparison.compare("no_drift", "full", ranker="model_live")
    assert effect.mean == pytest.approx((70 - 120) / 200)
    assert comparison.resample("no_drift", ranker="model_live").mean == pytest.approx(0.35)


def test_the_interval_of_an_effect_is_over_users_and_seeds(suite: Suite, folder: Path) -> None:
    rows = {
        name: MeasuredRow(
            suite.row(name),
            tuple(
                ablation_record_of(suite, name, {"model": right[seed]}, seed=seed)
                for seed in (0, 1)
            ),
        )
        for name, right in (("full", (100, 50)), ("no_drift", (50, 100)))
    }
    effect = compare(folder, suite, rows["full"], rows["no_drift"]).compare("no_drift", "full")
    assert effect.mean == 0
    assert effect.low < -0.2 < 0.2 < effect.high


def test_only_runs_of_the_same_length_and_seed_are_compared(suite: Suite, folder: Path) -> None:
    whole = measure(suite, "full", FULL)
    for other in (
        measure(suite, "no_drift", NO_DRIFT, epochs=2),
        measure(suite, "no_drift", NO_DRIFT, seed=1),
    ):
        assert [*compare_with_whole(folder / "ablations", suite, [whole, other])] == ["full"]
        several = MeasuredRow(whole.row, (*whole.records, *measure_like(suite, other)))
        effect = compare(folder, suite, several, other).compare("no_drift", "full")
        assert effect.mean == pytest.approx((70 - 130) / 200)


def measure_like(suite: Suite, other: MeasuredRow) -> tuple[Record, ...]:
    """A record of the whole recipe with the seed and epochs of another row's, and 130 right."""
    (record,) = other.records
    return measure(
        suite, "full", {"model": 130}, seed=record.seed, epochs=get_epochs(record)
    ).records


def test_only_the_newest_questions_of_the_whole_recipe_count(suite: Suite, folder: Path) -> None:
    (record,) = measure(suite, "full", FULL).records
    older = record.model_copy(
        update={
            "seed": 1,
            "questions_sha256": "5" * 64,
            "started_at": "2020-01-01T00:00:00+00:00",
        }
    )
    whole = MeasuredRow(suite.row("full"), (record, older))
    page = render_ablation(folder / "ablations", suite, [whole])
    assert "| all of it | 60.00 |  | 50.00 |  | 40.00 |  | 1 | 10 |" in page


def test_newer_records_of_other_questions_are_left_out(suite: Suite, folder: Path) -> None:
    whole, other = measure(suite, "full", FULL), measure(suite, "no_drift", NO_DRIFT)
    record = other.records[0].model_copy(
        update={"questions_sha256": "4" * 64, "started_at": "2027-01-01T00:00:00+00:00"}
    )
    page = render_ablation(folder / "ablations", suite, [whole, MeasuredRow(other.row, (record,))])
    assert "| all of it | 60.00 |" in page
    assert "Without a comparable record: without drift;" in page


def test_the_table_has_effects_with_their_intervals(suite: Suite, folder: Path) -> None:
    rows = [
        measure(suite, "full", FULL),
        measure(suite, "no_drift", NO_DRIFT),
        measure(suite, "small", FULL, epochs=2),
    ]
    page = render_ablation(folder / "ablations", suite, rows)
    epochs = suite.build_config(suite.row("full"), 0).fit.epochs
    assert f"accuracy on 200 questions of 50 users; epochs: at most {epochs}." in page
    shorter = render_ablation(folder / "ablations", suite, [measure(suite, "full", FULL, epochs=2)])
    assert f"at most 2 (the recipe's: {epochs}; compare within this table)." in shorter
    assert "| all of it | 60.00 |  | 50.00 |  | 40.00 |  | 1 | 10 |" in page
    line = next(line for line in page.splitlines() if line.startswith("| without drift |"))
    assert "| 35.00 | **-25.00** (" in line
    assert "| 40.00 | +0.00 (+0.00 to +0.00) | 1 | 10 |" in line
    assert "Not in the recipe here: no baskets." in page
    assert "Without a comparable record: without the wide part; small." in page


def test_without_the_whole_recipe_nothing_is_compared(suite: Suite, folder: Path) -> None:
    page = render_ablation(folder / "ablations", suite, [measure(suite, "no_drift", NO_DRIFT)])
    assert page == "Without a record of all of it, nothing can be compared."


def test_records_count_at_any_epochs_but_not_with_other_settings(
    suite: Suite, tmp_path: Path
) -> None:
    papers = folder_with_ablations(tmp_path) / "papers"
    folder = tmp_path / "ablations"
    write_questions(folder)
    for epochs in (2, None):
        record = ablation_record_of(suite, "full", FULL, epochs=epochs)
        record.write(folder / "results" / "tiny" / "full-0.json")
        assert [row.records for row in read_ablation(folder, suite)] == [(record,)]
    assert "## A tiny world" in render_ablations(folder, papers)
    larger = suite.model_copy(
        update={"recommended": {**(suite.recommended or {}), "encoder": {"dim": 8}}}
    )
    assert read_ablation(folder, larger) == []
    unranked = record.model_copy(update={"questions_sha256": None})
    unranked.write(folder / "results" / "tiny" / "full-0.json")
    assert read_ablation(folder, suite) == []


def test_findings_have_the_figures_of_the_records(suite: Suite, tmp_path: Path) -> None:
    text = ABLATIONS + '[findings]\ntiny = "Drift is worth {full - no_drift}."\n'
    papers = folder_with_ablations(tmp_path, text) / "papers"
    folder = tmp_path / "ablations"
    write_questions(folder)
    ablation_record_of(suite, "full", FULL).write(folder / "results" / "tiny" / "full-0.json")
    assert "Drift" not in render_ablations(folder, papers)
    other = ablation_record_of(suite, "no_drift", NO_DRIFT)
    other.write(folder / "results" / "tiny" / "no_drift-0.json")
    assert "\nDrift is worth **+15.00** (" in render_ablations(folder, papers)
    # Of the same runs as the table, not of a further seed of one side.
    second = ablation_record_of(suite, "full", {"model": 10}, seed=1)
    second.write(folder / "results" / "tiny" / "full-1.json")
    page = render_ablations(folder, papers)
    assert "| **-15.00** (" in page
    assert "\nDrift is worth **+15.00** (" in page


def test_findings_of_an_unknown_suite_are_refused(tmp_path: Path) -> None:
    folder_with_ablations(tmp_path, ABLATIONS + '[findings]\nhuge = "Nothing."\n')
    with pytest.raises(TrainingError, match=r"\['tiny'\], but got \['huge'\]"):
        Ablations.read(tmp_path / "ablations")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (ABLATIONS, 'suites = ["tiny"]\nrows = ["a"]', "row 0: input should be a valid .*'a'"),
        ('without = ["wide"]', "without = 5", "row no_wide: without: .* but got 5"),
        ('without = ["wide"]', 'without = "wide"', "row no_wide: without: .* but got 'wide'"),
        ('without = ["wide"]', 'without = ["data"]', r"row no_wide changes \['data'\]"),
        ('suites = ["tiny"]', 'suites = ["tiny", "tiny"]', r"has \['tiny'\] twice"),
        ('"no_wide"', '"small"', r"has \['small'\] twice"),
        ("suites = ", "suites", "is not valid: "),
    ],
)
def test_invalid_ablations_are_named(old: str, new: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "ablations.toml").write_text(ABLATIONS.replace(old, new))
    with pytest.raises(TrainingError, match=rf"{tmp_path}/ablations\.toml .*{message}"):
        Ablations.read(tmp_path)


def test_a_record_of_other_epochs_is_not_replaced(suite: Suite, tmp_path: Path) -> None:
    epochs = suite.build_config(suite.row("full"), 0).fit.epochs
    results = tmp_path / "results"
    record = ablation_record_of(suite, "full", FULL, epochs=2)
    record.write(results / "tiny" / "full-0.json")
    for shown, other in ((suite.shorten(1), 1), (suite, epochs)):
        with pytest.raises(
            TrainingError,
            match=rf"full-0\.json is of 2, and this run of {other}; give --epochs 2, or delete",
        ):
            check_epochs(shown, results)
    check_epochs(suite, results, seeds=(1,))
    check_epochs(suite.shorten(2), results)
    # A record of settings that are no longer the suite's is replaced by any.
    encoder = {"kind": "self_attention", "dim": 8}
    larger = suite.model_copy(
        update={"recommended": {**(suite.recommended or {}), "encoder": encoder}}
    )
    check_epochs(larger, results)


@pytest.mark.slow
def test_a_cell_of_an_ablation_keeps_ranks_and_command(tmp_path: Path) -> None:
    folder = folder_with_ablations(tmp_path)
    suite = select_rows(read_tiny_ablation(folder), ("small",)).shorten(1)
    selection = Selection(
        folder / "papers" / "data",
        folder / "ablations" / "results",
        seeds=(0,),
        epochs=1,
        benchmark="ablations",
    )
    (cell,) = plan(suite, selection).cells
    record = run_cell(cell, lambda _: None)
    assert {*record.ranks} == {"model", "model_live", "model_withheld"}
    measured = MeasuredRow(suite.rows[0], (record,))
    comparison = Comparison.read(folder / "ablations", suite, [measured])
    assert comparison is not None
    for ranker in record.ranks:
        values = comparison.compute_values("small", ranker)
        assert values.mean() == pytest.approx(record.report.rows[ranker]["accuracy"])
    assert record.command == (
        "kairos bench ablations --suite tiny --rows small --seeds 0 --epochs 1"
    )
    assert cell.is_done
