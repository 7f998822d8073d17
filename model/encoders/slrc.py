"""SLRC: what a user chooses in general, plus items that are due to come again."""

import math
from typing import Literal, final

import torch
from jaxtyping import Float, Float64, Int64
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.config import Config
from model.interfaces import EncoderOutput, PositionOutputs, SequenceEncoder
from model.layers.dropout import Dropout
from model.layers.repurchase_kernel import (
    DEFAULT_INTERVAL,
    UNIT_DAYS,
    RepurchaseKernel,
    find_repeats,
    measure_shapes,
    measure_visit_interval,
)


class SLRCConfig(Config):
    """A base intensity of every item, plus the excitation of an item by its past purchases."""

    kind: Literal["slrc"] = "slrc"
    dim: PositiveInt = 64
    """Width of item and user vectors."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout of item vectors."""
    max_history: PositiveInt = 200
    """Events of a history in use, the most recent ones."""

    def build(self, *, items: int = 0, actions: int = 0) -> "SLRC":  # noqa: ARG002
        """Build the module for a catalog of `items`."""
        return SLRC(items=items, dim=self.dim, dropout=self.dropout)


@final
class SLRC(SequenceEncoder):
    """Ranks items by an intensity: a base per user and item, plus what past purchases excite.

    The intensity of item i at time T is `exp(user . item + bias) + alpha_i sum g_i(T - t)` over the
    past purchases of i by the user, `g_i(d) = (1 - pi_i) Exp(d; beta_i) + pi_i Normal(d; mu_i,
    sigma_i)`: a short-term effect, and one that peaks after the item's lifetime. Every position is
    exact at its own query time. The attention weight of an event is its share of the excitation at
    the query time.

    Shape: items (batch, len, dim) -> user (batch, dim), and one repeat score per event

    Paper: Wang et al. 2019, "Modeling Item-Specific Temporal Dynamics of Repeat Consumption for
        Recommender Systems", with a factorisation as the base intensity.
    DIFFERS(paper): the user vector is a linear map of the mean of the history's item vectors, not a
        vector per user, so that users unknown in training are served alike.
    DIFFERS(paper): trained by the loss of the recipe, such as a softmax over the catalog; the paper
        compares pairs, which `fit.loss` of kind `bpr` does.
    DIFFERS(paper): the base intensity is an exponential, so that it is positive; intensities are
        compared by their logarithms.
    DIFFERS(code): an item's parameters are a shared value plus an offset, which changes little
        where the item has few repeats; `alpha`, `beta` and `sigma` are exponentials and `pi` a
        sigmoid instead of clipped values. `alpha` starts at the number of items instead of 1; `mu`
        and `sigma` at the mean and the standard deviation of an item's repeat intervals, drawn to
        those of all, instead of at the mean of all and at ten weeks.
    DIFFERS(code): `beta` and `sigma` are at least a quarter of a day; there they are only positive.
    DIFFERS(code): where the query time is withheld, a learned interval since the last event stands
        in its place.
    """

    def __init__(self, *, items: int, dim: int, dropout: float) -> None:
        super().__init__()
        self.dim = dim
        self.dropout = Dropout(dropout)
        self.base = nn.Linear(dim, dim)
        self.kernel = RepurchaseKernel(items=items)
        self.log_withheld = nn.Parameter(torch.tensor(math.log(DEFAULT_INTERVAL / UNIT_DAYS)))

    @torch.no_grad()
    def start_from(
        self,
        rows: Int64[Tensor, " events"],
        times: Int64[Tensor, " events"],
        users: Int64[Tensor, " events"],
    ) -> None:
        """Start the lifetimes of items at their repeat intervals."""
        repeats = find_repeats(rows, times, users, most_earlier=1)
        self.kernel.start_at(measure_shapes(repeats, items=len(self.kernel.offsets) - 1))
        self.log_withheld.fill_(math.log(measure_visit_interval(times, users) / UNIT_DAYS))

    def encode_positions(
        self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]
    ) -> PositionOutputs:
        """Compute the base and the excitation at every position, from the events up to it."""
        counts = torch.arange(1, items.shape[1] + 1, device=items.device, dtype=items.dtype)
        means = self.dropout(items).cumsum(1) / counts.unsqueeze(-1)
        excitation = self._excite(batch, batch.query_times, batch.query_given)
        return PositionOutputs(self.base(means), repeat_scores=excitation)

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> EncoderOutput:
        """Compute the base and the excitation after the last event of each history."""
        lasts = batch.lengths.unsqueeze(1) - 1
        excitation = self._excite(
            batch, batch.query_times.gather(1, lasts), batch.query_given.gather(1, lasts)
        ).squeeze(1)
        is_event = torch.arange(items.shape[1], device=items.device) <= lasts
        excitation = excitation.masked_fill(~is_event, float("-inf"))
        sums = (self.dropout(items) * is_event.unsqueeze(-1)).sum(1)
        return EncoderOutput(
            user=self.base(sums / batch.lengths.unsqueeze(1)),
            attention=excitation.softmax(-1).unsqueeze(1),
            repeat_scores=excitation,
        )

    def _excite(
        self,
        batch: SequenceBatch,
        query_times: Float64[Tensor, "batch queries"],
        given: Tensor,
    ) -> Float[Tensor, "batch queries len"]:
        """Compute the logarithm of the excitation by each event; later ones have no meaning."""
        days = query_times.unsqueeze(2) - batch.times.unsqueeze(1)
        intervals = (days / UNIT_DAYS).clamp(min=0).float()
        intervals = intervals + torch.where(given, 0.0, self.log_withheld.exp()).unsqueeze(2)
        excitation: Tensor = self.kernel(batch.rows.unsqueeze(1), intervals)
        return excitation
