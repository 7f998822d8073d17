"""How much a past event matters to a candidate, each judged by itself."""

from typing import final

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


@final
class LocalActivation(nn.Module):
    """A small network that looks at a candidate, an event, and how the two differ.

        activation(q, k) = w . sigmoid(W_2 sigmoid(W_1 [q, k, q - k, q * k] + b_1) + b_2) + b

    Nothing as wide as its input is ever laid out per pair: with `W_1 = [A, B, C, D]`, the first
    map is `(A + C) q + (B - C) k + D (q * k)`, of which only the last part is of both.

    Shape: candidates (questions, candidates, dim), events (questions, len, dim)
        -> (questions, candidates, len)

    Paper: Zhou et al. 2018, "Deep Interest Network for Click-Through Rate Prediction", the
        activation unit of figure 2, with the input of its authors' code.

    Args:
        hidden: widths of the two layers between input and activation.
        bias: whether activations have the bias b, which a softmax over events would cancel.
    """

    def __init__(self, *, dim: int, hidden: tuple[int, int], bias: bool) -> None:
        super().__init__()
        self.first = nn.Linear(4 * dim, hidden[0])
        self.second = nn.Linear(*hidden)
        self.last = nn.Linear(hidden[1], 1, bias=bias)

    def remember(self, events: Float[Tensor, "batch len dim"]) -> Float[Tensor, "batch len hidden"]:
        """The part of the first map that is of events alone, whatever the candidate."""
        _, of_event, of_difference, _ = self.first.weight.chunk(4, dim=1)
        return F.linear(events, of_event - of_difference)

    def forward(
        self,
        candidates: Float[Tensor, "questions candidates dim"],
        events: Float[Tensor, "questions len dim"],
        memory: Float[Tensor, "questions len hidden"],
    ) -> Float[Tensor, "questions candidates len"]:
        """The activation of every event by every candidate; `memory` is of these events."""
        of_candidate, _, of_difference, of_product = self.first.weight.chunk(4, dim=1)
        mapped = F.linear(candidates, of_candidate + of_difference, self.first.bias)
        inner = F.linear(candidates.unsqueeze(2) * events.unsqueeze(1), of_product)
        # In place, because this is the widest thing there is per pair.
        inner.add_(mapped.unsqueeze(2)).add_(memory.unsqueeze(1)).sigmoid_()
        activation: Tensor = self.last(torch.sigmoid(self.second(inner)))
        return activation.squeeze(-1)
