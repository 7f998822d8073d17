import re
from pathlib import Path

import pytest
from pydantic import JsonValue

from benchmarks.ablations.harness.ablations import Ablations, is_current_at_its_epochs
from benchmarks.ablations.harness.page import render_ablations
from benchmarks.papers.harness.measured_rows import is_current
from benchmarks.papers.harness.measured_suite import MeasuredSuite, read_measured_suites
from benchmarks.papers.harness.recommended import format_recommended_recipe
from benchmarks.papers.harness.record import Record
from benchmarks.papers.harness.search import (
    find_best,
    replace_peer_settings,
    replace_settings,
)
from benchmarks.papers.harness.suite import RECOMMENDED, Suite, build_peer
from benchmarks.papers.harness.suite_result import SuiteResult, list_results
from benchmarks.papers.harness.tuning import find_trials
from benchmarks.papers.pages.attention_plot import digest_curves, find_attention_curves
from benchmarks.papers.pages.curve_plot import collect_learning_curves, digest_learning_curves
from benchmarks.papers.pages.lead_plot import digest_leads
from benchmarks.papers.pages.models_table import find_measured_kinds, update_models_table
from benchmarks.papers.pages.plot import digest_figures
from benchmarks.papers.pages.render import (
    MODELS,
    SUMMARY,
    get_attention_plot_path,
    get_curve_plot_path,
    get_plot_path,
    has_digest,
)
from benchmarks.papers.pages.summary_page import README_OPENING, render_summary, update_readme
from benchmarks.papers.pages.tables_page import render_tables
from benchmarks.papers.peers.config import RecToolsLoss
from model.config import Config
from model.encoders.self_attention import SelfAttentionConfig
from model.time_encodings.bochner_nonparametric import BochnerNonparametricConfig
from model.time_encodings.mercer import MercerConfig
from tests.architecture.members import MEMBERS, kind
from tests.architecture.repository import ROOT, document

PAPERS = ROOT / "benchmarks" / "papers"
ABLATIONS = ROOT / "benchmarks" / "ablations"
SUITES = sorted((PAPERS / "suites").glob("*.toml"))
REFRESH = "refresh it: kairos bench papers --render"
OF_ONE_SEED = {
    ("retail", "rectools_hstu_longer"),
    ("ml100k", "din_smlayer_ctreg"),
    ("yelp", "mercer_concat"),
}
"""Trained rows of one seed; the pages mark them "one seed"."""


@pytest.fixture(scope="module")
def suites() -> list[MeasuredSuite]:
    """All suites with their records, read once."""
    return read_measured_suites(PAPERS)


@pytest.fixture(scope="module")
def results(suites: list[MeasuredSuite]) -> list[SuiteResult]:
    return list_results(suites)


@pytest.fixture(scope="module")
def measured_kinds(suites: list[MeasuredSuite]) -> set[str]:
    return find_measured_kinds(suites)


def test_the_page_of_results_equals_the_records(suites: list[MeasuredSuite]) -> None:
    assert (PAPERS / "README.md").read_text("utf-8") == render_tables(suites), REFRESH


def test_the_page_of_the_zoo_equals_the_records(suites: list[MeasuredSuite]) -> None:
    page = (ROOT / MODELS).read_text("utf-8")
    assert page == update_models_table(page, suites), REFRESH


@pytest.mark.parametrize("config", MEMBERS, ids=kind)
def test_a_member_has_a_result_or_is_marked_as_not_measured(
    config: type[Config], measured_kinds: set[str]
) -> None:
    counted = {"popularity", "markov", "personal_frequency", "counting"}  # rows of the references
    rows = [line for line in document("docs/models.md").splitlines() if f"`{kind(config)}`" in line]
    is_marked = any("not measured" in row for row in rows)
    is_measured = kind(config) in measured_kinds
    assert is_measured or kind(config) in counted or is_marked
    # A member of several rows may have one of them measured.
    assert not (is_measured and is_marked and len(rows) == 1), f"{kind(config)} is measured"


