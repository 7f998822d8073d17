"""Weights of one recommender as the start of another, items matched by id."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from model.catalog import Catalog
from model.interfaces import TimeKernel
from model.recommender import Recommender

_ITEM_WEIGHTS = ("items.weight", "item_bias", "wide.repeats.item_bias", "encoder.kernel.offsets")
"""Weights with one row per catalog row; of the encoders, only SLRC owns any."""


class LearnedWeights(NamedTuple):
    """A trained recommender to continue from, and the catalog of its items."""

    recommender: Recommender
    catalog: Catalog


@torch.no_grad()
def copy_weights(
    learned: Recommender, learned_catalog: Catalog, recommender: Recommender, catalog: Catalog
) -> NDArray[np.bool_]:
    """Replace weights by those of a recommender of the same architecture; return the known rows.

    Items that it does not hold keep their own weights, and buffers such as the groups of items stay
    as they are; but the origin of a time kernel is that of its weights.
    """
    weights = learned.state_dict()
    for name, module in recommender.named_modules():
        if isinstance(module, TimeKernel):
            module.origin.copy_(weights[f"{name}.origin"])
    rows = torch.tensor([0, *(learned_catalog.find(known) or 0 for known in catalog.item_ids)])
    is_known = rows > 0
    for name, weight in recommender.named_parameters():
        source = weights[name].to(weight.device)
        if name in _ITEM_WEIGHTS:
            weight[is_known.to(weight.device)] = source[rows[is_known].to(weight.device)]
        else:
            weight.copy_(source)
    is_known[0] = True  # Padding.
    return is_known.numpy()
