"""The training objective: the loss of items, and of event times where an encoder models them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from model.accelerators import copy_to, keep_precision
from model.encoders.shan import SHAN
from model.encoders.time_lstm import TimeLSTM
from model.errors import TrainingError
from model.interfaces import CandidateScorer, CausalEncoder, Intensities
from model.layers.interval_distribution import IntervalDistribution
from model.layers.periods import DAYS_PER_SECOND
from model.recommender import Recommender, ScoredPositions
from training.config import (
    SESSION_SECONDS,
    ContinuousTimeConfig,
    FitConfig,
    GBCEConfig,
    LossConfig,
    SoftmaxConfig,
)
from training.data.batches import TrainingBatch
from training.distributed import ALONE, ProcessGroup
from training.fitting.losses.event_time import continuous_time_loss, next_time_loss
from training.fitting.losses.pairwise import (
    PairwiseConfig,
    PairwiseLoss,
    choose_pairwise_loss,
    draw_negatives,
    mask_targets,
    score_negatives,
)
from training.fitting.losses.repeats import RepeatScores
from training.fitting.losses.softmax import (
    GatedPopularity,
    draw_shared_negatives,
    full_softmax,
    sampled_softmax,
)

IntensityFunction = Callable[[Float64[Tensor, "batch len"]], Float[Tensor, "targets heads groups"]]
"""The intensities of one layer for every target, some days after its position's event."""


_EXACT = (SHAN, TimeLSTM)
"""Encoders that mix precisions in one operation, or mask by the least value of 32 bits."""


class ItemTerm(NamedTuple):
    """The loss of a batch's items, and the event times from the same forward pass.

    Attributes:
        weights: of the targets; the loss is their weighted mean.
        intensities: of the self-modulating layer of an encoder that scores candidates, for the
            targets; None for other encoders.
        next_time: the distribution of the next event's time; None where it is not modelled.
    """

    loss: Tensor
    weights: Tensor
    intensities: IntensityFunction | None
    next_time: IntervalDistribution | None


ItemObjective = Callable[[TrainingBatch, np.random.Generator], ItemTerm]
"""Computes the item term of a batch; one is chosen per run."""


@final
class Objective:
    """The loss of a batch, its terms chosen once for a recommender and a recipe.

    Args:
        group: the processes among which each batch is divided.

    Raises:
        TrainingError: if the encoder cannot be trained with the configured loss or precision.
    """

    def __init__(
        self, recommender: Recommender, config: FitConfig, group: ProcessGroup = ALONE
    ) -> None:
        if config.precision == "bfloat16" and isinstance(recommender.encoder, _EXACT):
            raise TrainingError(
                "an encoder trains in bfloat16 if all of its operations take it, but "
                f"{type(recommender.encoder).__name__} has some that do not; set fit.precision to "
                "float32"
            )
        self._recommender = recommender
        self._config = config
        self._group = group
        self._item_objective = _choose_item_objective(recommender, config.loss)

    def compute_loss(self, batch: TrainingBatch, rng: np.random.Generator) -> Float[Tensor, ""]:
        """Compute the loss of one batch, some of its query times withheld.

        Of a divided batch, the mean over the processes is the loss of the whole.

        Raises:
            TrainingError: if continuous time is weighted but the encoder has no intensities.
        """
        config = self._config
        batch = batch.to(self._recommender.device)
        sequences = batch.sequences
        # Days from every event to the next, or to the next basket, also where the model may not
        # read them.
        intervals = (sequences.query_times - sequences.times).clamp(min=0)
        if config.query_time_dropout:
            dropped = torch.rand(sequences.rows.shape, device=sequences.rows.device)
            sequences = sequences.withhold_query_times(dropped < config.query_time_dropout)
            batch = batch._replace(sequences=sequences)
        weighted = batch
        if config.session_weight < 1:
            weighted = _weigh_sessions(batch, intervals, config.session_weight)
        item = self._item_objective(weighted, rng)
        terms = [(item.loss, item.weights)]
        if config.continuous_time.weight:
            layers = (
                _compute_intensities_of_the_past(self._recommender, batch)
                if item.intensities is None
                else [item.intensities]
            )
            regulariser, weights = _compute_continuous_time_term(
                self._recommender, batch, intervals, layers, config.continuous_time
            )
            terms.append((config.continuous_time.weight * regulariser, weights))
        if item.next_time is not None and config.next_time_weight:
            log_density = item.next_time.log_density(intervals).flatten()[batch.positions]
            ones = torch.ones_like(log_density)
            terms.append((config.next_time_weight * next_time_loss(log_density, ones), ones))
        return self._add(terms, batch)

    def _add(self, terms: list[tuple[Tensor, Tensor]], batch: TrainingBatch) -> Tensor:
        """Add terms, each a mean over targets with weights.

        Of a divided batch, a term counts by its share of the weights of all processes.
        """
        losses = [loss for loss, _ in terms]
        if not self._group.is_alone:
            # A part without windows of its own has weights of zero.
            is_real = batch.weights.any()
            totals = torch.stack([weights.sum() for _, weights in terms]) * is_real
            sums = self._group.add_up(totals).clamp(min=torch.finfo(totals.dtype).tiny)
            shares = totals * (self._group.size / sums)
            losses = [loss * share for loss, share in zip(losses, shares, strict=True)]
        total = losses[0]
        for loss in losses[1:]:
            total = total + loss
        return total


