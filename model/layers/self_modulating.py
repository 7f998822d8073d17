"""Self-modulating attention: past events weigh by how likely their kind is at the query time."""

from typing import Literal, NamedTuple, final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Float64, Int64
from pydantic import Field
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.config import Config
from model.layers.item_groups import ItemGroups
from model.layers.time_aware_attention import split_heads

LEAST = 1e-8
"""Events per day that any intensity has at least, so that its logarithm is finite."""


class ModulationConfig(Config):
    """How many groups of items have an intensity of their own, and how that reads an interval."""

    groups: int = Field(default=8, ge=1, le=256)
    interval: Literal["log", "days"] = "log"
    """log: log(1 + days); days: days as they are, the form of the authors' code."""
    base_rate: bool = False
    """Give each group the constant mu_k of the poster, which the authors' code lacks."""

    def build(self, *, dim: int, heads: int) -> "SelfModulation":
        """The module this describes, for one attention layer."""
        return SelfModulation(**self.model_dump(), dim=dim, heads=heads)


class ModulationView(NamedTuple):
    """What modulation reads of a batch beside the attention weights, shared by all layers.

    Attributes:
        marks: 1 where an event's item belongs to a group; an item may belong to several.
        intervals: days from each query position's own event to its query time.
        given: false where the query time is withheld.
    """

    marks: Float[Tensor, "batch len groups"]
    intervals: Float64[Tensor, "batch queries"]
    given: Bool[Tensor, "batch queries"]

    @classmethod
    def of(cls, batch: SequenceBatch, item_groups: ItemGroups) -> "ModulationView":
        """Every position of a batch as a query."""
        return cls(item_groups(batch.rows), batch.query_times - batch.times, batch.query_given)

    def at(self, positions: Int64[Tensor, " batch"]) -> "ModulationView":
        """The same events, asked about at one position of each history."""
        histories = torch.arange(len(positions), device=positions.device)
        return self._replace(
            intervals=self.intervals[histories, positions].unsqueeze(1),
            given=self.given[histories, positions].unsqueeze(1),
        )


class Modulated(NamedTuple):
    """Attention weights after modulation, and the intensities they were modulated by.

    Attributes:
        weights: no longer a distribution: they sum to the mean intensity of what was attended to.
        intensity: of every group at each query's own instant, per day.
        intensities: the same as functions of the interval.
    """

    weights: Float[Tensor, "batch heads queries len"]
    intensity: Float[Tensor, "batch heads queries groups"]
    intensities: "LayerIntensities"


