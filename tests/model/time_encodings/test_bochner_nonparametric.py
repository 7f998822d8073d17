"""The non-parametric Bochner encodings."""

import math

import pytest
import torch

from model.time_encodings.bochner_nonparametric import BochnerNonparametricConfig
from tests.contracts.time_encoding import TimeEncodingContract, perturb


class TestBochnerNonparametric(TimeEncodingContract):
    config = BochnerNonparametricConfig(frequencies=6)

    def test_the_kernel_is_the_mean_cosine_over_the_frequencies(self) -> None:
        encoding = perturb(self.config.build())
        frequencies = encoding.frequencies().tolist()
        for interval in (0.0, 0.01, 3.0, 400.0):
            expected = sum(math.cos(w * interval) for w in frequencies) / len(frequencies)
            found = encoding.kernel(
                torch.tensor(interval + 5.0).double(), torch.tensor(5.0).double()
            )
            assert found.item() == pytest.approx(expected, abs=1e-5)

    def test_kernel_of_an_instant_with_itself_is_one_for_any_weights(self) -> None:
        encoding = perturb(self.config.build())
        times = torch.tensor([0.0, 17.0, 9000.0], dtype=torch.float64)
        torch.testing.assert_close(encoding.kernel(times, times), torch.ones(3), rtol=0, atol=1e-5)

    def test_frequencies_are_in_radians_per_day(self) -> None:
        daily = BochnerNonparametricConfig(frequencies=1, shortest_period=1, longest_period=1)
        whole_days = torch.tensor([0.0, 1.0, 365.0], dtype=torch.float64)
        torch.testing.assert_close(
            daily.build()(whole_days), torch.tensor([[1.0, 0.0]] * 3), rtol=0, atol=1e-5
        )


class TestBochnerFreeAmplitudes(TimeEncodingContract):
    config = BochnerNonparametricConfig(form="code", frequencies=6)
    starts_normalised = False

    def test_the_initial_kernel_is_stationary(self) -> None:
        fresh = self.config.build()
        stationary = BochnerNonparametricConfig(frequencies=6).build()
        times = torch.tensor([0.0, 0.4, 17.0, 900.0], dtype=torch.float64)
        pairs = times[:, None], times[None, :]
        torch.testing.assert_close(fresh.kernel(*pairs), 6 * stationary.kernel(*pairs))
        assert not fresh.is_stationary

    def test_each_frequency_has_a_sine_or_a_cosine(self) -> None:
        encoding = self.config.build()
        weight, bias = encoding.basis_projection()
        assert (weight != 0).sum(0).view(-1, 2).tolist() == [[0, 1]] * 6 + [[1, 0]] * 6
        assert not bias.any()

    def test_paper_code_starts_at_powers_of_ten_per_second(self) -> None:
        encoding = BochnerNonparametricConfig.from_paper_code(dim=18).build()
        assert encoding.dim == 18
        per_second = encoding.frequencies() / 86_400
        expected = torch.tensor([10.0**-power for power in range(9)], dtype=torch.float64)
        torch.testing.assert_close(per_second, expected.repeat(2))
