"""The three forms of the Mercer encoding."""

import pytest
import torch
from pydantic import ValidationError

from model.time_encodings.mercer import MercerConcat, MercerConfig, MercerFlex, MercerSum
from tests.contracts.time_encoding import TimeEncodingContract, perturb


class TestMercerConcat(TimeEncodingContract):
    config = MercerConfig(periods=4, degree=3)

    def test_a_period_has_a_constant_and_two_features_per_harmonic(self) -> None:
        assert self.config.build().dim == 4 * (2 * 3 + 1)

    def test_coefficients_are_positive_for_any_parameters(self) -> None:
        encoding = self.config.build()
        assert isinstance(encoding, MercerConcat)
        with torch.no_grad():
            encoding.raw_coefficients.fill_(-20.0)
        assert (encoding.coefficients() > 0).all()

    def test_one_period_repeats_after_twice_its_length(self) -> None:
        # cos(j pi x / p) has the common period 2 p, as in the paper's eq. 6.
        encoding = MercerConfig(periods=1, shortest_period=7.0, longest_period=7.0).build()
        times = torch.linspace(0, 14, 9, dtype=torch.float64)
        torch.testing.assert_close(encoding(times + 14), encoding(times), rtol=0, atol=1e-6)
        assert (encoding(times + 7) - encoding(times)).abs().max() > 0.1


class TestMercerSum(TimeEncodingContract):
    config = MercerConfig(form="sum", periods=4, degree=3)
    starts_normalised = False

    def test_every_period_is_one_feature(self) -> None:
        encoding = self.config.build()
        assert isinstance(encoding, MercerSum)
        assert encoding.dim == 4

    def test_a_feature_sums_the_harmonics_of_its_own_period(self) -> None:
        weight, _ = perturb(self.config.build()).basis_projection()
        for feature, row in enumerate(weight):
            own = torch.zeros_like(row, dtype=torch.bool)
            own[feature * 6 : feature * 6 + 6] = True
            assert (row[own] != 0).all()
            assert (row[~own] == 0).all()


class TestMercerFlex(TimeEncodingContract):
    config = MercerConfig(form="flex", periods=4, degree=3)
    starts_normalised = False

    def test_initial_frequencies_equal_those_of_the_sum(self) -> None:
        flex, summed = self.config.build(), MercerConfig(form="sum", periods=4, degree=3).build()
        torch.testing.assert_close(flex.frequencies(), summed.frequencies())

    def test_every_harmonic_has_its_own_period(self) -> None:
        encoding = self.config.build()
        assert isinstance(encoding, MercerFlex)
        before = encoding.frequencies().detach()
        with torch.no_grad():
            encoding.harmonic_periods.log_periods[5] += 1
        assert (encoding.frequencies() != before).nonzero().tolist() == [[5]]


class TestMercerWithPaperSpacing(TimeEncodingContract):
    config = MercerConfig(periods=4, degree=3, spacing="paper")

    def test_initial_periods_follow_the_papers_sequence(self) -> None:
        encoding = self.config.build()
        assert isinstance(encoding, MercerConcat)
        periods = encoding.base_periods() / self.config.shortest_period
        highest = self.config.longest_period / self.config.shortest_period
        expected = [highest / (highest - (highest - 1) ** (i / 4)) for i in (1, 2, 3, 4)]
        assert periods.tolist() == pytest.approx(expected)


def test_paper_code_starts_at_powers_of_ten_per_second() -> None:
    config = MercerConfig.from_paper_code(dim=9, degree=2)
    per_second = config.build().frequencies().view(9, 2) / 86_400
    expected = [[10.0**-power, 2 * 10.0**-power] for power in range(9)]
    torch.testing.assert_close(per_second, torch.tensor(expected, dtype=torch.float64))
    assert config.form == "sum"
    assert config.build().dim == 9


def test_initial_periods_are_log_uniform_between_the_bounds() -> None:
    encoding = MercerConfig(periods=3, shortest_period=0.1, longest_period=10.0).build()
    assert encoding.base_periods().tolist() == pytest.approx([0.1, 1.0, 10.0])


def test_periods_out_of_order_are_rejected_with_their_values() -> None:
    with pytest.raises(ValueError, match=r"shortest=9\.0, longest=1\.0"):
        MercerConfig(shortest_period=9.0, longest_period=1.0).build()


def test_an_unknown_setting_is_rejected() -> None:
    with pytest.raises(ValidationError, match="harmonics"):
        MercerConfig.model_validate({"harmonics": 4})
