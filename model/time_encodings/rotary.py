"""Rotary embedding of content by order and time: TO-RoPE (Wei et al. 2025)."""

import math
from typing import Literal, final

import torch
import torch.nn.functional as F
from jaxtyping import Float64
from pydantic import Field, PositiveFloat
from torch import Tensor

from model.config import Config
from model.interfaces import ContentRotation, PlaneFrequencies
from model.layers.periods import ensure_ordered


class RotaryConfig(Config):
    """Queries and keys of content turn by order in some planes and by time in others."""

    kind: Literal["rotary"] = "rotary"
    fusion: Literal["split_by_dim", "split_by_head", "early"] = "split_by_dim"
    """split_by_dim: each head has planes for order and planes for time; split_by_head: each head
    turns by one of them; early: every plane turns by the sum of both angles."""
    time_share: float = Field(default=0.5, ge=0, le=1)
    """Share of planes, or of heads, that turn by time, rounded to whole ones: a head alone turns by
    time from a share of 0.5, and by order alone below. Not with `early`."""
    shortest_period: PositiveFloat = 1 / 24
    """Shortest period of time, in days; 1/24 is an hour."""
    longest_period: PositiveFloat = 1460.0
    """Longest period of time, in days."""
    order_base: float = Field(default=10_000.0, gt=1)
    """`theta` of RoPE: of `n` planes of order, plane `k` turns by `theta ** (-k / n)` radians per
    event."""

    def build(self) -> "Rotary":
        """Build the module."""
        return Rotary(**self.model_dump(exclude={"kind"}))


@final
class Rotary(ContentRotation):
    """Rotary position embedding whose angles are of order and of time, at fixed frequencies.

    The logit of a query at position `q` and a key at `i` is, for each plane of a head (a pair of
    coordinates as a complex number), the real part of

        conj(q_k) k_k exp(-i (u_k (q - i) + w_k (T_q - t_i)))

    where `u_k` or `w_k` is 0 in a plane that the other turns. Values do not turn. It has no
    parameters.

    Shape: heads, planes -> frequencies of order and of time (heads, planes)

    Paper: Wei et al. 2025, "Rotate Both Ways: Time-and-Order RoPE for Generative Recommendation",
        from its abstract and public summaries of its formulas; its authors publish no code. The
        angle is `(1 - g_k) a i u_k + g_k b t w_k`: with gates `g_k` of 0 or 1 it is split by
        dimension or by head; early fusion has both terms in every plane.
    DIFFERS(paper): a query turns to its own query time, where the paper has the time of its event.
    DIFFERS(paper): periods of time are in days, log-uniform between two bounds, in place of a base
        and a scale of timestamps; early fusion has no gates, which would scale the periods.
    """

    def __init__(
        self,
        *,
        fusion: Literal["split_by_dim", "split_by_head", "early"],
        time_share: float,
        shortest_period: float,
        longest_period: float,
        order_base: float,
    ) -> None:
        super().__init__()
        self.fusion, self.time_share = fusion, time_share
        self.shortest, self.longest, self.order_base = shortest_period, longest_period, order_base
        ensure_ordered(shortest_period, longest_period)

    def frequencies(self, *, heads: int, planes: int, device: torch.device) -> PlaneFrequencies:
        """Compute the frequencies of all planes: slowest last, planes of time after those of order.

        With `split_by_head`, heads of time come after those of order.
        """
        parts = heads if self.fusion == "split_by_head" else planes
        of_time = math.floor(self.time_share * parts + 0.5)
        if self.fusion == "split_by_dim":
            order = self._order_ladder(planes - of_time, device)
            time = self._time_ladder(of_time, device)
            order, time = F.pad(order, (0, of_time)), F.pad(time, (planes - of_time, 0))
        else:
            order = self._order_ladder(planes, device)
            time = self._time_ladder(planes, device)
        order, time = order.expand(heads, -1), time.expand(heads, -1)
        if self.fusion == "split_by_head":
            by_time = torch.arange(heads, device=device).unsqueeze(1) >= heads - of_time
            order, time = order * ~by_time, time * by_time
        return PlaneFrequencies(order, time)

    def _order_ladder(self, count: int, device: torch.device) -> Float64[Tensor, " count"]:
        """Compute `order_base ** (-k / count)` radians per event."""
        steps = torch.arange(count, dtype=torch.float64, device=device) / max(count, 1)
        return self.order_base**-steps

    def _time_ladder(self, count: int, device: torch.device) -> Float64[Tensor, " count"]:
        """Compute `2 pi` over periods between the bounds, both included, in radians per day."""
        steps = torch.arange(count, dtype=torch.float64, device=device) / max(count - 1, 1)
        return 2 * math.pi / self.shortest * (self.longest / self.shortest) ** -steps