def _weigh_sessions(
    batch: TrainingBatch, intervals: Float[Tensor, "batch len"], weight: float
) -> TrainingBatch:
    """Multiply the weights of targets within a session with the event before by a weight.

    Such weights draw the loss towards its mean over questions of other intervals (Shimodaira 2000).
    A loss is a weighted mean over its batch, so a batch of one session is as it was.

    Args:
        intervals: days from every event to the next.
    """
    days = intervals.flatten()[batch.positions][batch.position_of]
    # Differences of days are not exact to the second.
    is_session = (days / DAYS_PER_SECOND).round() < SESSION_SECONDS
    return batch._replace(weights=torch.where(is_session, weight, 1.0) * batch.weights)


def _choose_item_objective(recommender: Recommender, loss: LossConfig) -> ItemObjective:
    encoder = recommender.encoder
    is_scorer = isinstance(encoder, CandidateScorer)
    if recommender.wide is not None and encoder.similarity != "dot":
        raise TrainingError(
            "a wide part is added to inner products, but "
            f"{type(encoder).__name__} compares by {encoder.similarity}; "
            "choose another encoder, or leave the wide part out"
        )
    if isinstance(loss, SoftmaxConfig):
        if is_scorer:
            raise TrainingError(
                "an encoder that scores candidates is trained on some of them, by the loss bce, "
                f"gbce or bpr, but {type(encoder).__name__} was to be trained by "
                f"{loss.kind}; set another kind under fit.loss"
            )
        return _SoftmaxObjective(recommender, loss)
    if recommender.wide is not None:
        raise TrainingError(
            "a wide part is trained by cross-entropy over the catalog, but the loss is "
            f"{loss.kind}; set fit.loss.kind to softmax, or leave the wide part out"
        )
    contrast = choose_pairwise_loss(loss, items=len(recommender.items.weight) - 1)
    if is_scorer:
        return _CandidateObjective(recommender, loss, contrast)
    return _PairwiseObjective(recommender, loss, contrast)


