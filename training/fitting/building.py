"""Construction of recommenders for a data set, and fitting by counts."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.errors import TrainingError
from model.interfaces import CountingEncoder, MeasuredStart, TimeKernel
from model.recommender import Recommender, RecommenderConfig
from training.config import RunConfig, SoftmaxConfig
from training.data.dataset import Dataset
from training.data.event_counts import count_pairs, count_training_events
from training.data.item_groups import assign_groups
from training.fitting.item_vectors import fold_in_item_vectors, initialise_item_vectors
from training.fitting.losses.pairwise import compute_calibrated_score
from training.fitting.weights import LearnedWeights, copy_weights


def build_recommender(
    config: RunConfig,
    dataset: Dataset,
    is_training: NDArray[np.bool_],
    *,
    learned: LearnedWeights | None = None,
) -> tuple[RecommenderConfig, Recommender]:
    """Build a recommender for the catalog of a data set.

    Its weights are those of `learned`, or decided by the seed.

    If its encoder uses groups of items, they are assigned from the training events.

    Args:
        learned: a recommender of the same architecture to continue from. If item vectors start from
            pairs, those of items that it does not hold are means of the items they are paired with.

    Raises:
        TrainingError: if settings contradict each other, or the data set has too few groups.
    """
    described = RecommenderConfig(
        items=len(dataset.catalog),
        actions=dataset.actions if config.data.read_actions else (),
        ignored_actions=config.data.ignored_actions,
        item_bias=config.item_bias,
        time_zone=config.data.time_zone,
        wide=config.wide,
        encoder=config.encoder,
    )
    torch.manual_seed(config.fit.seed)
    try:
        recommender = described.build()
    except ValueError as error:
        raise TrainingError(f"settings of the recipe contradict each other: {error}") from error
    item_groups = recommender.encoder.item_groups
    if item_groups is not None:
        membership = assign_groups(
            dataset, is_training, groups=item_groups.groups, source=config.data.groups
        )
        item_groups.set_membership(torch.from_numpy(membership.values))
        described = described.model_copy(update={"groups": membership.names})
    if recommender.item_bias is not None and not isinstance(config.fit.loss, SoftmaxConfig):
        with torch.no_grad():
            recommender.item_bias[1:] = compute_calibrated_score(
                config.fit.loss, len(dataset.catalog)
            )
    for module in recommender.modules():
        if isinstance(module, TimeKernel):
            module.origin.fill_(int(dataset.times[is_training].min()))
    if isinstance(recommender.encoder, MeasuredStart):
        recommender.encoder.start_from(*_select_training_events(dataset, is_training))
    starts_from_pairs = config.fit.item_vectors == "co_occurrence"
    is_known = None if learned is None else copy_weights(*learned, recommender, dataset.catalog)
    if recommender.wide is not None or starts_from_pairs:
        pairs = count_pairs(dataset, is_training, config.data.predict)
        if recommender.wide is not None:
            recommender.counts = count_training_events(dataset, is_training, pairs)
        if starts_from_pairs:
            vectors = recommender.items.weight
            if is_known is None:
                initialise_item_vectors(vectors, pairs, seed=config.fit.seed)
            else:
                fold_in_item_vectors(vectors, pairs, ~is_known)
    return described, recommender


def count_events(
    recommender: Recommender, dataset: Dataset, is_training: NDArray[np.bool_]
) -> None:
    """Fit a recommender whose encoder is fitted by counting events.

    Raises:
        TrainingError: if it has no item bias, which holds the counts, or a wide part, whose weights
            are not fitted by counting.
    """
    encoder, bias = recommender.encoder, recommender.item_bias
    if recommender.wide is not None:
        raise TrainingError(
            "the weights of a wide part are learned, but "
            f"{type(encoder).__name__} is fitted by counting events only; choose another encoder, "
            "or leave the wide part out"
        )
    if not isinstance(encoder, CountingEncoder) or bias is None:
        raise TrainingError(
            "counting needs an encoder fitted by counts and an item bias that holds them, however "
            f"encoder={type(encoder).__name__}, item_bias={bias is not None}; set item_bias = true"
        )
    counted_bias = encoder.fit_counts(*_select_training_events(dataset, is_training))
    with torch.no_grad():
        bias.copy_(counted_bias)


def _select_training_events(
    dataset: Dataset, is_training: NDArray[np.bool_]
) -> tuple[Tensor, Tensor, Tensor]:
    """Select the rows, times and users of the training events of known items."""
    learned = np.flatnonzero(is_training & (dataset.rows > 0))
    rows, times, users = (
        torch.from_numpy(column[learned].astype(np.int64))
        for column in (dataset.rows, dataset.times, dataset.user_of)
    )
    return rows, times, users
