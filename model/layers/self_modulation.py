"""Self-modulating attention: scales attention weights by group intensities at the query time."""

from typing import Literal, NamedTuple, final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Float64, Int64
from pydantic import Field
from torch import Tensor, nn

from model.batch import SequenceBatch, gather_positions, select_positions
from model.config import Config
from model.layers.heads import split_heads
from model.layers.item_groups import ItemGroups

MIN_INTENSITY = 1e-8
"""Events per day added to every intensity, so that its logarithm is finite."""


class ModulationConfig(Config):
    """Intensities of item groups, which scale the attention weights of their events."""

    groups: int = Field(default=8, ge=1, le=256)
    """Number of item groups; `data.groups` selects their source."""
    interval: Literal["log", "days"] = "log"
    """log: log(1 + days); days: the interval in days, the form of the authors' code."""
    base_rate: bool = False
    """Give each group the constant mu_k of the poster, which the authors' code lacks."""

    def build(self, *, dim: int, heads: int) -> "SelfModulation":
        """Build the module of one attention layer."""
        return SelfModulation(**self.model_dump(), dim=dim, heads=heads)


class ModulationInputs(NamedTuple):
    """The inputs of modulation beside the attention weights, shared by all layers.

    Attributes:
        membership: 1 where an event's item belongs to a group; an item may belong to several.
        intervals: days from each query position's own event to its query time.
        given: false where the query time is withheld.
    """

    membership: Float[Tensor, "batch len groups"]
    intervals: Float64[Tensor, "batch queries"]
    given: Bool[Tensor, "batch queries"]

    @classmethod
    def from_batch(cls, batch: SequenceBatch, item_groups: ItemGroups) -> "ModulationInputs":
        """Use every position of a batch as a query."""
        return cls(item_groups(batch.rows), batch.query_times - batch.times, batch.query_given)

    def select(self, positions: Int64[Tensor, " batch"]) -> "ModulationInputs":
        """Keep one query position of each history."""
        return self._replace(
            intervals=select_positions(self.intervals, positions),
            given=select_positions(self.given, positions),
        )

    def take_last(self) -> "ModulationInputs":
        """Keep the last query position."""
        return self._replace(intervals=self.intervals[:, -1:], given=self.given[:, -1:])

    def gather(self, positions: Int64[Tensor, "batch chosen"]) -> "ModulationInputs":
        """Keep several query positions of each history."""
        return self._replace(
            intervals=gather_positions(self.intervals, positions),
            given=gather_positions(self.given, positions),
        )


class ModulationOutput(NamedTuple):
    """Modulated attention weights, and the intensities that scaled them.

    Attributes:
        weights: not a distribution: they sum to the mean intensity over the attended events.
        intensity: of every group at each query time, events per day.
        intensities: the same intensities as functions of the interval.
    """

    weights: Float[Tensor, "batch heads queries len"]
    intensity: Float[Tensor, "batch heads queries groups"]
    intensities: "LayerIntensities"