@final
@dataclass(frozen=True)
class _SoftmaxObjective:
    """Scores the supervised positions against the catalog, or against a sample of it."""

    recommender: Recommender
    config: SoftmaxConfig

    def __call__(self, batch: TrainingBatch, rng: np.random.Generator) -> ItemTerm:
        at = _convert_to_float(self.recommender.encode_at(batch.sequences, batch.positions))
        with keep_precision(batch.targets.device):
            return self._compute_term(at, batch, rng)

    def _compute_term(
        self, at: ScoredPositions, batch: TrainingBatch, rng: np.random.Generator
    ) -> ItemTerm:
        vectors = self.recommender.static_vectors()
        repeats = _to_repeat_scores(at)
        popularity, weights = None, batch.weights
        if at.gates is not None and at.popularity is not None:
            popularity = GatedPopularity.gather(
                at.gates, at.popularity, batch.targets, batch.position_of
            )
            # The first event of an item cannot be predicted by anyone. Where there are many, as in
            # small data, they would teach that items are chosen because nobody chose them before.
            first_counts = self.recommender.count_first_events(batch.targets)
            weights = weights * popularity.weigh_targets(first_counts)
        scored = (at.users, vectors, batch.targets, batch.position_of, weights)
        if len(vectors) > self.config.sample_above:
            negatives, log_expected = (
                copy_to(drawn, vectors.device)
                for drawn in draw_shared_negatives(
                    batch.targets_on_host, len(vectors), self.config.negatives, rng
                )
            )
            loss = sampled_softmax(
                *scored, negatives, log_expected, repeats=repeats, popularity=popularity
            )
        else:
            loss = full_softmax(*scored, repeats=repeats, popularity=popularity)
        return ItemTerm(loss, weights, None, at.outputs.next_time)


@final
@dataclass(frozen=True)
class _PairwiseObjective:
    """Scores targets and negatives by inner products, without the logits of all items."""

    recommender: Recommender
    config: PairwiseConfig
    contrast: PairwiseLoss

    def __call__(self, batch: TrainingBatch, rng: np.random.Generator) -> ItemTerm:
        at = self.recommender.encode_at(batch.sequences, batch.positions)
        states, repeats = at.outputs, _to_repeat_scores(at)
        targets, vectors = batch.targets, self.recommender.static_vectors()
        positions = batch.positions[batch.position_of]
        users = self.recommender.user_vectors(states.users.flatten(0, 1)[positions].float())
        drawn = draw_negatives(batch, self.config, rng)
        rows = drawn.rows[drawn.owner_of]
        positives = (users * vectors[targets]).sum(-1)
        if isinstance(self.config, GBCEConfig):
            whole = self.recommender.user_vectors(states.users.float())
            negatives = score_negatives(whole, vectors, drawn.rows).flatten(0, 1)[positions]
        else:
            negatives = score_negatives(users.unsqueeze(1), vectors, drawn.rows).squeeze(1)
        if repeats is not None:
            positives = repeats.add_to_targets(positives, targets, batch.position_of)
            chosen = np.flatnonzero(drawn.has_seen_all)
            if len(chosen):
                some = copy_to(torch.from_numpy(chosen), targets.device)
                # Only here can a negative be in the history, and only where a history holds the
                # whole catalog: a table of the catalog is then no larger than the histories.
                owners = batch.position_of[some]
                own = RepeatScores(repeats.log_scores[owners], repeats.rows[owners])
                added = own.add_to_candidates(negatives[some], rows[some], rows=len(vectors))
                negatives = negatives.index_copy(0, some, added)
        loss = self.contrast(positives, mask_targets(negatives, rows, targets), batch.weights)
        return ItemTerm(loss, batch.weights, None, states.next_time)


