"""What a batch costs: the loss of its items and, where an encoder speaks of time, of its times."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from model.batch import SequenceBatch
from model.errors import TrainingError
from model.interfaces import (
    CandidateScorer,
    Intensities,
    PositionOutputs,
)
from model.layers.interval_distribution import IntervalDistribution
from model.recommender import Recommender
from training.config import (
    BCEConfig,
    BPRConfig,
    ContinuousTimeConfig,
    FitConfig,
    GBCEConfig,
    LossConfig,
    SoftmaxConfig,
)
from training.data.batches import Supervised
from training.fitting.losses import (
    Repeats,
    bce,
    bpr,
    candidate_scores,
    continuous_time_loss,
    full_softmax,
    gbce,
    next_time_loss,
    sampled_softmax,
)

PairwiseConfig = BCEConfig | GBCEConfig | BPRConfig
"""Losses that contrast a target with some items which its user has not met in training."""

Rates = Callable[[Float64[Tensor, "batch len"]], Float[Tensor, "targets heads groups"]]
"""A layer's intensities for every target, so many days after the event it was asked for at."""


def batch_loss(
    recommender: Recommender,
    supervised: Supervised,
    config: FitConfig,
    rng: np.random.Generator,
) -> Float[Tensor, ""]:
    """The loss of one batch, some of its query times withheld.

    Raises:
        TrainingError: if the encoder cannot be trained by the losses that are asked for.
    """
    device = recommender.device
    supervised = supervised.to(device)
    batch = supervised.batch
    if config.query_time_dropout:
        batch = batch.withhold_query_times(
            torch.rand(batch.rows.shape, device=device) < config.query_time_dropout
        )
    rates: list[Rates]
    next_time: IntervalDistribution | None = None
    if isinstance(recommender.encoder, CandidateScorer):
        loss, rates = _judged(recommender, supervised, batch, config.loss, rng)
    else:
        states = recommender.encode_positions(batch)
        loss = _of_items(recommender, supervised, batch, states, config.loss, rng)
        rates = [_rates_at_positions(layer, supervised) for layer in states.intensities]
        next_time = states.next_time
    if config.continuous_time.weight:
        regulariser = _continuous_time(
            recommender, supervised, batch, rates, config.continuous_time
        )
        loss = loss + config.continuous_time.weight * regulariser
    if next_time is not None and config.next_time_weight:
        loss = loss + config.next_time_weight * _next_time(supervised, next_time)
    return loss


def _of_items(
    recommender: Recommender,
    supervised: Supervised,
    batch: SequenceBatch,
    states: PositionOutputs,
    loss: LossConfig,
    rng: np.random.Generator,
) -> Tensor:
    """The loss of an encoder whose states are compared with item vectors."""
    repeats: Repeats | None = None
    if states.repeat_scores is not None:
        length = batch.rows.shape[1]
        sample = supervised.positions // length
        places = torch.arange(length, device=sample.device)
        later = places > (supervised.positions % length)[:, None]
        log_mass = states.repeat_scores.flatten(0, 1)[supervised.positions]
        repeats = Repeats(log_mass.masked_fill(later, float("-inf")), batch.rows[sample])
    if not isinstance(loss, SoftmaxConfig):
        return _of_pairs(recommender, supervised, states, repeats, loss, rng)
    users = recommender.user_vectors(states.users.flatten(0, 1)[supervised.positions])
    vectors = recommender.item_vectors()
    judged = (users, vectors, supervised.targets, supervised.position_of, supervised.weights)
    if len(vectors) > loss.sample_above:
        negatives, log_expected = _draw_shared(
            supervised.targets, len(vectors), loss.negatives, rng
        )
        drawn = (negatives.to(users.device), log_expected.to(users.device))
        return sampled_softmax(*judged, *drawn, repeats=repeats)
    return full_softmax(*judged, repeats=repeats)


