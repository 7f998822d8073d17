import pytest
import torch
from pydantic import ValidationError

from model.time_encodings.mercer import MercerConcat, MercerConfig, MercerFlex, MercerSum
from tests.contracts.time_encoding import TimeEncodingContract, stirred


class TestMercerConcat(TimeEncodingContract):
    config = MercerConfig(periods=4, degree=3)

    def test_every_period_has_a_constant_and_two_features_a_harmonic(self) -> None:
        assert self.config.build().dim == 4 * (2 * 3 + 1)

    def test_coefficients_stay_positive_wherever_training_takes_them(self) -> None:
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

    def test_a_feature_reads_the_harmonics_of_its_own_period_only(self) -> None:
        weight, _ = stirred(self.config.build()).read_out()
        for feature, row in enumerate(weight):
            own = torch.zeros_like(row, dtype=torch.bool)
            own[feature * 6 : feature * 6 + 6] = True
            assert (row[own] != 0).all()
            assert (row[~own] == 0).all()


class TestMercerFlex(TimeEncodingContract):
    config = MercerConfig(form="flex", periods=4, degree=3)
    starts_normalised = False

    def test_harmonics_start_where_those_of_a_sum_do(self) -> None:
        flex, together = self.config.build(), MercerConfig(form="sum", periods=4, degree=3).build()
        torch.testing.assert_close(flex.frequencies(), together.frequencies())

    def test_a_harmonic_has_a_period_of_its_own(self) -> None:
        encoding = self.config.build()
        assert isinstance(encoding, MercerFlex)
        before = encoding.frequencies().detach()
        with torch.no_grad():
            encoding.harmonic_periods.log_periods[5] += 1
        assert (encoding.frequencies() != before).nonzero().tolist() == [[5]]


class TestMercerOnTheSequenceOfThePaper(TimeEncodingContract):
    config = MercerConfig(periods=4, degree=3, spacing="paper")

    def test_nearly_all_periods_start_near_the_shortest(self) -> None:
        encoding = self.config.build()
        assert isinstance(encoding, MercerConcat)
        periods = encoding.base_periods() / self.config.shortest_period
        highest = self.config.longest_period / self.config.shortest_period
        expected = [highest / (highest - (highest - 1) ** (i / 4)) for i in (1, 2, 3, 4)]
        assert periods.tolist() == pytest.approx(expected)


def test_the_authors_start_at_powers_of_ten_per_second() -> None:
    config = MercerConfig.paper_code(dim=9, degree=2)
    per_second = config.build().frequencies().view(9, 2) / 86_400
    expected = [[10.0**-power, 2 * 10.0**-power] for power in range(9)]
    torch.testing.assert_close(per_second, torch.tensor(expected, dtype=torch.float64))
    assert config.form == "sum"
    assert config.build().dim == 9


def test_periods_start_log_uniform_between_their_bounds() -> None:
    encoding = MercerConfig(periods=3, shortest_period=0.1, longest_period=10.0).build()
    assert encoding.base_periods().tolist() == pytest.approx([0.1, 1.0, 10.0])


def test_periods_out_of_order_are_refused_by_value() -> None:
    with pytest.raises(ValueError, match=r"shortest=9\.0, longest=1\.0"):
        MercerConfig(shortest_period=9.0, longest_period=1.0).build()


def test_a_setting_it_does_not_know_is_refused() -> None:
    with pytest.raises(ValidationError, match="harmonics"):
        MercerConfig.model_validate({"harmonics": 4})
