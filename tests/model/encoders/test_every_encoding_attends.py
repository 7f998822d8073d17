"""For every encoding, rotation equals attention over the features of every interval."""

from typing import get_args

import pytest
import torch

from model.encoders.self_attention import SelfAttention, SelfAttentionConfig
from model.history import Event, Query
from model.time_encodings import TimeEncodingConfig
from model.time_encodings.bochner_inverse_cdf import BochnerInverseCDFConfig
from model.time_encodings.bochner_nonparametric import BochnerNonparametricConfig
from model.time_encodings.bochner_normal import BochnerNormalConfig
from model.time_encodings.damped_rotation import DampedRotationConfig
from model.time_encodings.mercer import MercerConfig
from model.time_encodings.nonstationary import NonstationaryConfig
from model.time_encodings.positional import PositionalConfig
from model.time_encodings.rotary import RotaryConfig
from model.time_encodings.time2vec import Time2VecConfig
from tests.contracts.histories import START, YEAR, collate_queries, draw_queries
from tests.contracts.sequence_encoder import vectors
from tests.model.encoders.reference_self_attention import largest_difference

ENCODINGS: dict[str, TimeEncodingConfig] = {
    "bochner_normal": BochnerNormalConfig(frequencies=6),
    "bochner_normal, log": BochnerNormalConfig(form="log", frequencies=6),
    "inverse CDF, perceptron": BochnerInverseCDFConfig(map="mlp", frequencies=6),
    "inverse CDF, residual": BochnerInverseCDFConfig(map="mlp_residual", frequencies=6),
    "inverse CDF, MAF": BochnerInverseCDFConfig(map="maf", frequencies=6),
    "inverse CDF, RealNVP": BochnerInverseCDFConfig(map="real_nvp", frequencies=6),
    "non-parametric": BochnerNonparametricConfig(frequencies=6),
    "non-parametric, as coded": BochnerNonparametricConfig(form="code", frequencies=6),
    "damped rotation": DampedRotationConfig(frequencies=6),
    "damped rotation, MovieLens": DampedRotationConfig.from_paper_code(),
    "damped rotation, KuaiRec": DampedRotationConfig.from_paper_code("kuairec"),
    "rotary, by dimension": RotaryConfig(time_share=0.4),
    "rotary, by head": RotaryConfig(fusion="split_by_head"),
    "rotary, early fusion": RotaryConfig(fusion="early"),
    "rotary, time alone": RotaryConfig(time_share=1),
    "rotary, order alone": RotaryConfig(time_share=0),
    "mercer, concat": MercerConfig(periods=3, degree=3),
    "mercer, sum": MercerConfig(form="sum", periods=6, degree=3),
    "mercer, flex": MercerConfig(form="flex", periods=6, degree=3),
    "mercer, the paper's sequence": MercerConfig(spacing="paper", periods=3, degree=3),
    "time2vec": Time2VecConfig(frequencies=6),
    "time2vec, normal start": Time2VecConfig(start="normal", frequencies=6),
    "nonstationary": NonstationaryConfig(components=3),
    "positional": PositionalConfig(frequencies=6),
}

EXACT = [name for name in ENCODINGS if name.startswith(("damped", "rotary"))]
"""Of fixed frequencies, which no perturbed weight moves: also exact over decades."""

# Encodings that are not listed are tested with their default settings.
for member in get_args(get_args(TimeEncodingConfig)[0]):
    if member not in {type(config) for config in ENCODINGS.values()}:
        ENCODINGS[member.__name__] = member()


def build(name: str) -> SelfAttention:
    """Build an encoder with all parameters perturbed."""
    config = SelfAttentionConfig(
        dim=16, heads=2, layers=2, feed_forward=24, max_history=40, time_encoding=ENCODINGS[name]
    )
    torch.manual_seed(1)
    encoder = config.build().eval()
    assert isinstance(encoder, SelfAttention)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return encoder


@pytest.mark.parametrize("name", ENCODINGS)
def test_rotation_equals_features_of_every_interval(name: str) -> None:
    assert largest_difference(build(name)) <= 1e-5


@pytest.mark.parametrize("name", EXACT)
def test_decades_and_microseconds_equal_the_reference(name: str) -> None:
    def history(*times: int) -> Query:
        events = tuple(Event(f"i{n}", START + time) for n, time in enumerate(times[:-1]))
        return Query(events, START + times[-1])

    assert (
        largest_difference(
            build(name),
            history(0, 0, 1, 2, 3, 10**6, 10**6 + 1, 80 * YEAR, 80 * YEAR, 80 * YEAR + 1),
            history(0, 40 * YEAR, 40 * YEAR + 1, 80 * YEAR, 80 * YEAR),
            history(*[0] * 7),
            history(0, 1),
            history(0, 80 * YEAR),
        )
        <= 1e-5
    )


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("days", [1 / 1024, 1.0, 40_000.0, -40_000.0])
def test_a_common_shift_of_all_times_changes_nothing(name: str, days: float) -> None:
    encoder = build(name)
    batch = collate_queries(*draw_queries(9, 4, seed=2))
    shifted = batch._replace(times=batch.times + days, query_times=batch.query_times + days)
    items = vectors(encoder, batch)
    for found, expected in zip(encoder(shifted, items), encoder(batch, items), strict=True):
        if isinstance(expected, torch.Tensor):
            torch.testing.assert_close(found, expected, rtol=0, atol=2e-5)