@pytest.mark.parametrize("file", SUITES, ids=lambda file: file.stem)
def test_every_row_of_a_suite_is_a_run(file: Path) -> None:
    whole = Suite.read(file)
    for suite in (whole, whole.shorten(2)):
        for row in suite.rows:
            suite.build_config(row, seed=0)
            assert (build_peer(suite, row) is None) == (row.role != "peer")


def is_part_of(found: JsonValue, recorded: JsonValue) -> bool:
    """Return whether all fields that were recorded are as they were found; others may be newer."""
    if isinstance(found, dict) and isinstance(recorded, dict):
        return all(
            name in found and is_part_of(found[name], value) for name, value in recorded.items()
        )
    return found == recorded


def test_the_settings_of_every_record_are_those_of_today(suites: list[MeasuredSuite]) -> None:
    """A default that changes would leave a record, whose settings are what the suite says."""
    for suite, measured in ((each.suite, each.measured) for each in suites):
        for row, record in ((each.row, record) for each in measured for record in each.records):
            peer, config = build_peer(suite, row), suite.build_config(row, record.seed)
            best = find_best(record.trials).settings if record.trials else {}
            built = (
                replace_settings(config, best)
                if peer is None
                else replace_peer_settings(peer, best)
            )
            assert is_part_of(built.model_dump(mode="json"), record.config), record.file_name


def test_rows_of_presets_have_the_initial_values_of_the_authors() -> None:
    suite = Suite.read(PAPERS / "suites" / "stackoverflow.toml")
    presets = {
        "mercer_preset": MercerConfig.from_paper_code(dim=64, degree=5),
        "bochner_nonparametric_preset": BochnerNonparametricConfig.from_paper_code(dim=64),
    }
    for name, preset in presets.items():
        encoder = suite.build_config(suite.row(name), seed=0).encoder
        assert isinstance(encoder, SelfAttentionConfig)
        assert encoder.time_encoding == preset


@pytest.mark.parametrize("name", [file.stem for file in SUITES])
def test_every_plot_shows_the_records(name: str, suites: list[MeasuredSuite]) -> None:
    suite, measured = next(
        (each.suite, each.measured) for each in suites if each.suite.name == name
    )
    if measured:
        assert has_digest(get_plot_path(PAPERS, suite), digest_figures(suite, measured)), REFRESH
        if learning := collect_learning_curves(suite, measured):
            plot = get_curve_plot_path(PAPERS, suite)
            assert has_digest(plot, digest_learning_curves(suite, learning)), REFRESH
        if curves := find_attention_curves(measured):
            assert has_digest(
                get_attention_plot_path(PAPERS, suite), digest_curves(suite.title, curves)
            ), REFRESH


def test_the_picture_of_all_leads_shows_the_records(results: list[SuiteResult]) -> None:
    if results:
        assert has_digest(PAPERS / "plots" / "leads.svg", digest_leads(results)), REFRESH


def test_the_page_of_results_in_short_equals_the_records(
    suites: list[MeasuredSuite], results: list[SuiteResult]
) -> None:
    assert (ROOT / SUMMARY).read_text("utf-8") == render_summary(results, suites), REFRESH
    readme = (ROOT / "README.md").read_text("utf-8")
    assert README_OPENING in readme
    assert readme == update_readme(readme, results), REFRESH


@pytest.mark.parametrize("file", SUITES, ids=lambda file: file.stem)
def test_figures_in_prose_come_from_the_records(file: Path) -> None:
    suite = Suite.read(file)
    for text in (suite.findings, suite.limits):
        written = re.sub(r"\{[^{}]*\}", "", text)
        figures = re.findall(r"(?<![\w.])[+-]?\d*\.\d+|\d+ %|\d+ points?\b|\d+ times\b", written)
        assert not figures, f"name rows in braces, such as {{kairos - mercer}}, for {figures}"


def test_compared_rows_have_seeds_enough(suites: list[MeasuredSuite]) -> None:
    few = {
        (suite.suite.name, each.row.name)
        for suite in suites
        for each in suite.measured
        if each.is_random and len(each.records) < (5 if each.row.role == "default" else 3)
    }
    assert few == OF_ONE_SEED, "run all seeds, or name the row in OF_ONE_SEED"


