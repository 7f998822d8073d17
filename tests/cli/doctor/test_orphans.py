"""The checks of what belongs together: store and database, index and item table, clocks."""

import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cli.doctor import bundles
from cli.doctor.clocks import judge_clock
from model.bundle.index import ItemIndex
from model.bundle.manifest import MANIFEST
from model.clock import now
from model.inference.predictor import Predictor
from model.store.store import TRAFFIC, BundleStore
from model.store.traffic import Traffic
from tests.app import tiny_bundle
from tests.cli.doctor.checks import execute, failures, run_doctor, warnings

_ITEM = "INSERT INTO items (item_id, categories, updated_at) VALUES (:item_id, '[]', 1)"
_IMPRESSION = (
    "INSERT INTO recommendations (recommendation_id, model_version, at, item_ids) "
    "VALUES (:version, :version, 1, '[]')"
)


@pytest.mark.slow
def test_impressions_of_unknown_versions_are_a_warning(service_database: str) -> None:
    current = str(BundleStore(Path(os.environ["KAIROS_BUNDLE_STORE"])).read_current())
    execute(service_database, _IMPRESSION, version=current)
    execute(
        service_database,
        "INSERT INTO model_changes (at, actor, change, version) VALUES (1, 'a', 'activate', "
        "'20200101T000000Z-pruned')",
    )
    execute(service_database, _IMPRESSION, version="20200101T000000Z-pruned")
    assert warnings(run_doctor(0)) == set()
    execute(service_database, _IMPRESSION, version="20210101T000000Z-foreign")
    found = run_doctor(0)
    assert warnings(found) == {"impressions"}
    assert "20210101T000000Z-foreign" in found["impressions"]["finding"]


def test_stored_items_unknown_to_the_model_are_a_warning(service_database: str) -> None:
    for item_id in ("i1", "i2"):
        execute(service_database, _ITEM, item_id=item_id)
    assert warnings(run_doctor(0)) == set()
    for number in range(5):
        execute(service_database, _ITEM, item_id=f"new {number}")
    found = run_doctor(0)
    assert warnings(found) == {"items"}
    assert "knows 2 of 7 stored items" in found["items"]["finding"]


def test_a_broken_traffic_file_is_a_failure(database: str, bundle_store: Path) -> None:
    (bundle_store / TRAFFIC).write_bytes(b"{")
    found = run_doctor(1)
    assert failures(found) == {"bundles.traffic"}
    assert f"bundle {BundleStore(bundle_store).read_current()}" in found


def test_a_challenger_that_is_not_published_is_a_failure(database: str, bundle_store: Path) -> None:
    version = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    BundleStore(bundle_store).route(Traffic(challenger=version, share=0.5))
    assert failures(run_doctor(0)) == set()
    (bundle_store / version).rename(bundle_store.with_name("elsewhere"))
    assert failures(run_doctor(1)) == {"bundles.traffic"}


@pytest.mark.parametrize("name", [".incoming-killed", ".pointer-killed", "no-manifest"])
def test_unfinished_files_are_a_warning(database: str, bundle_store: Path, name: str) -> None:
    (bundle_store / name).mkdir()
    found = run_doctor(0)
    assert warnings(found) == {"bundles.unfinished"}
    assert name in found["bundles.unfinished"]["finding"]
    assert (bundle_store / name).is_dir()


def test_a_version_that_lost_its_manifest_is_reported(database: str, bundle_store: Path) -> None:
    current = str(BundleStore(bundle_store).read_current())
    other = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    (bundle_store / other / MANIFEST).unlink()
    assert warnings(run_doctor(0)) == {"bundles.unfinished"}
    (bundle_store / current / MANIFEST).unlink()
    assert "bundles" in failures(run_doctor(1))


def test_vectors_that_differ_from_the_item_table_are_counted(bundle_store: Path) -> None:
    predictor = BundleStore(bundle_store).open()
    vectors = predictor.bundle.index.vectors(np.arange(1, len(predictor.catalog) + 1))
    assert bundles.count_differing_vectors(predictor) == 0
    vectors[3:5] += 1
    index = ItemIndex.build(vectors, predictor.bundle.manifest.similarity)
    changed = Predictor(replace(predictor.bundle, index=index))
    assert bundles.count_differing_vectors(changed) == 2


def test_events_from_the_future_are_a_warning(database: str) -> None:
    execute(database, "UPDATE events SET received_at = :at", at=now() + 60_000_000)
    found = run_doctor(0)
    assert warnings(found) == {"clock.events"}


def test_the_clocks_of_a_working_service_agree(service_database: str) -> None:
    found = run_doctor(0)
    assert found["clock.files"]["verdict"] == "ok"
    assert ("clock.database" in found) == service_database.startswith("postgresql")


@pytest.mark.parametrize(
    ("offset", "verdict"), [(0.1, "ok"), (-5.0, "warning"), (3600.0, "failure")]
)
def test_a_clock_is_judged_by_its_offset(offset: float, verdict: str) -> None:
    check = judge_clock("clock.database", "the database's", offset)
    assert check.verdict == verdict
    assert ("ahead" if offset > 0 else "behind") in check.finding


def test_a_wrong_clock_of_this_machine_is_found(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time
    monkeypatch.setattr("cli.doctor.clocks.time.time", lambda: real() - 3600)
    assert "clock.files" in failures(run_doctor(1))
