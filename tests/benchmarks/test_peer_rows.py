from pathlib import Path

import pytest

from benchmarks.papers.harness.cell import ProgressEvent
from benchmarks.papers.harness.measured_rows import read_measured
from benchmarks.papers.harness.plan import Selection, plan
from benchmarks.papers.harness.record import Record
from benchmarks.papers.harness.run_cell import run_cell
from benchmarks.papers.harness.suite import Suite, build_peer
from benchmarks.papers.harness.tuning import TRIALS
from benchmarks.papers.pages.tables_page import render_suite
from benchmarks.papers.peers.config import RecToolsHSTUConfig
from benchmarks.papers.peers.environments import FOLDER_VARIABLE
from model.errors import TrainingError
from tests.benchmarks.peers.chain_peer import BEST
from tests.benchmarks.peers.environments import make_environments
from tests.benchmarks.tiny_suite import SUITE, folder_with_suite, suite_in

PEERS = """
[[rows]]
name = "hstu"
label = "HSTU"
class = "query time given"
role = "peer"
seeds = 2
peer = { kind = "rectools_hstu", patience = 2 }
trials = [{ dropout = 0.3 }, { dropout = 0.5, learning_rate = 0.01 }]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = folder_with_suite(tmp_path_factory.mktemp("papers"), SUITE + PEERS)
    make_environments(folder / "environments")
    return folder


@pytest.fixture(scope="module")
def suite(folder: Path) -> Suite:
    return Suite.read(folder / "suites" / "tiny.toml")


@pytest.fixture(scope="module")
def ran(folder: Path, suite: Suite) -> tuple[list[Record], list[ProgressEvent]]:
    events: list[ProgressEvent] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER_VARIABLE, str(folder / "environments"))
        selection = Selection(folder / "data", folder / "results", ("hstu",))
        return [run_cell(cell, events.append) for cell in plan(suite, selection).cells], events


def test_a_peer_has_the_sizes_of_its_suite(suite: Suite) -> None:
    peer = build_peer(suite, suite.row("hstu"))
    assert peer == RecToolsHSTUConfig(dim=8, blocks=1, max_history=6, patience=2)
    assert build_peer(suite, suite.row("mercer")) is None


def test_a_peers_settings_are_data_split_and_its_own(suite: Suite) -> None:
    settings = suite.merge_settings(suite.row("hstu"), 1)
    assert {*settings} == {"split", "peer", "fit", "budget_seconds", "trials"}
    assert settings["fit"] == {"seed": 1, "monitor": "ndcg@10"}


def test_a_peer_is_recorded_as_every_row(
    suite: Suite, folder: Path, ran: tuple[list[Record], list[ProgressEvent]]
) -> None:
    first, second = ran[0]
    assert first.peer is not None
    assert "numpy" in first.peer.versions
    assert [trial.settings for trial in first.trials] == [
        {"dropout": 0.3},
        {"dropout": 0.5, "learning_rate": 0.01},
    ]
    assert second.trials == first.trials
    assert first.trials[1].value > first.trials[0].value
    for record in (first, second):
        assert (record.config["dropout"], record.config["learning_rate"]) == (0.5, 0.01)
    assert {*first.ranks} == {"model", "model_withheld"}
    assert "counting" in first.report.rows
    assert first.questions_sha256 == second.questions_sha256
    assert all(trial.epochs == BEST for trial in first.trials)
    assert first.epochs == second.epochs == BEST
    assert [point.epoch for point in first.curve] == [1, 2, 3, 4]
    assert second.curve == ()
    epochs = [event for event in ran[1] if event.trial is None]
    assert len(epochs) == sum(len(trial.curve) for trial in first.trials)
    assert [event.trial for event in ran[1] if event.trial is not None] == [1, 2]
    page = render_suite(suite, read_measured(folder, suite))
    assert "| HSTU `hstu` | peer | query time given | " in page


def test_a_peer_ranks_the_catalog_of_our_rows(tmp_path: Path) -> None:
    frequent = SUITE.replace("[base.split]", "[base.data]\nmin_item_events = 9\n\n[base.split]")
    # A peer is fitted again on all events before the test.
    frequent = frequent.replace("epochs = 2", "epochs = 2\nrefit_before_test = true")
    folder = folder_with_suite(tmp_path, frequent + PEERS)
    make_environments(folder / "environments")
    selection = Selection(folder / "data", folder / "results", ("counts", "hstu"), (0,))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER_VARIABLE, str(folder / "environments"))
        planned = plan(Suite.read(folder / "suites" / "tiny.toml"), selection).cells
        peer, own = (run_cell(cell, lambda _: None) for cell in planned)
    assert peer.peer is not None
    assert peer.questions_sha256 == own.questions_sha256
    assert peer.report.cold_targets == own.report.cold_targets > 0
    assert peer.report.rows["last_item_markov"] == own.report.rows["last_item_markov"]


def test_trials_of_a_peer_without_epochs_are_made_again(
    folder: Path, suite: Suite, ran: tuple[list[Record], list[ProgressEvent]], tmp_path: Path
) -> None:
    cell = plan(suite, Selection(folder / "data", tmp_path, ("hstu",))).cells[0]
    older = [trial.model_copy(update={"epochs": None}) for trial in ran[0][0].trials]
    cell.trials_file.parent.mkdir(parents=True)
    cell.trials_file.write_bytes(TRIALS.dump_json(tuple(older)))
    with pytest.raises(
        TrainingError, match=r"trials/hstu-\w{12}\.json names none; delete the file"
    ):
        run_cell(cell, lambda _: None)


def test_later_seeds_of_a_peer_wait_for_its_epochs(tmp_path: Path) -> None:
    without_trials = PEERS[: PEERS.index("trials")]
    suite = suite_in(tmp_path, SUITE + without_trials)
    found = plan(suite, Selection(tmp_path / "data", tmp_path / "results")).cells
    assert [cell.name for cell in found if cell.peer] == ["tiny hstu 0", "tiny hstu 1"]
    assert [found[0].name, found[-1].name] == ["tiny hstu 0", "tiny hstu 1"]


def test_a_row_with_settings_of_a_peer_is_a_peer(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="row hstu is of role method and has some"):
        suite_in(tmp_path, SUITE + PEERS.replace('role = "peer"', ""))


def test_a_peer_can_have_a_budget_of_its_own(tmp_path: Path) -> None:
    longer = (
        PEERS.replace('"hstu"', '"longer"').replace("HSTU", "Longer") + "budget_seconds = 7000\n"
    )
    suite = suite_in(tmp_path, SUITE + PEERS + longer)
    budgets = [
        suite.merge_settings(suite.row(name), 0)["budget_seconds"] for name in ("hstu", "longer")
    ]
    assert budgets == [900, 7000]


def test_a_budget_is_a_peers(tmp_path: Path) -> None:
    text = SUITE.replace('label = "Mercer"', 'label = "Mercer"\nbudget_seconds = 60')
    assert text != SUITE
    with pytest.raises(TrainingError, match="only a peer has a budget of its own, but row mercer"):
        suite_in(tmp_path, text)


def test_an_unknown_setting_of_a_peer_is_named(tmp_path: Path) -> None:
    suite = suite_in(tmp_path, SUITE + PEERS.replace("patience = 2", "luck = 2"))
    with pytest.raises(TrainingError, match="row hstu of suite tiny"):
        build_peer(suite, suite.row("hstu"))
