"""The contract of every time encoding: inherit, set a config, add specific tests."""

from typing import ClassVar

import pytest
import torch
from pydantic import TypeAdapter
from safetensors.torch import load, save
from torch import Tensor, nn

from model.interfaces import RandomFeatures, TimeEncoding
from model.time_encodings import TimeEncodingConfig
from tests.model.time_encodings.by_definition import features_by_definition

SECOND = 1 / 86_400
THIRTY_YEARS = 30 * 365.25
INTERVALS = [0.0, SECOND, 0.3, 1.0, 6.5, 100.25, 3652.5, THIRTY_YEARS]


def perturb(encoding: TimeEncoding) -> TimeEncoding:
    """Move every parameter off its initial value."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in encoding.parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
            parameter.add_(0.3 * noise)
    return encoding


class TimeEncodingContract:
    config: ClassVar[TimeEncodingConfig]
    starts_normalised: ClassVar[bool] = True
    """Whether the initial encoding has kernel(t, t) = 1."""

    @pytest.fixture
    def encoding(self) -> TimeEncoding:
        return perturb(self.config.build())

    @pytest.fixture
    def intervals(self) -> Tensor:
        return torch.tensor(INTERVALS, dtype=torch.float64)

    def test_features_have_the_shape_of_the_intervals_and_dim(self, encoding: TimeEncoding) -> None:
        for shape in [(), (5,), (2, 3), (2, 3, 4)]:
            assert encoding(torch.zeros(shape, dtype=torch.float64)).shape == (*shape, encoding.dim)

    def test_features_are_float32_and_frequencies_float64(
        self, encoding: TimeEncoding, intervals: Tensor
    ) -> None:
        assert encoding(intervals).dtype == torch.float32
        assert encoding.frequencies().dtype == torch.float64

    def test_features_follow_the_formula(self, encoding: TimeEncoding, intervals: Tensor) -> None:
        expected = torch.tensor(
            [features_by_definition(encoding, interval) for interval in INTERVALS],
            dtype=torch.float64,
        )
        assert (encoding(intervals).double() - expected).abs().max() < 2e-6

    def test_features_are_finite_up_to_thirty_years(
        self, encoding: TimeEncoding, intervals: Tensor
    ) -> None:
        assert encoding(intervals).isfinite().all()
        assert encoding(-intervals).isfinite().all()

    def test_a_batch_equals_single_intervals(
        self, encoding: TimeEncoding, intervals: Tensor
    ) -> None:
        one_by_one = torch.stack([encoding(interval) for interval in intervals])
        torch.testing.assert_close(encoding(intervals), one_by_one, rtol=0, atol=1e-6)

    def test_the_kernel_is_the_inner_product_of_features(
        self, encoding: TimeEncoding, intervals: Tensor
    ) -> None:
        other = intervals.flip(0)
        expected = [
            sum(a * b for a, b in zip(*pair, strict=True))
            for pair in zip(encoding(intervals).tolist(), encoding(other).tolist(), strict=True)
        ]
        assert encoding.kernel(intervals, other).tolist() == pytest.approx(expected, abs=1e-5)

    def test_the_kernel_is_positive_semi_definite(self, encoding: TimeEncoding) -> None:
        times = torch.rand(40, dtype=torch.float64) * 800
        gram = encoding.kernel(times[:, None], times[None, :]).double()
        assert torch.linalg.eigvalsh((gram + gram.T) / 2).min() > -1e-5 * gram.diagonal().max()

    def test_the_kernel_is_stationary_iff_declared(self, encoding: TimeEncoding) -> None:
        times = torch.rand(20, dtype=torch.float64) * 30
        kernel = encoding.kernel(times[:, None], times[None, :])
        shifted = encoding.kernel(times[:, None] + 3.7, times[None, :] + 3.7)
        is_stationary = bool((kernel - shifted).abs().max() < 1e-4 * kernel.abs().max())
        assert is_stationary == encoding.is_stationary

    def test_the_kernel_equals_the_sum_over_its_spectrum(
        self, encoding: TimeEncoding, intervals: Tensor
    ) -> None:
        if not encoding.is_stationary:
            pytest.skip("its kernel is not stationary")
        spectrum = encoding.spectrum()
        constant = encoding.basis_projection().bias.square().sum()
        waves = (intervals[:, None] * spectrum.frequencies).cos()
        expected = constant + (spectrum.power * waves).sum(-1)
        psi = encoding.kernel(intervals, torch.zeros_like(intervals))
        torch.testing.assert_close(psi.double(), expected, rtol=0, atol=1e-5)

    def test_the_initial_kernel_of_an_instant_with_itself_is_one(self, intervals: Tensor) -> None:
        if not self.starts_normalised:
            return
        kernel = self.config.build().kernel(intervals, intervals)
        torch.testing.assert_close(kernel, torch.ones_like(kernel), rtol=0, atol=1e-5)

    def test_a_gradient_reaches_every_parameter(
        self, encoding: TimeEncoding, intervals: Tensor
    ) -> None:
        features = encoding(intervals)
        (features * torch.randn(features.shape)).sum().backward()  # type: ignore[no-untyped-call]
        for name, parameter in encoding.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.isfinite().all(), name
            assert (parameter.grad != 0).all(), name

    def test_fixed_frequencies_have_no_gradient(self) -> None:
        fields = type(self.config).model_fields
        switches = [name for name in fields if name.startswith("learn_")]
        assert switches
        fixed = self.config.model_copy(update=dict.fromkeys(switches, False)).build()
        assert not fixed.frequencies().requires_grad
        assert self.config.build().frequencies().requires_grad

    def test_weights_survive_a_round_trip(self, encoding: TimeEncoding, intervals: Tensor) -> None:
        copy: nn.Module = self.config.build()
        copy.load_state_dict(load(save(encoding.state_dict())))
        assert torch.equal(copy(intervals), encoding(intervals))

    def test_only_resampling_changes_the_draws(
        self, encoding: TimeEncoding, intervals: Tensor
    ) -> None:
        before = encoding(intervals)
        assert torch.equal(encoding(intervals), before)
        if not isinstance(encoding, RandomFeatures):
            pytest.skip("it has no random draws")
        encoding.resample()
        assert not torch.equal(encoding(intervals), before)
        torch.manual_seed(5)
        encoding.resample()
        resampled = encoding(intervals)
        torch.manual_seed(5)
        encoding.resample()
        assert torch.equal(encoding(intervals), resampled)

    def test_the_config_survives_a_round_trip_through_json(self) -> None:
        adapter: TypeAdapter[TimeEncodingConfig] = TypeAdapter(TimeEncodingConfig)
        assert adapter.validate_json(self.config.model_dump_json()) == self.config