@final
class SelfModulation(nn.Module):
    """Scales the attention to every past event by the intensity of its group at the query time.

    With attention weights `A` and a value path `T` of its own, `H_q = sum_i A_qi T_i` is what a
    query knows of its history. From it and the interval `d` since the query's own event follow

        g_k = sigmoid(W_k H_q + b_k f(d) + c_k)        dynamics of group k
        lambda_k = phi_k softplus((w_k . g_k + mu_k) / phi_k)        its intensity, per day
        A~_qi = A_qi sum over the groups k of item i of lambda_k

    A query is whatever weighs events: a position of a causal pass, the last position alone, or a
    candidate (heads = 1, the intervals repeated per candidate). `remember` is the value path; the
    call modulates.

    Shape: weights (batch, heads, queries, len) -> the same

    Paper: Chen et al. 2021, "Self-Modulating Attention in Continuous Time Space", the SMLayer.
    DIFFERS(code): `f` is log(1 + days) by default, where the code feeds raw time units.
    DIFFERS(code): an item of no group keeps its plain weight, where the code gives it none, so that
        a history of such items is still read.
    DIFFERS(code): where the query time is withheld, a learned vector stands for the interval.
    DIFFERS(paper): mu_k is optional; the code has none.
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
            raise ValueError(f"heads must divide dim, however: {dim=}, {heads=}")
        self.heads, self.groups = heads, groups
        self.interval = interval
        width = dim // heads
        self.value = nn.Linear(dim, dim)
        # One map for all groups, shared over heads; its bias is c_k.
        self.endogenous = nn.Linear(width, groups * width)
        self.exogenous = nn.Parameter(torch.empty(groups, width))
        self.withheld = nn.Parameter(torch.zeros(groups, width))
        self.direction = nn.Parameter(torch.empty(groups, width))
        self.log_scale = nn.Parameter(torch.zeros(groups))
        self.base_rate = nn.Parameter(torch.zeros(groups)) if base_rate else None
        nn.init.uniform_(self.exogenous, -(width**-0.5), width**-0.5)
        nn.init.uniform_(self.direction, -((6 / (width + 1)) ** 0.5), (6 / (width + 1)) ** 0.5)

    def remember(
        self, states: Float[Tensor, "batch len dim"]
    ) -> Float[Tensor, "batch heads len head_dim"]:
        """`T`: what intensities read of events."""
        return split_heads(self.value(states), self.heads)

    def forward(
        self,
        weights: Float[Tensor, "batch heads queries len"],
        memory: Float[Tensor, "batch heads len head_dim"],
        view: ModulationView,
    ) -> Modulated:
        """Modulate the weights of some queries, given what was remembered of the events."""
        history: Tensor = self.endogenous(weights @ memory)
        intensity = self.intensity(history, view.intervals, view.given)
        # An item of no group is in one more, of a constant intensity of one.
        plain = (view.marks == 0).all(-1, keepdim=True).float()
        marks = torch.cat((view.marks, plain), dim=-1)
        rates = torch.cat((intensity, torch.ones_like(intensity[..., :1])), dim=-1)
        return Modulated(
            weights * (rates @ marks.transpose(-1, -2).unsqueeze(1)),
            intensity,
            LayerIntensities(self, history),
        )

    def intensity(
        self,
        history: Float[Tensor, "batch heads queries width"],
        intervals: Float64[Tensor, "batch queries"],
        given: Bool[Tensor, "batch queries"],
    ) -> Float[Tensor, "batch heads queries groups"]:
        """`lambda_k`, from what queries know of their history and from intervals in days."""
        # Only padding has negative intervals, and its logarithm must not be NaN.
        days = intervals.clamp(min=0)
        read = (days.log1p() if self.interval == "log" else days).float()
        told = torch.stack((read * given, (~given).float()), dim=-1)
        # One pass over (queries, groups x head_dim), which is most of what modulation costs.
        dynamics = torch.addmm(
            history.flatten(0, 2),
            told.unsqueeze(1).expand(-1, self.heads, -1, -1).flatten(0, 2),
            torch.stack((self.exogenous, self.withheld)).flatten(1),
        ).sigmoid_()
        of_own_group = torch.eye(self.groups, device=dynamics.device).unsqueeze(1)
        direction = (self.direction.unsqueeze(-1) * of_own_group).flatten(0, 1)
        drive = (dynamics @ direction).view(*history.shape[:-1], self.groups)
        if self.base_rate is not None:
            drive = drive + self.base_rate
        scale = self.log_scale.exp()
        return scale * F.softplus(drive / scale) + LEAST


@final
class LayerIntensities:
    """How the intensities that one layer sees go on from each position's own event.

    The history part `W_k H_q + c_k` stands still and the interval varies. That is our reading of
    lambda between two events: attention below and in the layer itself was asked about the query
    time, and stays so.
    """

    def __init__(
        self,
        modulation: SelfModulation,
        history: Float[Tensor, "batch heads len width"],
    ) -> None:
        self._modulation = modulation
        self.history = history

    def at(
        self, intervals: Float64[Tensor, "batch len"]
    ) -> Float[Tensor, "batch heads len groups"]:
        """The intensities after these intervals, in days, withheld query times or not."""
        told = torch.ones_like(intervals, dtype=torch.bool)
        return self._modulation.intensity(self.history, intervals, told)