def test_where_the_default_is_not_ahead_a_reason_is_given(results: list[SuiteResult]) -> None:
    for result in results:
        compared = [each for each in result.opponents if each.role != "method"]
        if any(each.lead.low <= 0 for each in compared):
            assert result.suite.limits.strip(), f"say why in `limits` of {result.suite.name}"


def test_every_record_belongs_to_a_current_row_of_its_suite() -> None:
    suites = {file.stem: Suite.read(file) for file in SUITES}
    for file in (PAPERS / "results").glob("*/*.json"):
        record = Record.read(file)
        suite = suites[record.suite]
        assert file.relative_to(PAPERS / "results") == Path(
            record.suite, f"{record.row}-{record.seed}.json"
        )
        assert is_current(record, suite, suite.row(record.row)), f"{file}: run it again"


def test_every_file_of_trials_belongs_to_a_current_row() -> None:
    of_rows = {
        find_trials(file.parent, record.row, record.settings, record.data)
        for file in (PAPERS / "results").glob("*/*.json")
        if (record := Record.read(file)).trials
    }
    assert {*(PAPERS / "results").glob("*/trials/*.json")} <= of_rows


@pytest.mark.parametrize("file", SUITES, ids=lambda file: file.stem)
def test_rows_train_as_the_default_does(file: Path) -> None:
    suite = Suite.read(file)
    if suite.recommended is None:
        return
    of_refits = {"monitor", "refit", "refit_before_test", "refit_from"}
    base, recommended = (
        {name: value for name, value in recipe["fit"].items() if name not in of_refits}
        for recipe in (suite.base, suite.recommended)
    )
    assert base == recommended
    sizes = ("dim", "heads", "layers", "dropout", "max_history")
    base, recommended = suite.base["encoder"], suite.recommended["encoder"]
    assert [base[name] for name in sizes] == [recommended[name] for name in sizes]


@pytest.mark.parametrize("file", SUITES, ids=lambda file: file.stem)
def test_peers_weigh_sessions_as_the_default_does(file: Path) -> None:
    suite = Suite.read(file)
    if suite.recommended is None:
        return
    weight = suite.recommended["fit"].get("session_weight", 1.0)
    peers = [build_peer(suite, row) for row in suite.rows if row.role == "peer"]
    weights = {peer.session_weight for peer in peers if isinstance(peer, RecToolsLoss)}
    assert weights == {weight}


def test_the_recommended_recipe_of_the_shipped_data_is_current() -> None:
    suite = Suite.read(PAPERS / "suites" / "retail.toml")
    written = (PAPERS / RECOMMENDED / "retail.toml").read_text("utf-8")
    assert written == format_recommended_recipe(suite, ROOT), "make docs"


def test_the_page_of_the_ablations_equals_the_records() -> None:
    page = (ABLATIONS / "README.md").read_text("utf-8")
    assert page == render_ablations(ABLATIONS, PAPERS), "kairos bench ablations --render"


def test_every_row_of_the_ablations_is_a_run() -> None:
    ablations = Ablations.read(ABLATIONS)
    for name in ablations.suites:
        suite = ablations.read_suite(name, PAPERS)
        for row in suite.rows:
            suite.build_config(row, seed=0)


def test_every_record_of_the_ablations_is_of_a_current_row() -> None:
    ablations = Ablations.read(ABLATIONS)
    for file in (ABLATIONS / "results").glob("*/*.json"):
        record = Record.read(file)
        suite = ablations.read_suite(record.suite, PAPERS)
        row = suite.row(record.row)
        assert is_current_at_its_epochs(record, suite, row), f"{file}: run it again"


def test_every_record_names_its_command_data_and_machine() -> None:
    for file in (PAPERS / "results").glob("*/*.json"):
        record = Record.read(file)
        assert record.command.startswith("kairos bench papers")
        assert all(len(sha256) == 64 for sha256 in record.data.values())
        assert record.processor


def test_the_example_of_comparing_two_rows_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(
        r"```python\n(.*?)```", document("benchmarks/papers/suites/README.md"), re.S
    )
    monkeypatch.chdir(ROOT)
    exec(blocks[-1], {})
    assert capsys.readouterr().out.startswith("Lead(mean=0.0")
