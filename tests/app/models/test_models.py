"""GET /v1/models, and one of them in detail."""

import math
from pathlib import Path

import polars as pl
import pytest

from app.models.detail import MOST_POINTS, wilson_interval
from app.recommendations.impression_writer import write_impressions
from model.bundle.attention_profile import SCHEMA
from model.encoders.gru4rec import GRU4RecConfig
from model.store.store import BundleStore
from tests.app import tiny_bundle
from tests.app.client import Client
from tests.app.models.model_requests import missing_reason, read_detail, remove_database

NO_CLICKS = {"shown": 0, "clicked": 0, "rate": None, "rate_low": None, "rate_high": None}
"""What a version without recorded answers has."""


def test_models_show_the_current_and_the_served_version(client: Client, bundle_store: Path) -> None:
    served = BundleStore(bundle_store).read_current()
    other, third = (tiny_bundle.publish(bundle_store, seed=seed, activate=False) for seed in (2, 3))
    traffic = {"challenger": other, "share": 0.1, "shadow": third}
    assert client.put("/v1/models/traffic", traffic).status_code == 200
    models = client.get("/v1/models").json()["models"]
    roles = ("is_current", "is_serving", "is_challenger", "is_shadow")
    assert {model["version"]: [model[role] for role in roles] for model in models} == {
        served: [True, True, False, False],
        other: [False, False, True, False],
        third: [False, False, False, True],
    }
    described = client.get(f"/v1/models/{other}").json()
    assert [described[role] for role in roles] == [False, False, True, False]


def test_models_show_their_training_data_and_metrics(client: Client, bundle_store: Path) -> None:
    store = BundleStore(bundle_store)
    (model,) = client.get("/v1/models").json()["models"]
    manifest = store.read_manifest(store.list_versions()[0])
    assert model["trained_at"] == manifest.created_at.isoformat().replace("+00:00", "Z")
    assert model["data_window"] == {
        "first_at": "2026-01-01T00:00:00Z",
        "last_at": "2026-04-11T00:00:00Z",
    }
    assert model["metrics"] == {"ndcg@10": 0.25}
    assert model["refused"] is None


def test_a_model_is_described_by_its_manifest(client: Client, bundle_store: Path) -> None:
    store = BundleStore(bundle_store)
    version = store.list_versions()[0]
    answer = client.get(f"/v1/models/{version}").json()
    assert answer["version"] == version
    assert answer["is_serving"] is True
    assert answer["manifest"] == store.read_manifest(version).model_dump(mode="json")


@pytest.mark.parametrize(
    "version", ["20200101T000000Z-000000000000", "..", "..%2Fbundles", "%00", "CURRENT", "x" * 5000]
)
def test_an_unpublished_model_is_not_found(shared_client: Client, version: str) -> None:
    response = shared_client.get(f"/v1/models/{version}")
    assert response.status_code == 404
    assert response.json()["code"] in {"model_not_found", "not_found"}


def test_a_model_with_a_damaged_manifest_is_refused(client: Client, bundle_store: Path) -> None:
    version = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    (bundle_store / version / "manifest.json").write_text("{}")
    (listed,) = (m for m in client.get("/v1/models").json()["models"] if m["version"] == version)
    assert "altered" in listed["refused"]
    assert (listed["trained_at"], listed["data_window"], listed["metrics"]) == (None, None, None)
    response = client.get(f"/v1/models/{version}")
    assert response.status_code == 409
    assert response.json()["code"] == "model_refused"


def test_a_model_is_described_by_its_time_kernels(client: Client, bundle_store: Path) -> None:
    description = read_detail(client, BundleStore(bundle_store).read_current())
    (kernel,) = description["kernels"]
    assert (kernel["kind"], kernel["is_stationary"]) == ("mercer", True)
    assert len(kernel["interval_days"]) == len(kernel["psi"]) == 128
    assert kernel["interval_days"][-1] == pytest.approx(100)
    assert kernel["spectrum"][0]["power"] == max(each["power"] for each in kernel["spectrum"])
    power = sum(each["power"] for each in kernel["spectrum"])
    assert [each["share"] for each in kernel["spectrum"]] == pytest.approx(
        [each["power"] / power for each in kernel["spectrum"]]
    )
    # At the shortest interval every cosine is 1.
    assert kernel["constant"] == pytest.approx(kernel["psi"][0] - power, abs=1e-5)
    assert description["attention_is_normalised"] is True
    assert "without one" in missing_reason(description, "attention_profile")


def test_a_model_without_time_encoding_has_no_kernels(client: Client, bundle_store: Path) -> None:
    version = tiny_bundle.publish(
        bundle_store, seed=2, activate=False, encoder=GRU4RecConfig(dim=8)
    )
    assert "'gru4rec'" in missing_reason(read_detail(client, version), "kernels")


