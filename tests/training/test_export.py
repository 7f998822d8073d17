"""The bundle that a run exports, and its provenance: epochs, kernels, latency."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from numpy.typing import NDArray

from model.bundle.bundle import Bundle
from model.bundle.index import ItemIndex
from model.bundle.kernels import KernelCurve, compute_kernel_curves
from model.bundle.manifest import WEIGHTS
from model.bundle.provenance import EPOCHS, INDEX_RECALL, INITIAL_KERNELS, P95_SECONDS
from model.bundle.signature import BundleKeys
from model.bundle.writing import write_bundle
from model.encoders.markov import MarkovConfig
from model.errors import BundleError
from model.inference.predictor import Predictor
from model.store.opening import open_predictor
from tests import tiny
from tests.training.progress import RecordingProgress
from tests.training.recipes import REFIT, RUN
from training import export
from training.config import IndexConfig, RunConfig
from training.data.dataset import Dataset
from training.fitting.building import build_recommender
from training.fitting.fit import EpochReport
from training.retraining.warm_start import copy_champion_weights
from training.run import (
    Outcome,
    begin_run,
    evaluate_on_test,
    fit_recommender,
    train,
    write_outcome,
)


@pytest.fixture(scope="module")
def events() -> pl.DataFrame:
    return tiny.gap_world(users=30, length=8)


@pytest.fixture(scope="module")
def outcome(events: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return train(RUN, events, None, tmp_path_factory.mktemp("run"), progress=RecordingProgress())


@pytest.fixture(scope="module")
def refitted(events: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return train(
        REFIT, events, None, tmp_path_factory.mktemp("refit"), progress=RecordingProgress()
    )


@pytest.mark.parametrize("is_exported", [pytest.param(True, marks=pytest.mark.slow), False])
def test_the_encoder_is_exported_if_the_recipe_asks_for_it(
    events: pl.DataFrame, tmp_path: Path, *, is_exported: bool
) -> None:
    recipe = RUN.model_copy(update={"export_encoder": is_exported})
    assert RunConfig().export_encoder
    found = train(recipe, events, None, tmp_path, progress=RecordingProgress())
    assert (open_predictor(found.bundle).bundle.recommender.exported is not None) == is_exported


@pytest.fixture(params=["outcome", "refitted"])
def either(request: pytest.FixtureRequest) -> Outcome:
    """A run without a refit, and one with."""
    found: Outcome = request.getfixturevalue(request.param)
    return found


def before_training(config: RunConfig, events: pl.DataFrame) -> KernelCurve:
    """The kernel of the fresh weights, over the span of the exported model's training events."""
    whole = Dataset.of(events)
    split = config.split.split(whole, "next_event")
    everything = np.ones(len(whole), dtype=np.bool_)
    dataset, chosen = (
        (whole, everything) if config.fit.refit else (split.dataset, split.is_training)
    )
    times = dataset.times[chosen]
    _, recommender = build_recommender(config, dataset, chosen)
    (curve,) = compute_kernel_curves(recommender, float(times.max() - times.min()) / tiny.DAY)
    return curve


def now(predictor: Predictor) -> KernelCurve:
    (curve,) = compute_kernel_curves(
        predictor.bundle.recommender, predictor.bundle.manifest.data_window.days
    )
    return curve


@pytest.mark.slow
def test_a_bundle_has_every_epoch_of_the_measured_fit(either: Outcome) -> None:
    kept = EPOCHS.read(open_predictor(either.bundle).bundle.manifest)
    assert [epoch.epoch for epoch in kept] == [1, 2, 3]
    for epoch, epoch_report in zip(kept, either.epochs, strict=True):
        assert epoch.loss == epoch_report.loss
        assert epoch.validation == epoch_report.validation
        assert epoch.seconds == pytest.approx(epoch_report.seconds, abs=1e-3)
    assert "ndcg@10" in kept[-1].validation


@pytest.mark.parametrize(("config", "ran"), [(RUN, "outcome"), (REFIT, "refitted")])
def test_a_bundle_has_the_kernel_before_training(
    config: RunConfig, ran: str, events: pl.DataFrame, request: pytest.FixtureRequest
) -> None:
    predictor = open_predictor(request.getfixturevalue(ran).bundle)
    (kept,) = INITIAL_KERNELS.read(predictor.bundle.manifest)
    expected = before_training(config, events)
    assert (kept.place, kept.kind, kept.is_stationary) == (
        expected.place,
        expected.kind,
        expected.is_stationary,
    )
    assert kept.psi == pytest.approx(expected.psi, rel=1e-5, abs=1e-9)
    assert kept.interval_days == pytest.approx(expected.interval_days, rel=1e-5)
    assert kept.interval_days == pytest.approx(now(predictor).interval_days, rel=1e-5)
    assert kept.spectrum is not None
    assert expected.spectrum is not None
    assert [rhythm.power for rhythm in kept.spectrum] == pytest.approx(
        [rhythm.power for rhythm in expected.spectrum], rel=1e-5
    )


