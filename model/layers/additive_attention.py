"""Additive (Bahdanau) attention over the hidden states of a recurrent encoder."""

from typing import Any, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

QUERY_CHUNK = 8
"""Queries scored per step: few enough that their pairwise activations stay in the CPU cache."""


@final
class AdditiveAttention(nn.Module):
    """Weights past hidden states by `softmax(v . tanh(W_1 query + W_2 key))`.

    Shape: states (batch, len, hidden) -> weighted sums of states (batch, len, hidden)

    Paper: Bahdanau et al. 2015, "Neural Machine Translation by Jointly Learning to Align and
        Translate", section A.1.2.
    """

    def __init__(self, *, hidden: int) -> None:
        super().__init__()
        self.query_proj = nn.Linear(hidden, hidden, bias=False)
        self.key_proj = nn.Linear(hidden, hidden, bias=False)
        self.score_weight = nn.Parameter(torch.randn(hidden) / hidden**0.5)

    def forward(
        self, states: Float[Tensor, "batch len hidden"]
    ) -> Float[Tensor, "batch len hidden"]:
        """Attend causally: every position attends to the states up to and including its own.

        Queries are processed in chunks, each against the keys up to its last query only, which
        halves the number of pairs. `AdditiveScores` does not store the `hidden` activations of a
        pair.
        """
        queries, keys = self.query_proj(states), self.key_proj(states)
        contexts = []
        for start in range(0, states.shape[1], QUERY_CHUNK):
            end = min(start + QUERY_CHUNK, states.shape[1])
            scores = self._compute_scores(queries[:, start:end], keys[:, :end])
            is_later = torch.ones_like(scores[0], dtype=torch.bool).triu(start + 1)
            contexts.append(_masked_softmax(scores, ~is_later) @ states[:, :end])
        return torch.cat(contexts, dim=1)

    def attend(
        self,
        query: Float[Tensor, "batch 1 hidden"],
        states: Float[Tensor, "batch len hidden"],
        visible: Bool[Tensor, "batch 1 len"],
    ) -> tuple[Float[Tensor, "batch 1 hidden"], Float[Tensor, "batch 1 len"]]:
        """Attend from one query per history; return the context vector and the weights."""
        scores = self._compute_scores(self.query_proj(query), self.key_proj(states))
        weights = _masked_softmax(scores, visible)
        return weights @ states, weights

    def _compute_scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        scores: Tensor = AdditiveScores.apply(queries, keys, self.score_weight)  # type: ignore[no-untyped-call]
        return scores


class AdditiveScores(torch.autograd.Function):
    """`v . tanh(query + key)` of every pair; the backward pass recomputes the activations."""

    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, score_weight: Tensor) -> Tensor:
        """Return the scores: batch, queries, keys."""
        ctx.save_for_backward(queries, keys, score_weight)
        return _pairwise_tanh(queries, keys) @ score_weight

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of queries, keys and score weight."""
        queries, keys, score_weight = ctx.saved_tensors
        activations = _pairwise_tanh(queries, keys)
        weight_gradient = torch.einsum("bqp,bqph->h", gradients[0], activations)
        slope = activations.square_().neg_().add_(1)
        pair_gradient = slope.mul_(gradients[0].unsqueeze(-1)).mul_(score_weight)
        return pair_gradient.sum(2), pair_gradient.sum(1), weight_gradient


def _pairwise_tanh(queries: Tensor, keys: Tensor) -> Tensor:
    """Compute the activations of all pairs: batch, queries, keys, hidden."""
    return (queries.unsqueeze(2) + keys.unsqueeze(1)).tanh_()


def _masked_softmax(scores: Tensor, visible: Tensor) -> Tensor:
    return scores.masked_fill(~visible, float("-inf")).softmax(-1)
