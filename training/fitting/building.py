"""A fresh recommender for a data set, told what it must know before it learns."""

import numpy as np
import torch
from numpy.typing import NDArray

from model.errors import TrainingError
from model.interfaces import CountingEncoder
from model.recommender import Recommender, RecommenderConfig
from training.config import RunConfig
from training.data.dataset import Dataset
from training.data.item_groups import assign_groups


def build_recommender(
    config: RunConfig, dataset: Dataset, is_training: NDArray[np.bool_]
) -> tuple[RecommenderConfig, Recommender]:
    """A recommender for the catalogue of a data set, its weights decided by the seed.

    Where its encoder tells groups of items apart, they are found among the training events.
    """
    described = RecommenderConfig(
        items=len(dataset.catalog),
        actions=dataset.actions if config.data.read_actions else (),
        ignored_actions=config.data.ignored_actions,
        item_bias=config.item_bias,
        encoder=config.encoder,
    )
    torch.manual_seed(config.fit.seed)
    recommender = described.build()
    item_groups = recommender.encoder.item_groups
    if item_groups is not None:
        marks = assign_groups(
            dataset, is_training, groups=item_groups.groups, source=config.data.groups
        )
        item_groups.set_membership(torch.from_numpy(marks.values))
        described = described.model_copy(update={"groups": marks.names})
    return described, recommender


def count_events(
    recommender: Recommender, dataset: Dataset, is_training: NDArray[np.bool_]
) -> None:
    """Fit a recommender whose encoder counts instead of descending a gradient.

    Raises:
        TrainingError: if it has no item bias, which holds what was counted.
    """
    encoder, bias = recommender.encoder, recommender.item_bias
    if not isinstance(encoder, CountingEncoder) or bias is None:
        raise TrainingError(
            "counting needs an encoder that counts and an item bias to keep the counts in, however "
            f"encoder={type(encoder).__name__}, item_bias={bias is not None}; set item_bias = true"
        )
    learned = np.flatnonzero(is_training & (dataset.rows > 0))
    counted_bias = encoder.fit_counts(
        *(
            torch.from_numpy(column[learned].astype(np.int64))
            for column in (dataset.rows, dataset.times, dataset.user_of)
        )
    )
    with torch.no_grad():
        bias.copy_(counted_bias)
