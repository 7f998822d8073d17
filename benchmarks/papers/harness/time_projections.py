"""Undoes the scaling of the initial projections of time, to measure what it is worth."""

import torch

from model.catalog import Catalog
from model.interfaces import TimeEncoding
from model.layers.time_aware_attention import TimeProjection
from model.recommender import Recommender, RecommenderConfig


def unscale_time_projections(
    config: RecommenderConfig,  # noqa: ARG001
    recommender: Recommender,
    catalog: Catalog,  # noqa: ARG001
) -> None:
    """Divide the projections of time by the factor of `initialise_time_projections`.

    They then start as if every feature of time had unit variance. Nothing changes in an encoder
    without features of time.
    """
    encoding = getattr(recommender.encoder, "time_encoding", None)
    if not isinstance(encoding, TimeEncoding) or encoding.power() <= 0:
        return
    for projection in recommender.encoder.modules():
        if isinstance(projection, TimeProjection):
            time_dim = projection.weight.shape[1]
            with torch.no_grad():
                projection.weight.mul_((encoding.power() / time_dim) ** 0.5)
