"""For every encoding, rotation equals attention over the features of every interval."""

from typing import get_args

import pytest
import torch

from model.encoders.self_attention import SelfAttention, SelfAttentionConfig
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
from tests.model.encoders.reference_self_attention import largest_difference

ENCODINGS: dict[str, TimeEncodingConfig] = {
    "bochner_normal": BochnerNormalConfig(frequencies=6),
    "bochner_normal, linear": BochnerNormalConfig(form="linear", frequencies=6),
    "inverse CDF, perceptron": BochnerInverseCDFConfig(map="mlp", frequencies=6),
    "inverse CDF, residual": BochnerInverseCDFConfig(map="mlp_residual", frequencies=6),
    "inverse CDF, MAF": BochnerInverseCDFConfig(map="maf", frequencies=6),
    "inverse CDF, RealNVP": BochnerInverseCDFConfig(map="real_nvp", frequencies=6),
    "non-parametric": BochnerNonparametricConfig(frequencies=6),
    "non-parametric, as coded": BochnerNonparametricConfig(form="code", frequencies=6),
    "damped rotation": DampedRotationConfig(frequencies=6),
    "damped rotation, MovieLens": DampedRotationConfig.from_paper_code(),
    "damped rotation, KuaiRec": DampedRotationConfig.from_paper_code(seconds=1024, base=8),
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

# Encodings that are not listed are tested with their default settings.
for member in get_args(get_args(TimeEncodingConfig)[0]):
    if member not in {type(config) for config in ENCODINGS.values()}:
        ENCODINGS[member.__name__] = member()


@pytest.mark.parametrize("name", ENCODINGS)
def test_rotation_equals_features_of_every_interval(name: str) -> None:
    config = SelfAttentionConfig(
        dim=16, heads=2, layers=2, feed_forward=24, max_history=40, time_encoding=ENCODINGS[name]
    )
    torch.manual_seed(1)
    encoder = config.build().eval()
    assert isinstance(encoder, SelfAttention)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    assert largest_difference(encoder) <= 1e-5
