"""Time2Vec: the linear term and the sines."""

import math

import pytest
import torch

from model.layers.fourier_basis import basis, rotate
from model.time_encodings.time2vec import Time2VecConfig
from tests.contracts.time_encoding import SECOND, THIRTY_YEARS, TimeEncodingContract, perturb

EIGHTY_YEARS = 80 * 365.25


class TestTime2Vec(TimeEncodingContract):
    config = Time2VecConfig(frequencies=5, longest_period=THIRTY_YEARS)
    starts_normalised = False

    def test_the_first_feature_is_linear_from_a_second_to_80_years(self) -> None:
        encoding = perturb(Time2VecConfig(frequencies=2).build())
        with torch.no_grad():
            encoding.intercept.zero_()
        slope = encoding.slope.item() / 1460
        intervals = torch.logspace(math.log10(SECOND), math.log10(EIGHTY_YEARS), 400).double()
        straight = slope * intervals
        error = (encoding(intervals)[:, 0].double() - straight) / straight
        assert error.abs().max() < 3e-7

    def test_the_linear_term_is_linear_after_a_rotation(self) -> None:
        # As in attention: the basis at an event, rotated by the query time.
        encoding = Time2VecConfig(frequencies=1).build()
        weight, _ = encoding.basis_projection()
        events = torch.tensor([0.0, 0.5, 3000.0, 3649.0, 3650.0 - SECOND], dtype=torch.float64)
        query = torch.tensor([3650.0], dtype=torch.float64)
        frequencies = encoding.frequencies()
        rotated = rotate(basis(events, frequencies), basis(query, frequencies))
        linear = (rotated @ weight.T)[:, 0]
        torch.testing.assert_close(linear, ((query - events) / 1460).float(), rtol=0, atol=1e-6)

    def test_a_phase_shifts_its_sine(self) -> None:
        weekly = Time2VecConfig(frequencies=1, shortest_period=7, longest_period=7).build()
        days = torch.linspace(0, 7, 15, dtype=torch.float64)
        with torch.no_grad():
            weekly.phases.fill_(math.pi / 2)
        expected = (2 * math.pi / 7 * days).cos().float()
        torch.testing.assert_close(weekly(days)[:, 1], expected, rtol=0, atol=1e-6)

    def test_the_linear_term_is_initially_one_at_the_longest_period(self) -> None:
        features = self.config.build()(torch.tensor([0.0, THIRTY_YEARS]).double())
        torch.testing.assert_close(features[:, 0], torch.tensor([0.0, 1.0]))


class TestTime2VecWithNormalStart(TimeEncodingContract):
    config = Time2VecConfig(frequencies=5, start="normal", longest_period=THIRTY_YEARS)
    starts_normalised = False

    def test_initial_frequencies_are_half_normal(self) -> None:
        frequencies = Time2VecConfig.from_paper_code(frequencies=20_000).build().frequencies()[1:]
        assert frequencies.mean().item() == pytest.approx(math.sqrt(2 / math.pi), rel=0.02)
        assert frequencies.square().mean().item() == pytest.approx(1.0, rel=0.03)
