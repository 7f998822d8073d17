"""Scores as sums of contributions: additive, exact and independent of any order.

A score is the logarithm of a sum of weights: the base that every item has, and what repeats and
followers add. The base is the exponential of a sum of terms. A score is compared with that of the
average item, whose terms are the means over the catalog and to which nothing is added. The
logarithmic-mean Divisia index (Ang 2004) decomposes the difference: a change of the sum contributes
in proportion to its size, and a term of the base in proportion to its own logarithm.
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float64
from numpy.typing import NDArray
from torch import Tensor

from model.batch import SequenceBatch
from model.history import Event
from model.inference.answers import Contribution, ContributionKind, EventContribution
from model.inference.ranking import Ranking
from model.interfaces import DividedRepeats, EncoderOutput, SequenceEncoder
from model.layers.added_scores import AddedScores
from model.layers.follower_scores import LAST_EVENTS
from model.layers.repeat_scores import HistoryQueries, RepeatScorer
from model.recommender import Recommender

_Items = Float64[np.ndarray, " items"]
_ItemsAndEvents = Float64[np.ndarray, "items len"]
_SMALL = 1e-12
_NONE: dict[ContributionKind, _Items] = {}


@torch.inference_mode()
def attribute_scores(
    recommender: Recommender,
    mean_vector: Float[Tensor, " static_width"],
    batch: SequenceBatch,
    encoded: EncoderOutput,
    ranking: Ranking,
    events: tuple[Event, ...],
) -> list[tuple[Contribution, ...]]:
    """Attribute the scores of a ranking to the parts of the model and the events of the history.

    A model that scores each candidate by itself has no average item: its scores are those of the
    network, plus the items' biases.

    Args:
        mean_vector: the mean of `static_vectors` over the catalog.
        batch: the single history.
        events: of the history.
    """
    rows = torch.from_numpy(ranking.rows)
    biases = recommender.item_biases()
    of_events: dict[ContributionKind, _ItemsAndEvents] = {}
    if recommender.scores_candidates:
        values = dict(_NONE)
        state = ranking.scores.astype(np.float64)
        if biases is not None:
            values["bias"] = _to_float64(biases[rows])
            state = state - values["bias"]
        values["state"] = state
    else:
        base = _split_base(recommender, mean_vector, encoded, rows)
        added = _split_added(recommender, batch, encoded, rows)
        values, of_events = decompose(base.average, base.terms, added)
        of_events.pop("neighbours", None)  # They are of no event.
    return _to_contributions(values, of_events, batch.rows[0].numpy(), ranking.rows, events)


class _Base(NamedTuple):
    """The base of some items.

    Attributes:
        average: its mean over the catalog.
        terms: how far each of its terms is above its mean.
    """

    average: float
    terms: dict[ContributionKind, _Items]


def _split_base(
    recommender: Recommender, mean_vector: Tensor, encoded: EncoderOutput, rows: Tensor
) -> _Base:
    vectors, mean = recommender.static_vectors(rows).double(), mean_vector.double()
    user, gates = encoded.user[0].double().tensor_split((vectors.shape[1],))
    relative = vectors - mean
    average, state = float(mean @ user), relative @ user
    terms: dict[ContributionKind, _Items] = {}
    biases = recommender.item_biases()
    if biases is not None:
        bias = biases[rows].double() - biases[1:].double().mean()
        state, terms["bias"] = state - bias, _to_float64(bias)
    wide = recommender.wide
    if wide is not None and encoded.calendar is not None:
        added = encoded.calendar[0].double() * wide.log_scale.double().exp()
        calendar = relative[:, : len(added)] @ added
        state, terms["calendar"] = state - calendar, _to_float64(calendar)
    if wide is not None and wide.gate_proj is not None and encoded.popularity is not None:
        table = encoded.popularity.table[encoded.popularity.entry_of[0]]
        means = table[:, 1:].mean(1).double()
        average += float(gates @ means)
        terms["popularity"] = _to_float64(gates @ (table[:, rows].double() - means[:, None]))
    return _Base(average, {"state": _to_float64(state), **terms})


def _split_added(
    recommender: Recommender, batch: SequenceBatch, encoded: EncoderOutput, rows: Tensor
) -> dict[ContributionKind, _ItemsAndEvents]:
    """Compute what each event adds to the weight of each item; logarithms, -inf for nothing.

    What neighbours add is not of an event: it has a single column.
    """
    if encoded.repeat_scores is None:
        return {}
    scores, own_rows = encoded.repeat_scores[0].double(), batch.rows[0]
    columns = own_rows if encoded.repeat_rows is None else encoded.repeat_rows[0]
    repeater = None if recommender.wide is None else recommender.wide.repeats
    length = len(own_rows)
    # In this order: of the encoder, of the wide part's repeats, of its followers.
    followed = len(scores) - encoded.followers
    own = followed - (0 if repeater is None else length)
    item, column = (
        (columns == rows[:, None]).logical_and(scores > -torch.inf).nonzero(as_tuple=True)
    )

    def place(begin: int, end: int, positions: Tensor) -> Tensor:
        """Place the scores of some columns at the positions of their events.

        In the wide part's repeats, and in its followers, an item has one score per event at most.
        """
        placed = scores.new_full((len(rows), length), -torch.inf)
        is_in = (column >= begin) & (column < end)
        of_part = column[is_in]
        return placed.index_put((item[is_in], positions[of_part - begin]), scores[of_part])

    added: dict[ContributionKind, Tensor] = {}
    if own:
        of_encoder = AddedScores(columns[None, :own], scores[None, :own])
        added = _divide_scores(recommender.encoder, batch, of_encoder, rows)
    if repeater is not None:
        of_items = place(own, followed, torch.arange(length)).amax(1, keepdim=True)
        shares = _divide_repeats(recommender, repeater, batch, encoded)
        is_own = own_rows == rows[:, None]
        divided = (of_items + shares.double().log()).where(is_own, -torch.inf)
        added["repeats"] = _add_logs(added.get("repeats"), divided)
    if encoded.followers:
        # The last event comes first; there may be fewer events than places for them.
        positions = (
            length
            - 1
            - torch.arange(LAST_EVENTS).repeat_interleave(encoded.followers // LAST_EVENTS)
        )
        of_followers = place(followed, len(scores), positions.clamp(min=0))
        added["followers"] = _add_logs(added.get("followers"), of_followers)
    return {kind: logs.numpy() for kind, logs in added.items()}


def _divide_scores(
    encoder: SequenceEncoder, batch: SequenceBatch, scores: AddedScores, rows: Tensor
) -> dict[ContributionKind, Tensor]:
    """Divide the repeat scores of an encoder among what they are of; logarithms."""
    if not isinstance(encoder, DividedRepeats):
        return {"repeats": scores.log_scores.where(batch.rows == rows[:, None], -torch.inf)}
    parts = encoder.divide_repeats(batch, scores, rows)
    neighbours = None if parts.neighbours is None else parts.neighbours[:, None]
    by_kind: dict[ContributionKind, Tensor | None] = {
        "repeats": parts.own,
        "followers": parts.followers,
        "neighbours": neighbours,
    }
    given = {kind: part for kind, part in by_kind.items() if part is not None}
    whole = torch.cat([*given.values()], dim=1).sum(1, keepdim=True)
    log_scores = scores.log_scores.where(scores.rows == rows[:, None], -torch.inf)
    total = log_scores.logsumexp(1, keepdim=True)
    return {
        kind: ((part / whole).log() + total).where(part > 0, -torch.inf)
        for kind, part in given.items()
    }


def _add_logs(first: Tensor | None, second: Tensor) -> Tensor:
    return second if first is None else torch.logaddexp(first, second)


def _divide_repeats(
    recommender: Recommender, repeater: RepeatScorer, batch: SequenceBatch, encoded: EncoderOutput
) -> Float[Tensor, " len"]:
    """Divide the scores of the wide part's repeats among the events of their items."""
    users = encoded.user[:, : recommender.encoder.dim]
    if recommender.wide is not None:
        users = users / recommender.wide.log_scale.exp()
    return repeater.divide_by_event(users, batch, HistoryQueries.at_last_events(batch))[0]


