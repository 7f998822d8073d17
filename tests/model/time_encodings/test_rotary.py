"""The rotary embedding of content: which planes turn by what."""

import math

import pytest
import torch
from pydantic import TypeAdapter, ValidationError

from model.encoders.sasrec import SASRecConfig
from model.time_encodings import TimeEncodingConfig
from model.time_encodings.damped_rotation import DampedRotationConfig
from model.time_encodings.rotary import RotaryConfig

CPU = torch.device("cpu")


def count_turning(config: RotaryConfig, *, heads: int, planes: int) -> list[tuple[int, int]]:
    """Count the planes of each head that turn by order, and by time."""
    order, time = config.build().frequencies(heads=heads, planes=planes, device=CPU)
    assert order.shape == time.shape == (heads, planes)
    assert order.dtype == time.dtype == torch.float64
    return list(zip((order > 0).sum(1).tolist(), (time > 0).sum(1).tolist(), strict=True))


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (RotaryConfig(), [(4, 4), (4, 4)]),
        (RotaryConfig(time_share=0.3), [(6, 2), (6, 2)]),
        (RotaryConfig(time_share=0), [(8, 0), (8, 0)]),
        (RotaryConfig(time_share=1), [(0, 8), (0, 8)]),
        (RotaryConfig(fusion="split_by_head"), [(8, 0), (0, 8)]),
        (RotaryConfig(fusion="early"), [(8, 8), (8, 8)]),
    ],
    ids=["by dimension", "less time", "order alone", "time alone", "by head", "early"],
)
def test_planes_turn_by_what_the_fusion_says(
    config: RotaryConfig, expected: list[tuple[int, int]]
) -> None:
    assert count_turning(config, heads=2, planes=8) == expected


def test_a_single_head_or_plane_turns_by_time() -> None:
    assert count_turning(RotaryConfig(fusion="split_by_head"), heads=1, planes=2) == [(0, 2)]
    assert count_turning(RotaryConfig(), heads=2, planes=1) == [(0, 1), (0, 1)]


def test_no_plane_turns_by_both_unless_fused_early() -> None:
    for fusion in ("split_by_dim", "split_by_head"):
        order, time = RotaryConfig(fusion=fusion).build().frequencies(heads=4, planes=6, device=CPU)
        assert ((order > 0) ^ (time > 0)).all()


def test_frequencies_of_order_are_those_of_rope() -> None:
    order, _ = RotaryConfig(time_share=0).build().frequencies(heads=1, planes=4, device=CPU)
    assert order[0].tolist() == pytest.approx([1.0, 0.1, 0.01, 0.001])


def test_periods_of_time_are_log_uniform_in_days() -> None:
    config = RotaryConfig(time_share=1, shortest_period=0.1, longest_period=10.0)
    _, time = config.build().frequencies(heads=1, planes=3, device=CPU)
    assert (2 * math.pi / time[0]).tolist() == pytest.approx([0.1, 1.0, 10.0])


def test_it_has_no_parameters_and_no_state() -> None:
    assert not RotaryConfig().build().state_dict()


def test_periods_out_of_order_are_rejected_with_their_values() -> None:
    with pytest.raises(ValueError, match=r"shortest=9\.0, longest=1\.0"):
        RotaryConfig(shortest_period=9.0, longest_period=1.0).build()


def test_a_share_of_more_than_all_is_rejected() -> None:
    with pytest.raises(ValidationError, match="time_share"):
        RotaryConfig(time_share=1.5)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (RotaryConfig(), "Rotary is a rotation of content without any"),
        (DampedRotationConfig(), "those of DampedRotation decay"),
    ],
    ids=["rotary", "damped"],
)
def test_sasrec_rejects_what_no_basis_shifts(config: TimeEncodingConfig, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SASRecConfig(time_encoding=config).build()


def test_the_config_survives_a_round_trip_through_json() -> None:
    adapter: TypeAdapter[TimeEncodingConfig] = TypeAdapter(TimeEncodingConfig)
    config = RotaryConfig(fusion="early", time_share=0.3)
    assert adapter.validate_json(config.model_dump_json()) == config
