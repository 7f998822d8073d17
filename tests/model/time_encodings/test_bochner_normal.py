"""Normally distributed frequencies and log-frequencies."""

import math

import pytest
import torch

from model.time_encodings.bochner_normal import (
    BochnerLogNormal,
    BochnerNormal,
    BochnerNormalConfig,
)
from tests.contracts.time_encoding import TimeEncodingContract

MANY = 20_000


class TestBochnerLogNormal(TimeEncodingContract):
    config = BochnerNormalConfig(form="log", frequencies=6)

    def test_log_frequencies_have_the_configured_mean_and_spread(self) -> None:
        weekly = BochnerNormalConfig(
            form="log", frequencies=MANY, shortest_period=7, longest_period=7, spread=0.3
        )
        encoding = weekly.build()
        encoding.resample()
        logs = encoding.frequencies().log()
        assert logs.mean().item() == pytest.approx(math.log(2 * math.pi / 7), abs=0.01)
        assert logs.std().item() == pytest.approx(0.3, rel=0.03)

    def test_without_spread_frequencies_equal_their_means(self) -> None:
        encoding = self.config.build()
        assert isinstance(encoding, BochnerLogNormal)
        with torch.no_grad():
            encoding.spread_of_log_periods.zero_()
        means = encoding.periods.frequencies()
        encoding.resample()
        assert torch.equal(encoding.frequencies(), means)

    def test_the_spread_may_be_fixed(self) -> None:
        fixed = self.config.model_copy(update={"learn_spread": False}).build()
        learned = [name for name, part in fixed.named_parameters() if part.requires_grad]
        assert learned == ["periods.log_periods"]


class TestBochnerNormal(TimeEncodingContract):
    config = BochnerNormalConfig(frequencies=6, spread=1.0)

    def test_normal_frequencies_are_the_default(self) -> None:
        assert isinstance(BochnerNormalConfig().build(), BochnerNormal)
        assert isinstance(BochnerNormalConfig(form="log").build(), BochnerLogNormal)

    def test_frequencies_have_the_configured_mean_and_spread(self) -> None:
        weekly = BochnerNormalConfig(
            form="linear", frequencies=MANY, shortest_period=7, longest_period=7, spread=1.0
        )
        frequencies = weekly.build().frequencies()
        assert frequencies.mean().item() == pytest.approx(2 * math.pi / 7, abs=0.03)
        assert frequencies.std().item() == pytest.approx(1.0, rel=0.03)

    def test_the_mean_kernel_has_a_normal_spectrum(self) -> None:
        # The Fourier transform of N(mu, sigma^2): cos(mu x) exp(-sigma^2 x^2 / 2).
        encoding = BochnerNormalConfig(
            form="linear", frequencies=200, shortest_period=7, longest_period=7, spread=0.5
        ).build()
        intervals = torch.linspace(0, 8, 9, dtype=torch.float64)
        draws = []
        for _ in range(100):
            encoding.resample()
            draws.append(encoding.kernel(intervals, torch.zeros_like(intervals)).double())
        expected = (2 * math.pi / 7 * intervals).cos() * (-((0.5 * intervals) ** 2) / 2).exp()
        torch.testing.assert_close(torch.stack(draws).mean(0), expected, rtol=0, atol=0.03)

    def test_paper_code_has_the_authors_means_and_spread(self) -> None:
        config = BochnerNormalConfig.from_paper_code(dim=18)
        encoding = config.build()
        assert isinstance(encoding, BochnerNormal)
        assert encoding.dim == 18
        means = encoding.periods.frequencies() / 86_400
        expected = [10 ** (-power / (2 * math.pi)) for power in range(9)]
        assert means.tolist() == pytest.approx(expected)
        assert (encoding.spread.frequencies() / 86_400).tolist() == pytest.approx([1.0])
        assert not encoding.spread().requires_grad