@final
@dataclass(frozen=True)
class _CandidateObjective:
    """Scores targets and negatives by an encoder whose user vector depends on the candidate."""

    recommender: Recommender
    config: PairwiseConfig
    contrast: PairwiseLoss

    def __call__(self, batch: TrainingBatch, rng: np.random.Generator) -> ItemTerm:
        drawn = draw_negatives(batch, self.config, rng)
        rows = drawn.rows[drawn.owner_of]
        candidates = torch.cat((batch.targets.unsqueeze(1), rows), dim=1)
        positions = batch.positions[batch.position_of]
        scores, _, intensities = self.recommender.score_candidates(
            batch.sequences, positions, candidates
        )
        negatives = mask_targets(scores[:, 1:], rows, batch.targets)
        loss = self.contrast(scores[:, 0], negatives, batch.weights)
        if intensities is None:
            return ItemTerm(loss, batch.weights, None, None)
        of_targets = _select_intensities_of_targets(intensities, positions, candidates.shape[1])
        return ItemTerm(loss, batch.weights, of_targets, None)


def _convert_to_float(at: ScoredPositions) -> ScoredPositions:
    """Convert what an encoder has computed in a lower precision, for the loss."""
    added = at.added
    return at._replace(
        users=at.users.float(),
        gates=None if at.gates is None else at.gates.float(),
        added=None if added is None else added._replace(log_scores=added.log_scores.float()),
    )


def _to_repeat_scores(at: ScoredPositions) -> RepeatScores | None:
    return None if at.added is None else RepeatScores(at.added.log_scores, at.added.rows)


def _compute_intensities_of_the_past(
    recommender: Recommender, batch: TrainingBatch
) -> list[IntensityFunction]:
    """Compute the intensities of a causal encoder's layers at the position of each target.

    In a pass of their own, in which every position is asked at the time of its event: an intensity
    before a target must not depend on when the target comes, which attention at the query time
    reads in every layer. None for an encoder without a causal pass or without intensities.
    """
    if (
        not isinstance(recommender.encoder, CausalEncoder)
        or recommender.encoder.item_groups is None
    ):
        return []
    states = recommender.encode_positions(batch.sequences.at_event_times())
    positions = batch.positions[batch.position_of]

    def select_targets(layer: Intensities) -> IntensityFunction:
        return lambda intervals: layer.evaluate(intervals).transpose(1, 2).flatten(0, 1)[positions]

    return [select_targets(layer) for layer in states.intensities]


def _select_intensities_of_targets(
    intensities: Intensities, positions: Tensor, candidates: int
) -> IntensityFunction:
    """Select the intensities given each target, which is the first of its question's candidates."""

    def evaluate(intervals: Tensor) -> Tensor:
        own = intervals.flatten()[positions].unsqueeze(1).expand(-1, candidates)
        return intensities.evaluate(own)[:, :, 0]

    return evaluate


def _compute_continuous_time_term(
    recommender: Recommender,
    batch: TrainingBatch,
    intervals: Float64[Tensor, "batch len"],
    layers: list[IntensityFunction],
    config: ContinuousTimeConfig,
) -> tuple[Tensor, Tensor]:
    """Compute the likelihood of the targets' times under every self-modulating layer.

    Targets whose query time is withheld have no weight. One draw within each interval serves all
    layers.

    Returns:
        The likelihood, and the weights of the targets that it is the mean of.
    """
    encoder, item_groups = recommender.encoder, recommender.encoder.item_groups
    if not layers or item_groups is None:
        raise TrainingError(
            "the likelihood of continuous time needs an encoder with intensities of groups of "
            f"items, but {type(encoder).__name__} with weight={config.weight} has none; set "
            "fit.continuous_time.weight to 0"
        )
    positions = batch.positions[batch.position_of]
    given = batch.sequences.query_given.flatten()[positions]
    membership = item_groups(batch.targets)
    # Weights of zero, not a selection, whose size a device would have to tell the host.
    weights = batch.weights * given * membership.any(-1)
    drawn: Tensor | None = None
    if config.integral == "monte_carlo":
        drawn = intervals * torch.rand_like(intervals)
    total = intervals.new_zeros((), dtype=membership.dtype)
    for layer in layers:
        total = total + continuous_time_loss(
            layer(intervals),
            None if drawn is None else layer(drawn),
            intervals.flatten()[positions],
            membership,
            weights,
        )
    return total, weights
