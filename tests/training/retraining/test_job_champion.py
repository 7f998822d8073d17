"""The champion in a retraining job: warm starts, and champions that cannot be opened."""

import pytest

from model.bundle.manifest import WEIGHTS
from model.errors import BundleError, TrainingError
from tests.outdated_bundles import age_current
from tests.training.retraining.workspace import Workspace, add_later_events, find_check
from tests.training.ring import GATE, LEARNED, ring_world, shuffle_items
from training.retraining.report import PAGE


@pytest.mark.slow
def test_a_warm_start_is_measured_on_later_events_only(workspace: Workspace) -> None:
    config = LEARNED.model_copy(update={"gate": GATE.model_copy(update={"may_lose": 1.0})})
    learned = config.model_copy(
        update={"gate": config.gate.model_copy(update={"popularity_lead": -1.0})}
    )
    assert workspace.retrain(workspace.job(ring_world(), learned)).result == "promoted"
    with pytest.raises(TrainingError, match="later than the champion's training events"):
        workspace.retrain(workspace.job(config=learned, warm_start=True))
    report = workspace.retrain(
        workspace.job(add_later_events(ring_world()), learned, warm_start=True)
    )
    assert report.warm_start
    assert report.comparison is not None
    assert report.comparison.known_to_champion == 0


def test_a_warm_start_from_another_model_kind_fails(with_champion: Workspace) -> None:
    champion = with_champion.store.read_current()
    with pytest.raises(TrainingError, match="of the same architecture"):
        with_champion.retrain(with_champion.job(config=LEARNED, warm_start=True))
    assert with_champion.store.read_current() == champion


@pytest.mark.slow
@pytest.mark.parametrize("warm_start", [False, True])
def test_an_outdated_champion_can_be_replaced(with_champion: Workspace, warm_start: bool) -> None:
    champion = age_current(with_champion.store)
    report = with_champion.retrain(
        with_champion.job(add_later_events(ring_world()), warm_start=warm_start)
    )
    assert (report.result, report.champion) == ("promoted", champion), report.reason
    assert not report.warm_start
    assert report.comparison is not None
    assert "champion" not in report.comparison.rows
    assert find_check(report, "popularity").passed
    assert f"{champion} is of format 1" in str(report.reason)
    assert str(report.note) in (with_champion.runs / report.directory / PAGE).read_text()
    assert with_champion.store.read_current() == report.candidate


@pytest.mark.slow
def test_an_outdated_champion_stays_if_the_gate_refuses(with_champion: Workspace) -> None:
    champion = age_current(with_champion.store)
    report = with_champion.retrain(with_champion.job(shuffle_items(add_later_events(ring_world()))))
    assert report.result == "kept"
    assert not find_check(report, "popularity").passed
    assert with_champion.store.read_current() == champion


def test_a_damaged_champion_ends_the_run(with_champion: Workspace) -> None:
    version = str(with_champion.store.read_current())
    (with_champion.store.root / version / WEIGHTS).write_bytes(b"damaged")
    with pytest.raises(BundleError, match="is altered"):
        with_champion.retrain(with_champion.job(add_later_events(ring_world())))
    assert with_champion.store.read_current() == version