@final
class SelfModulation(nn.Module):
    """Scales the attention weight of every past event by its group's intensity at the query time.

    With attention weights `A` and a separate value projection `T`, the context of query q is
    `H_q = sum_i A_qi T_i`. With the interval `d` since the query's own event,

        g_k = sigmoid(W_k H_q + b_k f(d) + c_k)        dynamics of group k
        lambda_k = phi_k softplus((w_k . g_k + mu_k) / phi_k)        its intensity, events per day
        A~_qi = A_qi sum over the groups k of item i of lambda_k

    A query is a position of a causal pass, the last position, or a candidate (heads = 1, the
    intervals repeated per candidate).

    Shape: weights (batch, heads, queries, len) -> weights of the same shape

    Paper: Chen et al. 2021, "Self-Modulating Attention in Continuous Time Space", the SMLayer.
    DIFFERS(code): `f` is log(1 + days) by default, where the code uses raw time units.
    DIFFERS(code): an item of no group keeps its attention weight, where the code sets it to zero,
        so that a history of such items still has an output.
    DIFFERS(code): where the query time is withheld, a learned vector replaces the interval.
    DIFFERS(code): every intensity is at least `MIN_INTENSITY`.
    DIFFERS(paper): mu_k is optional; the code has none.

    Raises:
        ValueError: if `heads` does not divide `dim`.
    """

    def __init__(
        self,
        *,
        dim: int,
        heads: int,
        groups: int,
        interval: Literal["log", "days"],
        base_rate: bool,
    ) -> None:
        super().__init__()
        if dim % heads:
            raise ValueError(f"heads must divide dim, but {dim=}, {heads=}; change one of them")
        self.heads, self.groups = heads, groups
        self.interval = interval
        width = dim // heads
        self.value_proj = nn.Linear(dim, dim)
        # One map for all groups, shared over heads; its bias is c_k.
        self.endogenous = nn.Linear(width, groups * width)
        self.exogenous = nn.Parameter(torch.empty(groups, width))
        self.withheld = nn.Parameter(torch.zeros(groups, width))
        self.direction = nn.Parameter(torch.empty(groups, width))
        self.log_scale = nn.Parameter(torch.zeros(groups))
        self.base_rate = nn.Parameter(torch.zeros(groups)) if base_rate else None
        nn.init.uniform_(self.exogenous, -(width**-0.5), width**-0.5)
        nn.init.uniform_(self.direction, -((6 / (width + 1)) ** 0.5), (6 / (width + 1)) ** 0.5)

    def project_values(
        self, states: Float[Tensor, "batch len dim"]
    ) -> Float[Tensor, "batch heads len head_dim"]:
        """Project events to `T`, the values of the intensities."""
        return split_heads(self.value_proj(states), self.heads)

    def forward(
        self,
        weights: Float[Tensor, "batch heads queries len"],
        values: Float[Tensor, "batch heads len head_dim"],
        inputs: ModulationInputs,
    ) -> ModulationOutput:
        """Modulate attention weights; `values` are the events' `project_values`."""
        context: Tensor = self.endogenous(weights @ values)
        intensity = self.intensity(context, inputs.intervals, inputs.given)
        # Items of no group form one more group, of constant intensity one.
        is_ungrouped = (inputs.membership == 0).all(-1, keepdim=True).float()
        membership = torch.cat((inputs.membership, is_ungrouped), dim=-1)
        rates = torch.cat((intensity, torch.ones_like(intensity[..., :1])), dim=-1)
        return ModulationOutput(
            weights * (rates @ membership.transpose(-1, -2).unsqueeze(1)),
            intensity,
            LayerIntensities(self, context),
        )

    def intensity(
        self,
        context: Float[Tensor, "batch heads queries width"],
        intervals: Float64[Tensor, "batch queries"],
        given: Bool[Tensor, "batch queries"],
    ) -> Float[Tensor, "batch heads queries groups"]:
        """Compute `lambda_k` from the queries' context `W_k H_q + c_k` and intervals in days."""
        # Only padding has negative intervals; its logarithm must not be NaN.
        days = intervals.clamp(min=0)
        scaled = (days.log1p() if self.interval == "log" else days).float()
        event_interval = torch.stack((scaled * given, (~given).float()), dim=-1)
        # One pass over (queries, groups x head_dim), most of the cost of modulation.
        dynamics = torch.addmm(
            context.flatten(0, 2),
            event_interval.unsqueeze(1).expand(-1, self.heads, -1, -1).flatten(0, 2),
            torch.stack((self.exogenous, self.withheld)).flatten(1),
        ).sigmoid_()
        block_diagonal = torch.eye(self.groups, device=dynamics.device).unsqueeze(1)
        direction = (self.direction.unsqueeze(-1) * block_diagonal).flatten(0, 1)
        drive = (dynamics @ direction).view(*context.shape[:-1], self.groups)
        if self.base_rate is not None:
            drive = drive + self.base_rate
        scale = self.log_scale.exp()
        return scale * F.softplus(drive / scale) + MIN_INTENSITY


@final
class LayerIntensities:
    """The intensities of one layer as functions of the interval since each position's own event.

    Between two events only the interval varies. The context depends on the query times that
    attention in and below the layer has used: for an intensity that depends on the past alone,
    these are the times of the events themselves (`SequenceBatch.at_event_times`).

    Attributes:
        context: `W_k H_q + c_k`, which stays fixed while the interval varies.
    """

    def __init__(
        self,
        modulation: SelfModulation,
        context: Float[Tensor, "batch heads len width"],
    ) -> None:
        self._modulation = modulation
        self.context = context

    def evaluate(
        self, intervals: Float64[Tensor, "batch len"]
    ) -> Float[Tensor, "batch heads len groups"]:
        """Compute the intensities after intervals in days, also where query times are withheld."""
        given = torch.ones_like(intervals, dtype=torch.bool)
        return self._modulation.intensity(self.context, intervals, given)