def test_a_damaged_model_is_described_by_its_manifest(client: Client, bundle_store: Path) -> None:
    version = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    tiny_bundle.damage(bundle_store, version)
    description = read_detail(client, version)
    assert description["manifest"]["metrics"] == {"ndcg@10": 0.25}
    assert "altered" in missing_reason(description, "kernels")
    assert "altered" in missing_reason(description, "attention_profile")
    assert description["attention_is_normalised"] is None
    assert description["clicks"] == NO_CLICKS


def test_an_attention_profile_is_returned_up_to_a_limit(client: Client, bundle_store: Path) -> None:
    days = [float(day) for day in range(MOST_POINTS + 1)]
    profile = pl.DataFrame(
        {
            "view": "observed",
            "by": "action",
            "name": "view",
            "interval_days": days,
            "mean": 0.5,
            "sd": [float("nan"), *days[1:]],
            "count": 7,
        }
    ).cast(SCHEMA)  # type: ignore[arg-type]
    version = tiny_bundle.publish(bundle_store, seed=2, activate=False, profile=profile)
    points = read_detail(client, version)["attention_profile"]
    assert len(points) == MOST_POINTS
    assert [point["interval_days"] for point in points] == days[:MOST_POINTS]
    assert points[0] == {
        "view": "observed",
        "by": "action",
        "name": "view",
        "interval_days": 0.0,
        "mean": 0.5,
        "sd": None,
        "standard_error": None,
        "count": 7,
    }
    assert points[7]["standard_error"] == pytest.approx(7 / math.sqrt(7))


def test_a_mean_over_one_history_has_no_standard_error(client: Client, bundle_store: Path) -> None:
    point = ("predicted", "all", "", 1.0, 0.5, 0.1, 1)
    profile = pl.DataFrame([point], schema=list(SCHEMA), orient="row").cast(SCHEMA)  # type: ignore[arg-type]
    version = tiny_bundle.publish(bundle_store, seed=2, activate=False, profile=profile)
    (description,) = read_detail(client, version)["attention_profile"]
    assert (description["sd"], description["standard_error"]) == (0.1, None)


def test_clicks_are_events_that_name_an_impression_and_its_item(
    client_on_either: Client, bundle_store: Path
) -> None:
    client, version = client_on_either, BundleStore(bundle_store).read_current()
    answers = [
        client.post("/v1/recommendations", {"user_id": "u1", "n": 2}).json() for _ in range(4)
    ]
    recommended = [[item["item_id"] for item in answer["items"]] for answer in answers]
    not_recommended = next(
        i
        for i in tiny_bundle.ITEM_IDS
        if i not in {*recommended[0], *recommended[1], *recommended[2]}
    )
    clicks = [
        (answers[0], recommended[0][0]),
        (answers[0], recommended[0][1]),  # a second click on the same response counts once
        (answers[1], recommended[1][1]),
        (answers[2], not_recommended),
    ]
    client.portal.call(write_impressions, client.app.state.context)
    events = [
        {
            "user_id": "u1",
            "item_id": item_id,
            "action": "view",
            "timestamp": tiny_bundle.FIRST_AT // 1_000_000 + number,
            "recommendation_id": answer["recommendation_id"],
        }
        for number, (answer, item_id) in enumerate(clicks)
    ]
    assert client.post("/v1/events", {"events": events}).json()["accepted"] == 4
    assert read_detail(client, version)["clicks"] == {
        "shown": 4,
        "clicked": 2,
        "rate": 0.5,
        "rate_low": pytest.approx(0.1500, abs=1e-4),
        "rate_high": pytest.approx(0.8500, abs=1e-4),
    }
    other = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    assert read_detail(client, other)["clicks"] == NO_CLICKS


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        # Newcombe, Statistics in Medicine 17 (1998), table I, method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_intervals_match_published_values(
    successes: int, trials: int, low: float, high: float
) -> None:
    assert wilson_interval(successes, trials) == pytest.approx((low, high), abs=5e-5)


def test_without_a_database_only_the_clicks_are_missing(
    client: Client, bundle_store: Path, tmp_path: Path
) -> None:
    remove_database(client, tmp_path)
    description = read_detail(client, BundleStore(bundle_store).read_current())
    assert "database" in missing_reason(description, "clicks")
    assert description["kernels"]


def test_an_unreadable_store_is_unavailable(client: Client, bundle_store: Path) -> None:
    version = BundleStore(bundle_store).read_current()
    (bundle_store / "CURRENT").unlink()
    (bundle_store / "CURRENT").mkdir()
    for path in ("/v1/models", f"/v1/models/{version}"):
        response = client.get(path)
        assert (response.status_code, response.json()["code"]) == (503, "store_unavailable")
