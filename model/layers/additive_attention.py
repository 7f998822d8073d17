"""Additive attention: the states of a history, scored by a small network against one of them."""

from typing import Any, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

QUERIES_AT_ONCE = 8
"""Positions compared together: few enough for the comparisons to stay near the processor."""


@final
class AdditiveAttention(nn.Module):
    """Weighs past states by `softmax(v . tanh(W_1 asking + W_2 past))`.

    Shape: states (batch, len, hidden) -> weighted sums of states (batch, len, hidden)

    Paper: Bahdanau et al. 2015, "Neural Machine Translation by Jointly Learning to Align and
        Translate", section A.1.2.
    """

    def __init__(self, *, hidden: int) -> None:
        super().__init__()
        self.asking = nn.Linear(hidden, hidden, bias=False)
        self.past = nn.Linear(hidden, hidden, bias=False)
        self.score = nn.Parameter(torch.randn(hidden) / hidden**0.5)

    def forward(
        self, states: Float[Tensor, "batch len hidden"]
    ) -> Float[Tensor, "batch len hidden"]:
        """What every position takes from the states up to its own.

        A few positions at a time, each time of the states up to the last of them: half of all
        pairs. `AdditiveScores` keeps none of the `hidden` numbers that a pair costs.
        """
        asking, past = self.asking(states), self.past(states)
        taken = []
        for start in range(0, states.shape[1], QUERIES_AT_ONCE):
            end = min(start + QUERIES_AT_ONCE, states.shape[1])
            scores = self._scores(asking[:, start:end], past[:, :end])
            is_later = torch.ones_like(scores[0], dtype=torch.bool).triu(start + 1)
            taken.append(_weights(scores, ~is_later) @ states[:, :end])
        return torch.cat(taken, dim=1)

    def read(
        self,
        asking: Float[Tensor, "batch 1 hidden"],
        states: Float[Tensor, "batch len hidden"],
        visible: Bool[Tensor, "batch 1 len"],
    ) -> tuple[Float[Tensor, "batch 1 hidden"], Float[Tensor, "batch 1 len"]]:
        """What one state takes from those it may see, and how it weighs them."""
        weights = _weights(self._scores(self.asking(asking), self.past(states)), visible)
        return weights @ states, weights

    def _scores(self, asking: Tensor, past: Tensor) -> Tensor:
        scores: Tensor = AdditiveScores.apply(asking, past, self.score)  # type: ignore[no-untyped-call]
        return scores


class AdditiveScores(torch.autograd.Function):
    """`v . tanh(asking + past)` of every pair; the backward pass compares each pair again."""

    @staticmethod
    def forward(ctx: Any, asking: Tensor, past: Tensor, score: Tensor) -> Tensor:
        """Batch x asking x past."""
        ctx.save_for_backward(asking, past, score)
        return _compared(asking, past) @ score

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Each score's gradient, spread over the two that were compared and the weights."""
        asking, past, score = ctx.saved_tensors
        compared = _compared(asking, past)
        of_score = torch.einsum("bqp,bqph->h", gradients[0], compared)
        slope = compared.square_().neg_().add_(1)
        of_pairs = slope.mul_(gradients[0].unsqueeze(-1)).mul_(score)
        return of_pairs.sum(2), of_pairs.sum(1), of_score


def _compared(asking: Tensor, past: Tensor) -> Tensor:
    """Batch, asking, past, hidden."""
    return (asking.unsqueeze(2) + past.unsqueeze(1)).tanh_()


def _weights(scores: Tensor, visible: Tensor) -> Tensor:
    return scores.masked_fill(~visible, float("-inf")).softmax(-1)