def _draw_shared(
    targets: Tensor, rows: int, count: int, rng: np.random.Generator
) -> tuple[Tensor, Tensor]:
    """Half from the batch's own targets, half uniform, with log(draws x probability) of each."""
    counts = np.bincount(targets.cpu().numpy(), minlength=rows)
    probability = 0.5 * counts / counts.sum() + 0.5 / (rows - 1)
    probability[0] = 0.0
    own = rng.choice(targets.cpu().numpy(), size=count // 2)
    uniform = rng.integers(1, rows, size=count - len(own))
    drawn = np.concatenate((own, uniform))
    log_expected = np.log(count * probability[drawn])
    return torch.from_numpy(drawn), torch.from_numpy(log_expected.astype(np.float32))


class Negatives(NamedTuple):
    """Items drawn against the targets of a batch.

    Attributes:
        rows: catalogue rows, per owner: a target, or a window whose targets share them.
        owner_of: per target, which owner is its own.
        has_met_all: per target, whether its user has met the whole catalogue, so that negatives
            may be the target itself or in the history. Else they never are.
    """

    rows: Int64[Tensor, "owners negatives"]
    owner_of: Int64[Tensor, " targets"]
    has_met_all: Bool[Tensor, " targets"]


def _draw(supervised: Supervised, loss: PairwiseConfig, rng: np.random.Generator) -> Negatives:
    """Items that the users have not met in training.

    DIFFERS(code): the many negatives of gBCE are shared by the targets of a window, which makes
    them as cheap as a few; the authors draw them per target.
    """
    places = supervised.positions[supervised.position_of]
    window_of = places // supervised.batch.rows.shape[1]
    users = supervised.users[window_of.cpu().numpy()]
    met_all = torch.from_numpy(supervised.met.unmet_counts[users] == 0)
    if isinstance(loss, GBCEConfig):
        owners, owner_of = supervised.users, window_of
    else:
        owners, owner_of = users, torch.arange(len(users), device=places.device)
    rows = torch.from_numpy(supervised.met.draw(owners, loss.negatives, rng))
    return Negatives(rows.to(places.device), owner_of, met_all.to(places.device))


def _of_pairs(
    recommender: Recommender,
    supervised: Supervised,
    states: PositionOutputs,
    repeats: Repeats | None,
    loss: PairwiseConfig,
    rng: np.random.Generator,
) -> Tensor:
    """Targets against negatives, both by inner products; the catalogue is never laid out."""
    targets, vectors = supervised.targets, recommender.item_vectors()
    places = supervised.positions[supervised.position_of]
    users = recommender.user_vectors(states.users.flatten(0, 1)[places])
    drawn = _draw(supervised, loss, rng)
    rows = drawn.rows[drawn.owner_of]
    positives = (users * vectors[targets]).sum(-1)
    if isinstance(loss, GBCEConfig):
        whole = recommender.user_vectors(states.users)
        negatives = candidate_scores(whole, vectors, drawn.rows).flatten(0, 1)[places]
    else:
        negatives = candidate_scores(users.unsqueeze(1), vectors, drawn.rows).squeeze(1)
    if repeats is not None:
        positives = repeats.added_to(positives, targets, supervised.position_of)
        some = drawn.has_met_all.nonzero().squeeze(-1)
        if len(some):
            # Only here can a negative stand in the history, and only where a history holds the
            # whole catalogue: a table of the catalogue is then no larger than the histories.
            owners = supervised.position_of[some]
            pointed = Repeats(repeats.log_mass[owners], repeats.rows[owners])
            gained = pointed.added_to_candidates(negatives[some], rows[some], rows=len(vectors))
            negatives = negatives.index_copy(0, some, gained)
    return _contrast(loss, positives, negatives, rows, supervised, items=len(vectors) - 1)


def _judged(
    recommender: Recommender,
    supervised: Supervised,
    batch: SequenceBatch,
    loss: LossConfig,
    rng: np.random.Generator,
) -> tuple[Tensor, list[Rates]]:
    """Targets against negatives, both judged by an encoder that must see them.

    The intensities are those that the targets see.
    """
    if isinstance(loss, SoftmaxConfig):
        raise TrainingError(
            "an encoder that judges candidates is trained on some of them, by the loss bce, gbce "
            f"or bpr, but {type(recommender.encoder).__name__} was to be trained by {loss.kind}; "
            "set another kind under fit.loss"
        )
    drawn = _draw(supervised, loss, rng)
    rows = drawn.rows[drawn.owner_of]
    candidates = torch.cat((supervised.targets.unsqueeze(1), rows), dim=1)
    places = supervised.positions[supervised.position_of]
    scores, _, intensities = recommender.score_candidates(batch, places, candidates)
    items = len(recommender.items.weight) - 1
    contrast = _contrast(loss, scores[:, 0], scores[:, 1:], rows, supervised, items=items)
    if intensities is None:
        return contrast, []
    return contrast, [_rates_of_targets(intensities, places, candidates.shape[1])]


def _contrast(
    loss: PairwiseConfig,
    positives: Tensor,
    negatives: Tensor,
    rows: Tensor,
    supervised: Supervised,
    *,
    items: int,
) -> Tensor:
    """The loss of scores; a negative that is its own target does not count."""
    is_target = rows == supervised.targets.unsqueeze(1)
    negatives = negatives.masked_fill(is_target, float("-inf"))
    match loss:
        case BCEConfig():
            return bce(positives, negatives, supervised.weights)
        case GBCEConfig(calibration=calibration):
            return gbce(
                positives, negatives, supervised.weights, items=items, calibration=calibration
            )
        case BPRConfig():
            return bpr(positives, negatives, supervised.weights)


def _continuous_time(
    recommender: Recommender,
    supervised: Supervised,
    batch: SequenceBatch,
    layers: list[Rates],
    config: ContinuousTimeConfig,
) -> Tensor:
    """When targets of each group came, by every self-modulating layer, where it was not withheld.

    One draw within each interval serves all layers.
    """
    encoder, item_groups = recommender.encoder, recommender.encoder.item_groups
    if not layers or item_groups is None:
        raise TrainingError(
            "the likelihood of continuous time needs an encoder with intensities of groups of "
            f"items, but {type(encoder).__name__} with weight={config.weight} has none; set "
            "fit.continuous_time.weight to 0"
        )
    intervals = _intervals(supervised)
    places = supervised.positions[supervised.position_of]
    given = batch.query_given.flatten()[places]
    marks = item_groups(supervised.targets[given])
    drawn: Tensor | None = None
    if config.integral == "monte_carlo":
        drawn = intervals * torch.rand_like(intervals)
    total = intervals.new_zeros((), dtype=marks.dtype)
    for rates in layers:
        total = total + continuous_time_loss(
            rates(intervals)[given],
            None if drawn is None else rates(drawn)[given],
            intervals.flatten()[places[given]],
            marks,
            supervised.weights[given],
        )
    return total


def _rates_at_positions(layer: Intensities, supervised: Supervised) -> Rates:
    """The intensities of a layer of a causal encoder, where each target was asked for."""
    places = supervised.positions[supervised.position_of]

    def at(intervals: Tensor) -> Tensor:
        return layer.evaluate(intervals).transpose(1, 2).flatten(0, 1)[places]

    return at


def _rates_of_targets(seen: Intensities, places: Tensor, candidates: int) -> Rates:
    """The intensities that each target, the first of its candidates, sees."""

    def at(intervals: Tensor) -> Tensor:
        own = intervals.flatten()[places].unsqueeze(1).expand(-1, candidates)
        return seen.evaluate(own)[:, :, 0]

    return at


def _next_time(supervised: Supervised, next_time: IntervalDistribution) -> Tensor:
    """The likelihood of when the next event came, known to the encoder or not."""
    log_density = next_time.log_density(_intervals(supervised)).flatten()[supervised.positions]
    return next_time_loss(log_density, torch.ones_like(log_density))


def _intervals(supervised: Supervised) -> Float64[Tensor, "batch len"]:
    """Days from every event to the next, or to the next basket, whether withheld or not."""
    batch = supervised.batch
    return (batch.query_times - batch.times).clamp(min=0)
