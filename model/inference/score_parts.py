"""The parts of a score: what the encoder, popularity, repeats and followers contribute to it."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from model.inference.answers import PartName, ScorePart, ScoreTerm, TermName
from model.interfaces import CandidateScorer, EncoderOutput
from model.recommender import Recommender
from model.wide import WidePart


@torch.inference_mode()
def split_scores(
    recommender: Recommender,
    mean_vector: Float[Tensor, " static_width"],
    encoded: EncoderOutput,
    user_index: int,
    rows: Int64[Tensor, " items"],
) -> list[tuple[ScorePart, ...]] | None:
    """Split the scores of some rows for one user vector; None without a wide part.

    The exponential of a score is a sum of alternatives: the base, which every item has, and what
    repeats and followers add. Their shares in that sum are the parts. The base is the exponential
    of a sum of terms, which are compared with their means over the catalog.

    Args:
        mean_vector: the mean of `static_vectors` over the catalog.
        user_index: of the user vector in `encoded`.
    """
    wide = recommender.wide
    if wide is None or isinstance(recommender.encoder, CandidateScorer):
        return None
    base, terms = _split_base(recommender, wide, mean_vector, encoded, user_index, rows)
    alternatives: dict[PartName, Tensor] = {"base": base, **_sum_added(encoded, user_index, rows)}
    shares = torch.stack(list(alternatives.values())).softmax(0).T.tolist()
    effects = torch.stack(list(terms.values())).T.tolist()
    return [
        _sort_parts(
            dict(zip(alternatives, of_parts, strict=True)), dict(zip(terms, of_terms, strict=True))
        )
        for of_parts, of_terms in zip(shares, effects, strict=True)
    ]


def _split_base(
    recommender: Recommender,
    wide: WidePart,
    mean_vector: Tensor,
    encoded: EncoderOutput,
    user_index: int,
    rows: Tensor,
) -> tuple[Float[Tensor, " items"], dict[TermName, Float[Tensor, " items"]]]:
    """Compute the base of some rows, and how far each of its terms is above its mean."""
    vectors = recommender.static_vectors(rows)
    user, gates = encoded.user[user_index].tensor_split((vectors.shape[1],))
    base, relative = vectors @ user, vectors - mean_vector
    terms: dict[TermName, Tensor] = {"encoder": relative @ user}
    if encoded.calendar is not None:
        calendar = encoded.calendar[user_index] * wide.log_scale.exp()
        terms["calendar"] = relative[:, : len(calendar)] @ calendar
        terms["encoder"] = terms["encoder"] - terms["calendar"]
    if wide.gate_proj is not None and encoded.popularity is not None:
        table = encoded.popularity.table[encoded.popularity.entry_of[user_index]]
        features = table[:, rows]
        base = base + gates @ features
        terms["popularity"] = gates @ (features - table[:, 1:].mean(1, keepdim=True))
    return base, terms


def _sum_added(
    encoded: EncoderOutput, user_index: int, rows: Tensor
) -> dict[PartName, Float[Tensor, " items"]]:
    """Sum what repeats and followers add to each row, in log space."""
    if encoded.repeat_scores is None or encoded.repeat_rows is None:
        return {}
    is_of = encoded.repeat_rows[user_index] == rows.unsqueeze(1)
    scores = torch.where(is_of, encoded.repeat_scores[user_index], float("-inf"))
    repeats, followers = scores.tensor_split((scores.shape[1] - encoded.followers,), dim=1)
    added: dict[PartName, Tensor] = {"repeats": repeats, "followers": followers}
    return {name: each.logsumexp(1) for name, each in added.items() if each.shape[1]}


def _sort_parts(
    shares: dict[PartName, float], effects: dict[TermName, float]
) -> tuple[ScorePart, ...]:
    """Sort the parts of one item, and the terms of its base, from the largest to the smallest."""
    terms = tuple(
        ScoreTerm(name, effect)
        for name, effect in sorted(effects.items(), key=lambda term: -term[1])
    )
    return tuple(
        ScorePart(name, share, terms if name == "base" else ())
        for name, share in sorted(shares.items(), key=lambda part: -part[1])
    )
