"""Frequencies by learned inverse CDFs."""

import math

import pytest
import torch

from model.time_encodings.bochner_inverse_cdf import BochnerInverseCDF, BochnerInverseCDFConfig
from tests.contracts.time_encoding import TimeEncodingContract

MAPS = [
    BochnerInverseCDFConfig(map="mlp", frequencies=40),
    BochnerInverseCDFConfig(map="mlp_residual", frequencies=40),
    BochnerInverseCDFConfig(map="maf", frequencies=40),
    BochnerInverseCDFConfig(map="real_nvp", frequencies=40),
]


def map_of(config: BochnerInverseCDFConfig) -> str:
    return config.map


class TestBochnerInverseCDFByMLP(TimeEncodingContract):
    config = BochnerInverseCDFConfig(map="mlp", frequencies=6, hidden=4)


class TestBochnerInverseCDFByResidualMLP(TimeEncodingContract):
    config = BochnerInverseCDFConfig(map="mlp_residual", frequencies=6)


class TestBochnerInverseCDFByAutoregressiveFlow(TimeEncodingContract):
    config = BochnerInverseCDFConfig(map="maf", frequencies=6)


class TestBochnerInverseCDFByCouplingFlow(TimeEncodingContract):
    config = BochnerInverseCDFConfig(map="real_nvp", frequencies=6, hidden=4)


@pytest.mark.parametrize("config", MAPS, ids=map_of)
def test_initial_periods_are_log_uniform_between_the_bounds(
    config: BochnerInverseCDFConfig,
) -> None:
    encoding = config.build()
    for _ in range(5):
        encoding.resample()
        log_periods = (2 * math.pi / encoding.frequencies()).log()
        low, high = math.log(config.shortest_period), math.log(config.longest_period)
        ranks = torch.arange(0.5, 40, dtype=torch.float64) / 40
        # A draw is anywhere in its stratum, and a map is initially a few hundredths off.
        off = ((log_periods - low) / (high - low) - ranks).abs().max()
        assert off < 0.5 / 40 + 0.06


@pytest.mark.parametrize("config", MAPS, ids=map_of)
def test_frequencies_are_bounded_for_any_parameters(
    config: BochnerInverseCDFConfig,
) -> None:
    encoding = config.build()
    with torch.no_grad():
        for parameter in encoding.parameters():
            parameter.mul_(50).add_(50)
    frequencies = encoding.frequencies()
    assert frequencies.isfinite().all()
    assert frequencies.min() >= 2 * math.pi / 1e6 * 0.99
    assert frequencies.max() <= 2 * math.pi * 86_400 * 1.01


@pytest.mark.parametrize("config", MAPS, ids=map_of)
def test_all_parameters_are_named_log_periods(config: BochnerInverseCDFConfig) -> None:
    # The optimiser selects them by this name, for a learning rate of their own.
    names = [name for name, _ in config.build().named_parameters()]
    assert names
    assert all(name.startswith("log_periods.") for name in names)


def test_draws_are_stratified() -> None:
    encoding = BochnerInverseCDFConfig(map="maf", frequencies=8).build()
    encoding.resample()
    assert (encoding.uniform * 8).floor().tolist() == list(range(8))


def test_paper_code_starts_between_powers_of_ten_per_second() -> None:
    encoding = BochnerInverseCDFConfig.from_paper_code(dim=16, map="maf").build()
    assert isinstance(encoding, BochnerInverseCDF)
    assert encoding.dim == 16
    powers = (encoding.frequencies() / 86_400).log10()
    assert (-powers).floor().tolist() == list(range(8))
