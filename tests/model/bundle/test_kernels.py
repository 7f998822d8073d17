"""The kernels of a bundle's time encodings, as curves and spectra."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from model.bundle.kernels import KernelCurve, Rhythm, compute_constant_term, compute_kernel_curves
from model.encoders import EncoderConfig
from model.encoders.gru4rec import GRU4RecConfig
from model.encoders.lstm import LSTMConfig
from model.encoders.sasrec import SASRecConfig
from model.encoders.self_attention import SelfAttentionConfig
from model.inference.predictor import Predictor
from model.store.opening import open_predictor
from model.time_encodings.bochner_nonparametric import BochnerNonparametricConfig
from model.time_encodings.damped_rotation import DampedRotationConfig
from model.time_encodings.mercer import MercerConfig
from model.time_encodings.nonstationary import NonstationaryConfig
from model.time_encodings.positional import PositionalConfig
from model.time_encodings.rotary import RotaryConfig
from model.time_encodings.time2vec import Time2VecConfig
from tests.app import tiny_bundle

SECOND = 1 / 86_400


def published(root: Path, encoder: EncoderConfig) -> Predictor:
    version = tiny_bundle.publish(root, seed=1, encoder=encoder)
    return open_predictor(root / version)


def curves_of(predictor: Predictor) -> tuple[KernelCurve, ...]:
    return compute_kernel_curves(
        predictor.bundle.recommender, predictor.bundle.manifest.data_window.days
    )


def attending(time_encoding: object) -> SelfAttentionConfig:
    return SelfAttentionConfig(
        dim=8, heads=2, layers=1, feed_forward=8, time_encoding=time_encoding
    )


def test_a_curve_spans_a_second_to_the_span_of_the_data(tmp_path: Path) -> None:
    predictor = published(tmp_path, attending(MercerConfig(periods=3)))
    (curve,) = curves_of(predictor)
    assert (curve.place, curve.kind) == ("encoder.time_encoding", "mercer")
    assert curve.interval_days[0] == pytest.approx(SECOND)
    assert curve.interval_days[-1] == pytest.approx(100)
    ratios = torch.tensor(curve.interval_days).log().diff()
    assert torch.allclose(ratios, ratios.mean(), rtol=1e-3)
    encoding = predictor.bundle.recommender.encoder.time_encoding
    for days, psi in list(zip(curve.interval_days, curve.psi, strict=True))[::16]:
        of_both = encoding(torch.tensor([days, 0.0], dtype=torch.float64))
        assert psi == pytest.approx(float(of_both[0] @ of_both[1]), abs=1e-5)


def test_a_stationary_curve_is_the_sum_of_its_cosines(tmp_path: Path) -> None:
    predictor = published(tmp_path, attending(BochnerNonparametricConfig(frequencies=5)))
    (curve,) = curves_of(predictor)
    assert curve.is_stationary
    assert curve.spectrum is not None
    assert [rhythm.power for rhythm in curve.spectrum] == sorted(
        (rhythm.power for rhythm in curve.spectrum), reverse=True
    )
    for days, psi in list(zip(curve.interval_days, curve.psi, strict=True))[::16]:
        rhythms = sum(
            rhythm.power * math.cos(2 * math.pi * days / rhythm.period_days)
            for rhythm in curve.spectrum
        )
        assert psi == pytest.approx(rhythms, abs=1e-4)


def test_a_linear_term_is_not_in_the_spectrum(tmp_path: Path) -> None:
    (curve,) = curves_of(published(tmp_path, attending(Time2VecConfig(frequencies=4))))
    assert curve.spectrum is not None
    assert len(curve.spectrum) == 4
    assert all(rhythm.period_days < 10_000 for rhythm in curve.spectrum)


def test_a_kernel_without_features_has_a_curve_and_no_spectrum(tmp_path: Path) -> None:
    (curve,) = curves_of(published(tmp_path, attending(NonstationaryConfig(components=2))))
    assert (curve.kind, curve.spectrum, curve.is_stationary) == ("nonstationary", None, False)
    assert all(map(math.isfinite, curve.psi))


def test_a_damped_curve_falls_with_the_interval(tmp_path: Path) -> None:
    predictor = published(tmp_path, attending(DampedRotationConfig(frequencies=3)))
    (curve,) = curves_of(predictor)
    assert (curve.kind, curve.is_stationary) == ("damped_rotation", False)
    assert compute_constant_term(curve) is None
    assert curve.psi[0] == pytest.approx(1, abs=0.01)
    encoding = predictor.bundle.recommender.encoder.time_encoding
    frequencies, rates = encoding.frequencies().tolist(), encoding.rates().tolist()
    for days, psi in list(zip(curve.interval_days, curve.psi, strict=True))[::16]:
        expected = sum(
            math.exp(-rate * days) * math.cos(frequency * days) / 3
            for frequency, rate in zip(frequencies, rates, strict=True)
        )
        assert psi == pytest.approx(expected, abs=1e-5)


def test_encodings_of_other_encoders_have_curves_too(tmp_path: Path) -> None:
    predictor = published(tmp_path, LSTMConfig(dim=8, interval=Time2VecConfig(frequencies=3)))
    assert [curve.kind for curve in curves_of(predictor)] == ["time2vec"]


@pytest.mark.parametrize(
    "encoder",
    [
        attending(PositionalConfig(frequencies=4)),
        attending(RotaryConfig()),
        GRU4RecConfig(dim=8),
        SASRecConfig(dim=8),
    ],
    ids=["positional", "rotary", "gru4rec", "sasrec"],
)
def test_a_model_without_features_has_no_kernel(tmp_path: Path, encoder: EncoderConfig) -> None:
    assert curves_of(published(tmp_path, encoder)) == ()


def sum_of_cosines(curve: KernelCurve, constant: float) -> list[float]:
    """psi by the formula of `compute_constant_term`."""
    return [
        constant
        + sum(
            rhythm.power * math.cos(2 * math.pi * days / rhythm.period_days)
            for rhythm in curve.spectrum or ()
        )
        for days in curve.interval_days
    ]


def test_the_constant_and_the_spectrum_reproduce_the_curve(tmp_path: Path) -> None:
    (curve,) = curves_of(published(tmp_path, attending(MercerConfig(periods=3, degree=2))))
    constant = compute_constant_term(curve)
    assert constant is not None
    assert sum_of_cosines(curve, constant) == pytest.approx(curve.psi, abs=1e-4)


def test_rounded_curves_have_a_constant_within_their_error(tmp_path: Path) -> None:
    (curve,) = curves_of(published(tmp_path, attending(MercerConfig(periods=3, degree=2))))
    short = replace(
        curve,
        psi=tuple(float(f"{value:.5e}") for value in curve.psi),
        spectrum=tuple(
            Rhythm(float(f"{rhythm.period_days:.5e}"), float(f"{rhythm.power:.5e}"))
            for rhythm in curve.spectrum or ()
        ),
    )
    assert compute_constant_term(short, relative_error=5e-6) == pytest.approx(
        compute_constant_term(curve), abs=1e-4
    )


@pytest.mark.parametrize("changed", ["psi", "is_stationary", "spectrum", "period"])
def test_a_curve_that_is_no_sum_of_cosines_has_no_constant(tmp_path: Path, changed: str) -> None:
    (curve,) = curves_of(published(tmp_path, attending(MercerConfig(periods=3, degree=2))))
    others = {
        "psi": replace(
            curve, psi=tuple(psi + 0.01 * (index % 2) for index, psi in enumerate(curve.psi))
        ),
        "is_stationary": replace(curve, is_stationary=False),
        "spectrum": replace(curve, spectrum=None),
        "period": replace(curve, spectrum=(Rhythm(0.0, 1.0),)),
    }
    assert compute_constant_term(others[changed]) is None