def test_training_changes_the_kernel(either: Outcome) -> None:
    predictor = open_predictor(either.bundle)
    (kept,) = INITIAL_KERNELS.read(predictor.bundle.manifest)
    learned = now(predictor)
    assert learned.spectrum is not None
    assert kept.spectrum is not None
    before, after = (sorted(r.power for r in one.spectrum or ()) for one in (kept, learned))
    assert len(before) == len(after)
    assert before != pytest.approx(after, rel=1e-4)
    assert kept.psi != pytest.approx(learned.psi, rel=1e-4)


@pytest.mark.slow
def test_after_a_warm_start_the_kernel_is_the_champions(
    outcome: Outcome, events: pl.DataFrame, tmp_path: Path
) -> None:
    champion = open_predictor(outcome.bundle)
    run = begin_run(
        RUN,
        tmp_path,
        progress=RecordingProgress(),
        initialise_weights=copy_champion_weights(champion),
    )
    fitted = fit_recommender(run, events, None)
    report = evaluate_on_test(run, fitted)
    warm = open_predictor(write_outcome(run, fitted, report, fitted.split.test).bundle)
    (kept,) = INITIAL_KERNELS.read(warm.bundle.manifest)
    assert kept.psi == pytest.approx(now(champion).psi, rel=1e-5, abs=1e-9)


@pytest.mark.slow
def test_a_resumed_run_has_the_epochs_before_the_kill(
    outcome: Outcome, events: pl.DataFrame, tmp_path: Path
) -> None:
    class Killed(RecordingProgress):
        def finish_epoch(self, report: EpochReport) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(RUN, events, None, tmp_path, progress=Killed())
    resumed = open_predictor(
        train(RUN, events, None, tmp_path, progress=RecordingProgress()).bundle
    ).bundle.manifest
    whole = open_predictor(outcome.bundle).bundle.manifest
    assert INITIAL_KERNELS.read(resumed) == INITIAL_KERNELS.read(whole)
    assert [epoch.loss for epoch in EPOCHS.read(resumed)] == [
        epoch.loss for epoch in EPOCHS.read(whole)
    ]


def test_a_counting_model_has_no_epochs_and_no_kernels(
    events: pl.DataFrame, tmp_path: Path
) -> None:
    config = RUN.model_copy(update={"encoder": MarkovConfig()})
    manifest = open_predictor(
        train(config, events, None, tmp_path, progress=RecordingProgress()).bundle
    ).bundle.manifest
    assert EPOCHS.read(manifest) == ()
    assert INITIAL_KERNELS.read(manifest) == ()
    assert INDEX_RECALL.read(manifest) == 1.0


def test_a_bundle_has_its_latency_and_index_recall(either: Outcome) -> None:
    manifest = open_predictor(either.bundle).bundle.manifest
    assert INDEX_RECALL.read(manifest) == either.latency.index_recall == 1.0
    assert P95_SECONDS.read(manifest) == pytest.approx(either.latency.p95_seconds, rel=1e-5)
    assert 0 < either.latency.p95_seconds < 60


def test_large_catalogs_get_the_index_that_is_chosen(
    events: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def choose(exact: ItemIndex, users: NDArray[np.float32], config: IndexConfig) -> ItemIndex:
        assert users.shape == (30, exact.width)
        assert config.recall == 0.9
        return exact.with_inverted_file(users)

    monkeypatch.setattr(export, "choose_index", choose)
    has_inverted_file = []
    for exact_up_to in (19, 20):
        recipe = RUN.model_copy(update={"index": IndexConfig(exact_up_to=exact_up_to, recall=0.9)})
        outcome = train(
            recipe, events, None, tmp_path / f"{exact_up_to}", progress=RecordingProgress()
        )
        index = open_predictor(outcome.bundle).bundle.index
        assert len(index) == 20
        has_inverted_file.append(index.inverted is not None)
    assert has_inverted_file == [True, False]


def test_writing_a_bundle_leaves_no_other_files(either: Outcome) -> None:
    left = {path.name for path in either.bundle.parent.iterdir()}
    assert left == {either.bundle.name, "report.json", "checkpoint.safetensors"}


def test_nan_weights_are_refused_and_leave_no_bundle(events: pl.DataFrame, tmp_path: Path) -> None:
    run = begin_run(RUN, tmp_path, progress=RecordingProgress())
    fitted = fit_recommender(run, events, None)
    report = evaluate_on_test(run, fitted)
    with torch.no_grad():
        next(fitted.model.recommender.encoder.parameters()).fill_(float("nan"))
    with pytest.raises(BundleError, match="finite"):
        write_outcome(run, fitted, report, fitted.split.test)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("2")]


def test_a_written_bundle_that_does_not_open_is_removed(
    events: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_truncated(bundle: Bundle, directory: Path, keys: BundleKeys) -> str:
        version = write_bundle(bundle, directory, keys)
        with (directory / WEIGHTS).open("r+b") as weights:
            weights.truncate(100)
        return version

    monkeypatch.setattr("training.export.write_bundle", write_truncated)
    with pytest.raises(BundleError, match="is altered"):
        train(RUN, events, None, tmp_path, progress=RecordingProgress())
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("2")]


def test_a_provenance_is_small(either: Outcome) -> None:
    assert (either.bundle / "manifest.json").stat().st_size < 20_000
