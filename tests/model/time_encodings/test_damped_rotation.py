"""The damped rotation: features, rates, and attention over pairs."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from pydantic import TypeAdapter
from torch import Tensor

from model.layers.damped_basis import DampedBasis, damp
from model.layers.fourier_basis import basis, conjugate
from model.time_encodings import TimeEncodingConfig
from model.time_encodings.calendar import PERIODS, CalendarEncoding
from model.time_encodings.damped_rotation import DampedRotation, DampedRotationConfig
from tests.contracts.time_encoding import TimeEncodingContract, perturb
from tests.model.time_encodings.by_definition import features_by_definition

MICROSECOND = 1e-6 / 86_400
DECADES = 80 * 365.25


class TestDampedRotation(TimeEncodingContract):
    config = DampedRotationConfig(
        frequencies=5, shortest_period=1 / 24, longest_period=1460.0, learn_frequencies=True
    )
    starts_normalised = False  # kernel(t, t) falls with t.

    def test_the_initial_kernel_at_the_query_time_is_one(self) -> None:
        origin = torch.zeros((), dtype=torch.float64)
        assert self.config.build().kernel(origin, origin).item() == pytest.approx(1, abs=1e-6)


class TestDampedRotationWithCalendar(TestDampedRotation):
    @pytest.fixture
    def encoding(self) -> CalendarEncoding:  # type: ignore[override]
        return CalendarEncoding(perturb(self.config.build()))

    def test_weights_survive_a_round_trip(self) -> None:  # type: ignore[override]
        """Of the encoder as a whole: the contract's copy has no calendar."""

    def test_the_calendar_does_not_decay(self, encoding: CalendarEncoding) -> None:
        rates = encoding.rates()
        assert rates is not None
        assert rates.tolist() == [*encoding.learned.rates().tolist(), *[0.0] * len(PERIODS)]


def test_a_feature_halves_while_its_angle_grows_by_a_radian() -> None:
    encoding = DampedRotationConfig(frequencies=3).build()
    for number, frequency in enumerate(encoding.frequencies().tolist()):
        pair = encoding(torch.tensor(1 / frequency, dtype=torch.float64))[2 * number :][:2]
        assert pair.norm().item() * math.sqrt(3) == pytest.approx(0.5, abs=1e-6)


def test_only_the_rates_are_learned_by_default() -> None:
    encoding = DampedRotationConfig().build()
    learned = [name for name, one in encoding.named_parameters() if one.requires_grad]
    assert learned == ["raw_decay"]


@pytest.mark.parametrize(
    ("config", "seconds"),
    [
        (DampedRotationConfig.from_paper_code(), [16**k for k in range(8)]),
        (
            DampedRotationConfig.from_paper_code("kuairec"),
            [2 ** (10 + 3 * k) for k in range(8)],
        ),
    ],
    ids=["MovieLens", "KuaiRec"],
)
def test_paper_code_has_geometric_periods(config: DampedRotationConfig, seconds: list[int]) -> None:
    assert (config.build().periods() * 86_400).tolist() == pytest.approx(seconds)
    adapter: TypeAdapter[TimeEncodingConfig] = TypeAdapter(TimeEncodingConfig)
    assert adapter.validate_json(config.model_dump_json()) == config


def test_paper_code_learns_rates_on_kuairec_alone() -> None:
    learned = {
        data: DampedRotationConfig.from_paper_code(data).build().raw_decay.requires_grad
        for data in ("movielens", "kuairec")
    }
    assert learned == {"movielens": False, "kuairec": True}


def test_pairs_equal_features_over_decades_and_microseconds() -> None:
    encoding = perturb(DampedRotationConfig.from_paper_code().build())
    assert isinstance(encoding, DampedRotation)
    times = [0.0, 0.0, MICROSECOND, 1.0, 1.0 + 1 / 86_400, 4000.0, 4000.5, DECADES]
    queries = [0.0, MICROSECOND, 2 * MICROSECOND, 1.0, 1.5, 4000.25, DECADES, DECADES]
    rates = encoding.rates()
    assert rates is not None
    largest = math.log(torch.finfo(torch.float64).max)
    assert rates.max() / 24 > largest, "an hour is a factor that float64 does not hold"
    damped = DampedBasis.build(
        torch.tensor([times], dtype=torch.float64),
        torch.tensor([queries], dtype=torch.float64),
        encoding.frequencies(),
        rates,
    )
    weight, bias = encoding.basis_projection()
    features = conjugate(damped.values) @ weight.T + bias
    assert features.isfinite().all()
    for number, query in enumerate(queries):
        for event, time in enumerate(times[: number + 1]):
            expected = torch.tensor(features_by_definition(encoding, query - time))
            torch.testing.assert_close(features[0, number, event], expected, rtol=0, atol=2e-6)


def test_a_common_shift_of_times_changes_no_pair() -> None:
    encoding = perturb(DampedRotationConfig(frequencies=6).build())
    rates = encoding.rates()
    assert rates is not None
    times = torch.rand(2, 9, dtype=torch.float64).cumsum(1) * 40
    query_times = times + 3.0
    here, there = (
        DampedBasis.build(times + by, query_times + by, encoding.frequencies(), rates).values
        for by in (0.0, 4096.0)
    )
    torch.testing.assert_close(here, there, rtol=0, atol=2e-6)


def test_gradients_of_rates_are_finite_where_all_has_decayed() -> None:
    encoding = DampedRotationConfig.from_paper_code("kuairec").build()
    features = encoding(torch.tensor([0.0, MICROSECOND, 1.0, DECADES], dtype=torch.float64))
    features.square().sum().backward()  # type: ignore[no-untyped-call]
    assert encoding.raw_decay.grad is not None
    assert encoding.raw_decay.grad.isfinite().all()


def test_gradients_of_products_equal_those_of_every_pair() -> None:
    encoding = perturb(DampedRotationConfig(frequencies=3, learn_frequencies=True).build())
    times = torch.rand(2, 6, dtype=torch.float64).cumsum(1) * 4
    query_times = times + torch.rand(2, 6, dtype=torch.float64)
    visible = torch.ones(6, 6, dtype=torch.bool).tril()
    coefficients = torch.randn(2, 2, 6, 6, requires_grad=True)
    leaves = [coefficients, *encoding.parameters()]

    def differentiate(multiply: Callable[[Tensor], Tensor], add: Callable[[Tensor], Tensor]) -> Any:
        weights = (multiply(coefficients) * visible).tanh()
        return torch.autograd.grad(add(weights * visible).square().sum(), leaves)

    def build() -> DampedBasis:
        rates = encoding.rates()
        assert rates is not None
        return DampedBasis.build(times, query_times, encoding.frequencies(), rates)

    damped, every = build(), build()
    intervals = query_times.unsqueeze(2) - times.unsqueeze(1)
    pairs = conjugate(damp(basis(intervals, every.frequencies), intervals, every.rates))
    torch.testing.assert_close(pairs, every.values, rtol=0, atol=1e-6)
    found = differentiate(damped.multiply, damped.sum)
    expected = differentiate(
        lambda of_queries: torch.einsum("bhqf,bqif->bhqi", of_queries, pairs),
        lambda of_events: torch.einsum("bhqi,bqif->bhqf", of_events, pairs),
    )
    for one, other in zip(found, expected, strict=True):
        assert other.abs().max() > 1e-3
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
