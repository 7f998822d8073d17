"""The activation unit of DIN: the relevance of each past event to a candidate item."""

from typing import final

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


@final
class LocalActivation(nn.Module):
    """A perceptron of a candidate, an event, their difference and their product.

        activation(q, k) = w . f(W_2 f(W_1 [q, k, q - k, q * k] + b_1) + b_2) + b,  f = PReLU

    The concatenated input of a pair is never materialised: with `W_1 = [A, B, C, D]`, the first
    layer is `(A + C) q + (B - C) k + D (q * k)`, of which only the last term depends on both.

    Shape: candidates (queries, candidates, dim), events (queries, len, dim)
        -> activations (queries, candidates, len)

    Paper: Zhou et al. 2018, "Deep Interest Network for Click-Through Rate Prediction", figure 2,
        with the input of the authors' code.
    DIFFERS(code): PReLU between the layers, as in the paper; the code has sigmoids.

    Args:
        hidden: widths of the two hidden layers.
        bias: whether activations have the bias b, which a softmax over events would cancel.
    """

    def __init__(self, *, dim: int, hidden: tuple[int, int], bias: bool) -> None:
        super().__init__()
        self.linear1 = nn.Linear(4 * dim, hidden[0])
        self.linear2 = nn.Linear(*hidden)
        self.out_proj = nn.Linear(hidden[1], 1, bias=bias)
        self.activation1, self.activation2 = nn.PReLU(), nn.PReLU()

    def project_events(
        self, events: Float[Tensor, "batch len dim"]
    ) -> Float[Tensor, "batch len hidden"]:
        """Compute the term of the first layer that depends on the events only."""
        _, event_weight, difference_weight, _ = self.linear1.weight.chunk(4, dim=1)
        return F.linear(events, event_weight - difference_weight)

    def forward(
        self,
        candidates: Float[Tensor, "queries candidates dim"],
        events: Float[Tensor, "queries len dim"],
        projected_events: Float[Tensor, "queries len hidden"],
    ) -> Float[Tensor, "queries candidates len"]:
        """Compute the activation of every event by every candidate.

        `projected_events` is the result of `project_events(events)`.
        """
        candidate_weight, _, difference_weight, product_weight = self.linear1.weight.chunk(4, dim=1)
        projected = F.linear(candidates, candidate_weight + difference_weight, self.linear1.bias)
        inner = F.linear(candidates.unsqueeze(2) * events.unsqueeze(1), product_weight)
        # In place: this is the largest tensor per pair.
        inner.add_(projected.unsqueeze(2)).add_(projected_events.unsqueeze(1))
        hidden = self.activation2(self.linear2(self.activation1(inner)))
        activation: Tensor = self.out_proj(hidden)
        return activation.squeeze(-1)