def decompose(
    average: float,
    terms: dict[ContributionKind, _Items],
    added: dict[ContributionKind, _ItemsAndEvents],
) -> tuple[dict[ContributionKind, _Items], dict[ContributionKind, _ItemsAndEvents]]:
    """Decompose log(exp(average + sum of terms) + sum of exp(added)) into a sum.

    Args:
        average: the score of the average item.
        terms: relative to the average.
        added: logarithms of what each event adds.

    Returns:
        The contributions, which add up to the score, and of those of `added` each event's part.
    """
    base = np.sum([*terms.values()], axis=0)
    relative = {kind: of_events - average for kind, of_events in added.items()}
    score = np.logaddexp.reduce(
        [base, *(np.logaddexp.reduce(r, axis=1) for r in relative.values())]
    )
    mean = _log_mean(score)
    values: dict[ContributionKind, _Items] = {"average": np.full(len(base), average)}
    values |= {kind: term * np.exp(_log_mean(base) - mean) for kind, term in terms.items()}
    of_events = {kind: np.exp(logs - mean[:, None]) for kind, logs in relative.items()}
    return values | {kind: each.sum(1) for kind, each in of_events.items()}, of_events


def _log_mean(log_ratio: _Items) -> _Items:
    """Compute log(L(x, 1)) of ratios x, where L(x, y) = (x - y) / (log x - log y), the log mean."""
    size = np.maximum(np.abs(log_ratio), _SMALL)
    means: _Items = np.maximum(log_ratio, 0) + np.log(-np.expm1(-size) / size)
    return means


def _to_float64(values: Tensor) -> NDArray[np.float64]:
    converted: NDArray[np.float64] = values.double().numpy()
    return converted


def _to_contributions(
    values: dict[ContributionKind, _Items],
    of_events: dict[ContributionKind, _ItemsAndEvents],
    event_rows: NDArray[np.int64],
    rows: NDArray[np.int64],
    events: tuple[Event, ...],
) -> list[tuple[Contribution, ...]]:
    """Name the contributions to each score, and the events that have a part in them."""
    kinds = {kind: of_items.tolist() for kind, of_items in values.items()}
    parts: dict[ContributionKind, list[list[EventContribution]]] = {}
    at_rows = event_rows.tolist()
    for kind, of_kind in of_events.items():
        parts[kind] = [[] for _ in rows]
        item, at = np.nonzero(of_kind)
        for index, event, value in zip(
            item.tolist(), at.tolist(), of_kind[item, at].tolist(), strict=True
        ):
            part = EventContribution(events[event], at_rows[event], value)
            parts[kind][index].append(part)
    every: list[tuple[Contribution, ...]] = []
    for index in range(len(rows)):
        contributions = [
            Contribution(kind, of_items[index], tuple(parts[kind][index] if kind in parts else ()))
            for kind, of_items in kinds.items()
        ]
        contributions.sort(key=lambda one: (one.kind != "average", -one.value))
        every.append(tuple(contributions))
    return every
