"""The champion in a retraining job: warm starts, and champions that cannot be opened."""

import json

import pytest

from model.bundle.manifest import DIGEST_CHARACTERS, MANIFEST, WEIGHTS, digest_of
from model.errors import BundleError, TrainingError
from model.store.store import CURRENT, BundleStore
from tests.training.retraining.workspace import Workspace, add_later_events, find_check
from tests.training.ring import GATE, LEARNED, ring_world, shuffle_items
from training.retraining.report import PAGE


def age_champion(store: BundleStore) -> str:
    """Replace the champion by one of the previous bundle format; returns its version."""
    directory = store.root / str(store.current())
    content = json.loads((directory / MANIFEST).read_text()) | {"format_version": 1}
    (directory / MANIFEST).write_text(json.dumps(content))
    digest = digest_of(directory / MANIFEST)[:DIGEST_CHARACTERS]
    aged = directory.rename(store.root / f"{directory.name.partition('-')[0]}-{digest}")
    (store.root / CURRENT).write_text(f"{aged.name}\n")
    return aged.name


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
    champion = with_champion.store.current()
    with pytest.raises(TrainingError, match="of the same architecture"):
        with_champion.retrain(with_champion.job(config=LEARNED, warm_start=True))
    assert with_champion.store.current() == champion


@pytest.mark.parametrize("warm_start", [False, True])
def test_an_outdated_champion_can_be_replaced(with_champion: Workspace, warm_start: bool) -> None:
    champion = age_champion(with_champion.store)
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
    assert with_champion.store.current() == report.candidate


def test_an_outdated_champion_stays_if_the_gate_refuses(with_champion: Workspace) -> None:
    champion = age_champion(with_champion.store)
    report = with_champion.retrain(with_champion.job(shuffle_items(add_later_events(ring_world()))))
    assert report.result == "kept"
    assert not find_check(report, "popularity").passed
    assert with_champion.store.current() == champion


def test_a_damaged_champion_ends_the_run(with_champion: Workspace) -> None:
    version = str(with_champion.store.current())
    (with_champion.store.root / version / WEIGHTS).write_bytes(b"damaged")
    with pytest.raises(BundleError, match="is altered"):
        with_champion.retrain(with_champion.job(add_later_events(ring_world())))
    assert with_champion.store.current() == version
