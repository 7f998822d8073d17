import math

import pytest
import torch

from model.time_encodings.bochner_nonparametric import BochnerNonparametricConfig
from tests.contracts.time_encoding import TimeEncodingContract, stirred


class TestBochnerNonparametric(TimeEncodingContract):
    config = BochnerNonparametricConfig(frequencies=6)

    def test_the_kernel_is_the_mean_cosine_over_the_frequencies(self) -> None:
        encoding = stirred(self.config.build())
        frequencies = encoding.frequencies().tolist()
        for interval in (0.0, 0.01, 3.0, 400.0):
            expected = sum(math.cos(w * interval) for w in frequencies) / len(frequencies)
            found = encoding.kernel(
                torch.tensor(interval + 5.0).double(), torch.tensor(5.0).double()
            )
            assert found.item() == pytest.approx(expected, abs=1e-5)

    def test_the_kernel_of_an_instant_with_itself_stays_one_while_it_learns(self) -> None:
        encoding = stirred(self.config.build())
        times = torch.tensor([0.0, 17.0, 9000.0], dtype=torch.float64)
        torch.testing.assert_close(encoding.kernel(times, times), torch.ones(3), rtol=0, atol=1e-5)

    def test_frequencies_are_in_radians_per_day(self) -> None:
        daily = BochnerNonparametricConfig(frequencies=1, shortest_period=1, longest_period=1)
        whole_days = torch.tensor([0.0, 1.0, 365.0], dtype=torch.float64)
        torch.testing.assert_close(
            daily.build()(whole_days), torch.tensor([[1.0, 0.0]] * 3), rtol=0, atol=1e-5
        )
