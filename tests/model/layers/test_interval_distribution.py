"""Distributions of the next interval: densities, survival functions and quantiles."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats
from scipy.integrate import quad
from torch import Tensor

from model.layers.interval_distribution import (
    Gompertz,
    IntervalDistribution,
    LogNormal,
    ZeroInflated,
    soft_clamp_max,
)

THIRTY_YEARS = 30 * 365.25


def number(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


def days(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def gompertz(log_rate: float, growth: float, time_scale: float) -> Gompertz:
    return Gompertz(number(log_rate), number(growth), time_scale)


def log_normal(mean: float, spread: float, time_scale: float) -> LogNormal:
    return LogNormal(number(mean), number(spread), time_scale)


scales = st.floats(0.02, 100)
growths = st.floats(-3, 3) | st.floats(-1e-5, 1e-5) | st.just(0.0)
gompertzes = st.builds(gompertz, st.floats(-2, 4), growths, scales)
log_normals = st.builds(log_normal, st.floats(-3, 5), st.floats(0.1, 2), scales)
either = gompertzes | log_normals


def density(of: IntervalDistribution, interval: float) -> float:
    return math.exp(of.log_density(number(interval)).item())


def integral(of: IntervalDistribution, start: float, end: float) -> float:
    """The integral of the density, by quadrature over the logarithm of the interval."""
    low, high = math.log1p(start), math.log1p(end)

    def integrand(x: float) -> float:
        return density(of, math.expm1(x)) * math.exp(x)

    middle = math.log1p(min(max(of.quantile(1e-3).item(), start), end))
    return sum(
        float(quad(integrand, *part, limit=200, epsabs=1e-7, epsrel=1e-5)[0])
        for part in ((low, middle), (middle, high))
    )


def event_probability(of: IntervalDistribution) -> float:
    """The probability that a next event occurs."""
    if isinstance(of, Gompertz) and of.growth < 0:
        return -math.expm1(math.exp(of.log_rate) / of.growth)
    return 1.0


@given(of=either)
def test_the_density_integrates_to_the_event_probability(
    of: IntervalDistribution,
) -> None:
    nearly_all = 0.9999 * event_probability(of)
    assert integral(of, 0, of.quantile(nearly_all).item()) == pytest.approx(nearly_all, rel=1e-3)


@given(of=either, probability=st.floats(0.05, 0.9))
def test_a_quantile_splits_the_density_at_its_probability(
    of: IntervalDistribution, probability: float
) -> None:
    if probability < event_probability(of):
        end = of.quantile(probability).item()
        assert integral(of, 0, end) == pytest.approx(probability, rel=1e-3)
        assert math.exp(of.log_survival(number(end))) == pytest.approx(1 - probability, rel=1e-6)
    else:
        assert of.quantile(probability).item() == math.inf


@given(of=either, probability=st.floats(0.05, 0.9), elapsed=st.floats(0, 50))
def test_conditional_quantiles_split_the_remaining_probability(
    of: IntervalDistribution, probability: float, elapsed: float
) -> None:
    quantile = of.quantile_after(probability, number(elapsed))
    assert quantile >= elapsed * (1 - 1e-12)
    log_survival = of.log_survival(number(elapsed)).item()
    # Further out, the difference of two large logarithms is inaccurate.
    if quantile.isfinite() and log_survival > -1000:
        left = of.log_survival(quantile).item() - log_survival
        assert left == pytest.approx(math.log1p(-probability), rel=1e-5, abs=1e-6)


def test_an_exponential_distribution_is_memoryless() -> None:
    steady = gompertz(-1.0, 0.0, 7.0)
    assert steady.quantile_after(0.5, number(40.0)).item() == pytest.approx(
        40 + steady.quantile(0.5).item()
    )


def test_gompertz_equals_scipys() -> None:
    intervals = days(0, 0.1, 1, 5, 12)
    ours = gompertz(-1.0, 0.4, 2.0)
    # c = rate / growth, and time in units of scale / growth.
    reference = stats.gompertz(math.exp(-1.0) / 0.4, scale=2.0 / 0.4)
    expected = reference.logpdf(intervals.numpy())
    assert ours.log_density(intervals).tolist() == pytest.approx(expected.tolist(), rel=1e-5)
    assert ours.quantile(0.3).item() == pytest.approx(reference.ppf(0.3), rel=1e-9)


def test_gompertz_without_growth_is_exponential() -> None:
    intervals = days(0, 0.1, 1, 5, 200)
    expected = stats.expon(scale=3 * math.e).logpdf(intervals.numpy())
    for growth in (0.0, 1e-12, -1e-12):
        found = gompertz(-1.0, growth, 3.0).log_density(intervals)
        assert found.tolist() == pytest.approx(expected.tolist(), rel=1e-5)


def test_the_log_normal_is_a_truncated_normal_of_the_logarithm() -> None:
    intervals = days(0, 0.1, 1, 5, 200)
    ours = log_normal(0.5, 0.8, 3.0)
    logs = (intervals / 3.0).log1p()
    truncated = stats.truncnorm(-0.5 / 0.8, math.inf, loc=0.5, scale=0.8)
    expected = torch.from_numpy(truncated.logpdf(logs.numpy())) - (intervals + 3.0).log()
    assert ours.log_density(intervals).tolist() == pytest.approx(expected.tolist(), rel=1e-5)
    assert ours.quantile(0.3).item() == pytest.approx(3 * math.expm1(truncated.ppf(0.3)), rel=1e-9)


def test_quantiles_are_accurate_far_into_the_tail() -> None:
    narrow = log_normal(0.0, 0.05, 1.0)
    elapsed = number(THIRTY_YEARS)
    log_survival = special.log_ndtr(-math.log1p(THIRTY_YEARS) / 0.05) + math.log(0.5)
    expected = math.expm1(-0.05 * special.ndtri_exp(log_survival))
    found = narrow.quantile_after(0.5, elapsed).item()
    assert found - THIRTY_YEARS == pytest.approx(expected - THIRTY_YEARS, rel=1e-6)
    assert found > THIRTY_YEARS


@pytest.mark.parametrize("growth", [-40.0, -1e-7, 0.0, 1e-7, 40.0])
@pytest.mark.parametrize("log_rate", [-60.0, 0.0, 60.0])
def test_gompertz_and_its_gradients_are_finite(log_rate: float, growth: float) -> None:
    parameters = [number(log_rate).requires_grad_(), number(growth).requires_grad_()]
    of = Gompertz(parameters[0], parameters[1], 0.5)
    assert_finite(of, parameters)


@pytest.mark.parametrize("spread", [0.01, 1.0, 50.0])
@pytest.mark.parametrize("mean", [-60.0, 0.0, 60.0])
def test_the_log_normal_and_its_gradients_are_finite(mean: float, spread: float) -> None:
    parameters = [number(mean).requires_grad_(), number(spread).requires_grad_()]
    of = LogNormal(parameters[0], parameters[1], 0.5)
    assert_finite(of, parameters)


def assert_finite(of: IntervalDistribution, parameters: list[Tensor]) -> None:
    for interval in (0.0, 1e-9, 1.0, THIRTY_YEARS):
        log_density = of.log_density(number(interval))
        assert log_density.isfinite()
        for gradient in torch.autograd.grad(log_density, parameters):
            assert gradient.isfinite()
    for probability in (0.0, 0.5, 0.999):
        assert not of.quantile(probability).isnan()


def test_the_growth_has_a_gradient_at_zero() -> None:
    growth = number(0.0).requires_grad_()
    log_density = Gompertz(number(0.2), growth, 1.0).log_density(number(3.0))
    (gradient,) = torch.autograd.grad(log_density, growth)
    # The derivative of w d - exp(a) (d + w d^2/2 + ...) by w.
    assert gradient.item() == pytest.approx(3 - math.exp(0.2) * 4.5, rel=1e-6)


def test_positions_and_intervals_broadcast() -> None:
    means = torch.zeros(2, 3, dtype=torch.float64)
    for of in (Gompertz(means, number(0.1), 1.0), LogNormal(means, number(1.0), 1.0)):
        assert isinstance(of, IntervalDistribution)
        assert of.log_density(torch.ones_like(means)).shape == (2, 3)
        assert of.quantile(0.5).shape == (2, 3)


def test_a_soft_clamp_keeps_values_well_below_the_bound() -> None:
    values = torch.tensor([-50.0, 0.0, 9.0, 10.0, 100.0], requires_grad=True)
    bounded = soft_clamp_max(values, 10.0)
    assert bounded.tolist()[:2] == pytest.approx([-50.0, 0.0], abs=1e-4)
    assert (bounded <= 10).all()
    assert (bounded.diff() >= 0).all()


# A point mass at zero


def zero_inflated(zero_logit: float, positive: Gompertz | LogNormal) -> ZeroInflated:
    return ZeroInflated(number(zero_logit), positive)


mixtures = st.builds(zero_inflated, st.floats(-4, 4), either)


@given(of=mixtures)
def test_the_likelihood_of_zero_and_of_the_rest_sum_to_one(of: ZeroInflated) -> None:
    nearly_all = 0.9999 * event_probability(of.positive)
    above = integral(of, 0, of.positive.quantile(nearly_all).item())
    at_zero = math.exp(of.log_density(number(0.0)).item())
    assert at_zero == pytest.approx(of.zero_probability.item())
    assert above / nearly_all + at_zero == pytest.approx(1, rel=1e-3)
    # "No event within 0 days" leaves all but those at zero.
    assert math.exp(of.log_survival(number(0.0))) == pytest.approx(1 - at_zero)


@given(of=mixtures, probability=st.floats(0.01, 0.95))
def test_quantiles_up_to_the_probability_of_zero_are_zero(
    of: ZeroInflated, probability: float
) -> None:
    quantile = of.quantile(probability).item()
    at_zero = of.zero_probability.item()
    if probability <= at_zero:
        assert quantile == 0
    elif probability - at_zero < 0.999 * (1 - at_zero) * event_probability(of.positive):
        assert quantile > 0
        assert math.exp(of.log_survival(number(quantile))) == pytest.approx(
            1 - probability, rel=1e-5
        )


@given(of=mixtures, probability=st.floats(0.05, 0.9), elapsed=st.floats(1e-5, 50))
def test_after_a_wait_the_point_mass_has_no_part(
    of: ZeroInflated, probability: float, elapsed: float
) -> None:
    waited = number(elapsed)
    found = of.quantile_after(probability, waited)
    assert torch.equal(found, of.positive.quantile_after(probability, waited))
    further = days(elapsed, elapsed + 1, elapsed + 30)
    ours = of.log_density(further) - of.log_survival(waited)
    plain = of.positive.log_density(further) - of.positive.log_survival(waited)
    assert ours.tolist() == pytest.approx(plain.tolist(), rel=1e-9, abs=1e-9)


def test_quantiles_of_several_positions_have_their_own_mass() -> None:
    of = ZeroInflated(days(-2.0, 0.0, 2.0), gompertz(0.0, 0.1, 1.0))
    quantiles = of.quantile(0.5)
    for position, zero_logit in enumerate((-2.0, 0.0, 2.0)):
        alone = zero_inflated(zero_logit, gompertz(0.0, 0.1, 1.0))
        assert quantiles[position] == alone.quantile(0.5)
    assert quantiles[0] > 0
    assert quantiles[1:].tolist() == [0, 0]


def test_half_zeros_have_a_bounded_likelihood() -> None:
    """Of 500 zeros and 500 waits of 3 days, the best fit says so, and not that events are fast."""
    zero_logit, log_rate = number(3.0).requires_grad_(), number(0.0).requires_grad_()
    intervals = days(*([0.0] * 500 + [3.0] * 500))
    optimizer = torch.optim.Adam([zero_logit, log_rate], lr=0.05)
    for _ in range(600):
        of = ZeroInflated(zero_logit, Gompertz(log_rate, number(0.0), 1.0))
        loss = -of.log_density(intervals).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    assert zero_logit.item() == pytest.approx(0, abs=0.02)
    assert math.exp(log_rate.item()) == pytest.approx(1 / 3, rel=0.02)
    assert loss.item() == pytest.approx(math.log(2) + 0.5 * (1 + math.log(3)), abs=1e-3)


@pytest.mark.parametrize("zero_logit", [-800.0, 0.0, 800.0])
def test_the_mixture_and_its_gradients_are_finite(zero_logit: float) -> None:
    parameters = [number(value).requires_grad_() for value in (zero_logit, 0.3, 0.1)]
    assert_finite(
        ZeroInflated(parameters[0], Gompertz(parameters[1], parameters[2], 0.5)), parameters
    )


def test_a_density_alone_has_no_point_mass() -> None:
    of = gompertz(0.0, 0.0, 1.0)
    assert of.zero_probability == 0
    assert of.later is of
