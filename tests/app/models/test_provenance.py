"""GET /v1/models/{version}: the training record in a bundle's provenance."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue, TypeAdapter

from app.models.detail import MOST_EPOCHS
from app.models.schemas import ModelDetail
from model.bundle.kernels import compute_kernel_curves
from model.bundle.provenance import INITIAL_KERNELS
from model.encoders.markov import MarkovConfig
from model.store.opening import open_predictor
from model.store.store import BundleStore
from tests import tiny
from tests.app import tiny_bundle
from tests.app.client import Client
from tests.app.models.model_requests import missing_reason, read_detail
from tests.training.progress import RecordingProgress
from tests.training.recipes import RUN
from training.run import train

RESPONSE = TypeAdapter(ModelDetail)
PARTS = ("epochs", "index_recall", "p95_seconds", "initial_kernels")
EPOCH: dict[str, JsonValue] = {
    "epoch": 1,
    "loss": 2.5,
    "validation": {"ndcg@10": 0.1},
    "seconds": 3.25,
}
"""The form of an epoch in a manifest."""


def describe(client: Client, root: Path, provenance: dict[str, JsonValue]) -> dict[str, Any]:
    """The description of a bundle with this provenance, validated against the schema."""
    version = tiny_bundle.publish(root, seed=2, activate=False, provenance=provenance)
    description = read_detail(client, version)
    RESPONSE.validate_json(json.dumps(description))
    return description


def missing_reasons(description: dict[str, Any], part: str) -> list[str]:
    return [missing["why"] for missing in description["missing"] if missing["part"] == part]


def test_a_trained_model_returns_epochs_and_initial_kernels(
    client: Client, bundle_store: Path, tmp_path: Path
) -> None:
    outcome = train(
        RUN, tiny.gap_world(users=30, length=8), None, tmp_path, progress=RecordingProgress()
    )
    version = BundleStore(bundle_store).add_copy(outcome.bundle, activate=False)
    description = read_detail(client, version)
    assert [epoch.pop("seconds") for epoch in description["epochs"]] == pytest.approx(
        [epoch.seconds for epoch in outcome.epochs], abs=1e-3
    )
    assert description["epochs"] == [
        {
            "phase": "fit",
            "epoch": epoch.epoch,
            "loss": epoch.loss,
            "validation": epoch.validation,
        }
        for epoch in outcome.epochs
    ]
    (kernel,) = description["kernels"]
    assert len(kernel["initial_psi"]) == len(kernel["psi"]) == 128
    assert kernel["initial_psi"] != pytest.approx(kernel["psi"], rel=1e-4)
    assert len(kernel["initial_spectrum"]) == len(kernel["spectrum"])
    assert kernel["initial_spectrum"] != kernel["spectrum"]
    for prefix in ("", "initial_"):
        power = sum(rhythm["power"] for rhythm in kernel[f"{prefix}spectrum"])
        constant = kernel[f"{prefix}psi"][0] - power
        assert kernel[f"{prefix}constant"] == pytest.approx(constant, abs=1e-4)
    assert description["index_recall"] == 1.0
    assert description["p95_seconds"] == pytest.approx(outcome.latency.p95_seconds, rel=1e-5)
    assert not {missing["part"] for missing in description["missing"]} & {*PARTS}


def test_a_bundle_of_an_older_release_lists_missing_parts(
    client: Client, bundle_store: Path
) -> None:
    description = read_detail(client, BundleStore(bundle_store).read_current())
    for part in ("epochs", "index_recall", "p95_seconds"):
        assert "published without" in missing_reason(description, part)
    (kernel,) = description["kernels"]
    assert (kernel["initial_psi"], kernel["initial_spectrum"]) == (None, None)
    assert kernel["initial_constant"] is None
    (reason,) = missing_reasons(description, "initial_kernels")
    assert "published without" in reason


def test_recorded_provenance_is_returned(client: Client, bundle_store: Path) -> None:
    description = describe(
        client, bundle_store, {"epochs": [EPOCH], "index_recall": 0.5, "p95_seconds": 0.25}
    )
    assert description["epochs"] == [EPOCH | {"phase": "fit"}]
    assert (description["index_recall"], description["p95_seconds"]) == (0.5, 0.25)


@pytest.mark.parametrize(
    "garbage",
    [
        *(None, True, "much", {}, [[]], [None], {"a": "b"}, 10**400, -1, 1e400, "NaN"),
        [EPOCH | {"epoch": 2**64}],
        [EPOCH | {"loss": None}],
        [EPOCH | {"validation": {"ndcg@10": "good"}}],
        [{"place": "encoder.time_encoding", "psi": [1.0]}],
    ],
    ids=lambda garbage: repr(garbage)[:40],
)
def test_an_unreadable_part_is_null_with_a_reason(
    client: Client, bundle_store: Path, garbage: JsonValue
) -> None:
    description = describe(client, bundle_store, dict.fromkeys(PARTS, garbage))
    for part in PARTS:
        (reason,) = missing_reasons(description, part)
        assert f"cannot be read at {part}" in reason
        assert "train again" in reason
        assert description.get(part) is None
    assert [kernel["initial_psi"] for kernel in description["kernels"]] == [None]


def test_an_unreadable_part_affects_no_other(client: Client, bundle_store: Path) -> None:
    description = describe(client, bundle_store, {"epochs": "many", "index_recall": 0.5})
    assert (description["epochs"], description["index_recall"]) == (None, 0.5)


@pytest.mark.slow
def test_of_very_many_epochs_the_last_are_returned(client: Client, bundle_store: Path) -> None:
    epochs: list[JsonValue] = [EPOCH | {"epoch": number} for number in range(MOST_EPOCHS + 2)]
    returned = describe(client, bundle_store, {"epochs": epochs})["epochs"]
    assert len(returned) == MOST_EPOCHS
    assert (returned[0]["epoch"], returned[-1]["epoch"]) == (2, MOST_EPOCHS + 1)


def test_a_model_that_counts_has_no_epochs(client: Client, bundle_store: Path) -> None:
    version = tiny_bundle.publish(
        bundle_store,
        seed=2,
        activate=False,
        encoder=MarkovConfig(),
        provenance={"epochs": [], "initial_kernels": []},
    )
    description = read_detail(client, version)
    assert "'markov'" in missing_reason(description, "epochs")
    assert missing_reasons(description, "initial_kernels") == []


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"place": "encoder.elsewhere"}, "none of 'encoder.time_encoding'"),
        ({"interval_days": (0.5,) * 128}, "other intervals"),
        ({"psi": (1.0,)}, "other intervals"),
    ],
    ids=["place", "intervals", "length"],
)
def test_an_initial_kernel_at_other_intervals_is_left_out(
    client: Client, bundle_store: Path, changed: dict[str, Any], expected: str
) -> None:
    current = BundleStore(bundle_store).read_current()
    predictor = open_predictor(bundle_store / str(current))
    curves = compute_kernel_curves(
        predictor.bundle.recommender, predictor.bundle.manifest.data_window.days
    )
    alike = describe(client, bundle_store, INITIAL_KERNELS.write(curves))
    assert alike["kernels"][0]["initial_psi"] == pytest.approx(curves[0].psi)
    other = (replace(curves[0], **changed),)
    description = describe(client, bundle_store, INITIAL_KERNELS.write(other))
    (reason,) = missing_reasons(description, "initial_kernels")
    assert expected in reason
    assert description["kernels"][0]["initial_psi"] is None
    assert description["kernels"][0]["psi"]


def test_a_damaged_model_still_returns_its_training_record(
    client: Client, bundle_store: Path
) -> None:
    version = tiny_bundle.publish(
        bundle_store, seed=2, activate=False, provenance={"epochs": [EPOCH]}
    )
    tiny_bundle.damage(bundle_store, version)
    description = read_detail(client, version)
    assert description["epochs"] == [EPOCH | {"phase": "fit"}]
    assert "altered" in missing_reason(description, "kernels")


def test_numbers_beyond_json_do_not_break_the_response(client: Client, bundle_store: Path) -> None:
    description = describe(client, bundle_store, {"note": [2**70, 1e400, {"deep": [10**400]}]})
    note = description["manifest"]["provenance"]["note"]
    assert note == [pytest.approx(2**70), None, {"deep": [None]}]
