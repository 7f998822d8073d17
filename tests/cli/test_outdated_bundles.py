"""Commands that meet a bundle of the previous format."""

import json
import shutil
from pathlib import Path

import pytest

from cli.doctor.bundles import check_bundles
from migrations.run import upgrade
from model.clock import now
from model.store.store import BundleStore
from tests.cli.world import World, kairos
from tests.outdated_bundles import age_bundle, age_current


@pytest.fixture
def outdated(store: Path, tmp_path: Path) -> BundleStore:
    """A store whose current version is of the previous format."""
    copy = BundleStore(Path(shutil.copytree(store, tmp_path / "bundles")))
    age_current(copy)
    return copy


def test_doctor_advises_to_train_again(outdated: BundleStore) -> None:
    checks = {check.name: check for check in check_bundles(outdated.root, now())}
    check = checks[f"bundle {outdated.read_current()}"]
    assert check.verdict == "failure"
    assert "is of format" in check.finding
    assert "publish it again" not in str(check.remedy)
    assert "kairos retrain" in str(check.remedy)


def test_restore_warns_of_an_outdated_bundle(outdated: BundleStore, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'kairos.db'}"
    upgrade(database)
    kairos("backup", tmp_path / "backup", "--database", database, "--store", outdated.root)
    into = ("--database", f"sqlite:///{tmp_path / 'restored.db'}", "--store", tmp_path / "restored")
    restored = kairos("restore", tmp_path / "backup", *into)
    assert "warning" in restored.output
    assert "train the model again" in " ".join(restored.output.split())
    assert BundleStore(tmp_path / "restored").read_current() == outdated.read_current()


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_demo_trains_again_if_its_bundle_is_outdated(world: World, tmp_path: Path) -> None:
    demo = [
        *("demo", "--no-serve", "--directory", tmp_path, "--recipe", world.recipe),
        *("--events", world.events, "--items", world.items),
    ]
    kairos(*demo)
    store = BundleStore(tmp_path / "bundles")
    (trained,) = (path.parent for path in (tmp_path / "runs").glob("*/[!.]*/manifest.json"))
    age_bundle(trained)
    aged = age_current(store)
    assert "train again" in kairos(*demo).output
    current = store.read_current()
    assert current not in {None, aged}
    assert json.loads((store.root / str(current) / "manifest.json").read_text())["format_version"]
    store.open()
