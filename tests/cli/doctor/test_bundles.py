"""The checks of the bundle store."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from cli.doctor.bundles import check_bundles, check_writable, measure_predictor
from model.clock import MICROSECONDS_PER_DAY, now
from model.inference.predictor import Predictor
from model.store.store import CURRENT, BundleStore
from tests.app import tiny_bundle
from tests.cli.doctor.checks import Environment, failures, run_doctor, warnings


def test_an_empty_store_is_a_failure(
    database: str, environment: Environment, tmp_path: Path
) -> None:
    environment(bundle_store=str(tmp_path / "nothing"))
    found = run_doctor(1)
    assert failures(found) == {"bundles"}
    assert "nothing to serve" in found["bundles"]["finding"]


def test_a_store_with_a_name_of_none_is_a_failure(
    database: str, environment: Environment, tmp_path: Path
) -> None:
    environment(bundle_store="s3://kb/bundles", bundle_cache=str(tmp_path))
    found = run_doctor(1)
    assert "bundles.mirror" in failures(found)
    assert "a bucket, of 3 to 63 characters" in found["bundles.mirror"]["finding"]


def test_a_damaged_current_bundle_is_a_failure(database: str, bundle_store: Path) -> None:
    current = str(BundleStore(bundle_store).read_current())
    tiny_bundle.damage(bundle_store, current)
    found = run_doctor(1)
    assert failures(found) == {f"bundle {current}"}
    assert "altered" in found[f"bundle {current}"]["finding"]


def test_a_damaged_unused_bundle_is_a_warning(
    database: str,
    bundle_store: Path,
) -> None:
    other = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    assert failures(run_doctor(0)) == set()
    tiny_bundle.damage(bundle_store, other)
    found = run_doctor(0)
    assert warnings(found) == {f"bundle {other}"}
    assert "not in use" in found[f"bundle {other}"]["finding"]


@pytest.mark.parametrize("pointer", ["20200101T000000Z-000000000000", "../elsewhere", None])
def test_a_missing_current_version_is_a_failure(
    database: str,
    bundle_store: Path,
    pointer: str | None,
) -> None:
    (bundle_store / CURRENT).unlink()
    if pointer is not None:
        (bundle_store / CURRENT).write_text(pointer)
    found = run_doctor(1)
    assert failures(found) == {"bundles"}


def test_the_index_recall_is_measured(bundle_store: Path) -> None:
    predictor = BundleStore(bundle_store).open()
    assert measure_predictor(predictor)[1] == 1.0
    other = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    index = BundleStore(bundle_store).open(other).bundle.index
    assert measure_predictor(Predictor(replace(predictor.bundle, index=index)))[1] < 0.9


def test_a_file_system_without_writes_is_a_warning() -> None:
    if not Path("/proc/self").exists():
        pytest.skip("needs a file system that refuses files, even from root")
    check = check_writable(Path("/proc/self"))
    assert check.verdict == "warning"
    assert "neither publish nor activate" in check.finding


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to read-only folders")
def test_a_store_of_another_user_is_a_warning(
    database: str,
    bundle_store: Path,
) -> None:
    bundle_store.chmod(0o555)
    assert warnings(run_doctor(0)) == {"bundles.writing"}
    bundle_store.chmod(0o755)


def test_an_old_bundle_is_a_warning(database: str) -> None:
    root = Path(os.environ["KAIROS_BUNDLE_STORE"])
    later = now() + 31 * MICROSECONDS_PER_DAY
    (age,) = (check for check in check_bundles(root, later) if check.name == "bundles.age")
    assert (age.verdict, age.finding) == ("warning", "the current version is 31.0 days old")
