"""Self-attention over content and time features of the interval to the query time.

Keys and values depend on both the event and the query time, yet no tensor is computed per pair:
the Fourier basis of an interval is a rotation of the basis at the event's time (`fourier_basis`).
"""

import math
from typing import NamedTuple, final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Complex64, Float, Float64
from torch import Tensor, nn

from model.layers.fourier_basis import BasisProjection, basis, rotate

_SLOWEST, _FASTEST = 3650.0, 365.0
"""Half-lives of damping at the start, in days."""

EventPhasors = Complex64[Tensor, "#batch len frequencies"]
QueryPhasors = Complex64[Tensor, "#batch queries frequencies"]


class KeyValues(NamedTuple):
    """Keys and values per event: content first, then the basis at the event's own time.

    They do not depend on a query time, so one history can be queried at many times.
    """

    keys: Float[Tensor, "batch heads len width"]
    values: Float[Tensor, "batch heads len width"]


class AttentionMask(NamedTuple):
    """Which events each query attends to, all by default, and a bias on the logits.

    Attributes:
        visible: true where the query may attend to the event.
        is_causal: whether query i attends to the first i + 1 events only.
        bias: added to the logits, such as a kernel of the two instants.
    """

    visible: Bool[Tensor, "batch #queries len"] | None = None
    is_causal: bool = False
    bias: Float[Tensor, "batch heads queries len"] | None = None


NO_MASK = AttentionMask()


@final
class TimeProjection(nn.Module):
    """A linear map of time features; `time_dim` may be 0.

    It starts as `nn.Linear` does, so features of a small norm start weaker than content. Scaling
    them to its strength cost Mercer alone a point on Stack Overflow and changed little elsewhere
    (docs/decisions/0029).

    Shape: features (*, time_dim) -> (*, dim)
    """

    def __init__(self, *, time_dim: int, dim: int) -> None:
        super().__init__()
        bound = max(time_dim, 1) ** -0.5
        self.weight = nn.Parameter(torch.empty(dim, time_dim).uniform_(-bound, bound))

    def forward(self, features: Float[Tensor, "*shape time_dim"]) -> Float[Tensor, "*shape dim"]:
        """Project features."""
        return F.linear(features, self.weight)

    def compose(self, projection: BasisProjection) -> Float[Tensor, "dim basis"]:
        """Return the weight of the same map applied to the Fourier basis: `U C`."""
        return self.weight @ projection.weight


@final
class KernelScale(nn.Module):
    """Scales a time kernel, per head, before it is added to the attention logits.

    Shape: kernel (batch, queries, len) -> (batch, heads, queries, len)

    Paper: NTKA 2022.
    DIFFERS(code): a learned scale that starts at one, where the code divides by
        `exp(sqrt(head_dim))`: behind a divisor of hundreds a kernel takes far longer to learn.
    DIFFERS(code): one kernel for all blocks, scaled per block and head; the code has one per block.
    """

    def __init__(self, *, heads: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(heads))

    def forward(
        self, kernel: Float[Tensor, "batch queries len"]
    ) -> Float[Tensor, "batch heads queries len"]:
        """Compute the bias on the logits of every head."""
        return kernel.unsqueeze(1) * self.scale[:, None, None]


@final
class Damping(nn.Module):
    """Rates at which attention forgets, one per head: weights halve after ln(2) / rate days.

    A logit gains `-rate (T_q - t_i)`. Its part `-rate T_q` is the same for all events, so that
    the softmax drops it: `t_i` is a coordinate of the key and `rate` one of the query. Nothing is
    exponentiated, so decades of history neither overflow nor vanish.

    Shape: queries (batch, heads, queries, width) -> (batch, heads, queries, 1)
    """

    def __init__(self, *, heads: int) -> None:
        super().__init__()
        half_lives = torch.logspace(math.log10(_SLOWEST), math.log10(_FASTEST), heads)
        self.log_rates = nn.Parameter((math.log(2) / half_lives).log())

    def forward(
        self, queries: Float[Tensor, "batch heads queries width"]
    ) -> Float[Tensor, "batch heads queries 1"]:
        """Compute the coordinate of the queries."""
        return self.log_rates.exp()[:, None, None].expand(*queries.shape[:-1], 1)


@final
class TimeAwareQueryKey(nn.Module):
    """Query and key projections whose products are time-aware attention logits.

    The key of event i for a query at `T_q` is `K_qi = W z_i + U phi(T_q - t_i)`. With the features
    `phi = C b + o` of the time encoding, the logit is

        q . K_qi = q . (W z_i + U o)  +  (R(T_q) C' U' q) . b(t_i)

    so keys are `[W z_i + U o, b(t_i)]`, which depend on the event only, queries are
    `[q, R(T_q) C' U' q]`, which depend on the query time only, and their product is the logit.

    The query projection is linear by default, or any module passed as `query`: it belongs to a
    single query time, so the rotation does not require it to be linear.

    Paper: Xu et al. 2019, section 6: keys are `[Z, phi(T - t)]` times one matrix `[W, U]`.

    Raises:
        ValueError: if `heads` does not divide `dim`.
    """

    def __init__(
        self, *, dim: int, heads: int, time_dim: int, query: nn.Module | None = None
    ) -> None:
        super().__init__()
        if dim % heads:
            raise ValueError(f"heads must divide dim, but {dim=}, {heads=}; change one of them")
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.query_proj = nn.Linear(dim, dim) if query is None else query
        self.key_proj = nn.Linear(dim, dim)
        self.time_key_proj = TimeProjection(time_dim=time_dim, dim=dim)

    def project_keys(
        self,
        states: Float[Tensor, "batch len dim"],
        events: EventPhasors,
        projection: BasisProjection,
    ) -> Float[Tensor, "batch heads len width"]:
        """Project events to keys."""
        content = self.key_proj(states) + self.time_key_proj(projection.bias)
        return append_basis(content, events, self.heads)

    def project_queries(
        self,
        states: Float[Tensor, "batch queries inputs"],
        queries: QueryPhasors,
        projection: BasisProjection,
    ) -> Float[Tensor, "batch heads queries width"]:
        """Project positions to scaled queries at the query times of `queries`.

        `states` has the input width of the query projection.
        """
        content = split_heads(self.query_proj(states) * self.scale, self.heads)
        coefficients = content @ compose_by_head(self.time_key_proj, projection, self.heads)
        return torch.cat((content, rotate(coefficients, queries.unsqueeze(1))), dim=-1)


@final
class TimeAwareAttention(nn.Module):
    """Multi-head attention over `[z_i, phi(T_q - t_i)]`: content and time features.

    Logits are those of `TimeAwareQueryKey`. Values `V_qi = W z_i + U phi(T_q - t_i)` are rotated
    after the weighted sum: their time part sums to `U C R(T_q) sum_i a_qi b(t_i)`. Attention
    itself is therefore one fused call on heads that are `2 * frequencies` wider.

    Shape: states (batch, len, dim) -> (batch, len, dim)

    Paper: Xu et al. 2019, section 6.
    DIFFERS(paper): keys and values are linear in `[Z, phi]`, which the rotation requires; queries
        may be a perceptron of it, as in the paper.
    DIFFERS(code): every position has its own query time, exactly, in one pass.
    DIFFERS(code): an output projection follows the heads, which the code lacks.
    """

    def __init__(
        self,
        *,
        dim: int,
        heads: int,
        time_dim: int,
        query: nn.Module | None = None,
        damping: bool = False,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.query_key = TimeAwareQueryKey(dim=dim, heads=heads, time_dim=time_dim, query=query)
        self.damping = Damping(heads=heads) if damping else None
        self.value_proj = nn.Linear(dim, dim)
        self.time_value_proj = TimeProjection(time_dim=time_dim, dim=dim)
        self.out_proj = nn.Linear(dim, dim)

    def project_kv(
        self,
        states: Float[Tensor, "batch len dim"],
        events: EventPhasors,
        projection: BasisProjection,
        days: Float64[Tensor, "#batch len"] | None = None,
    ) -> KeyValues:
        """Project events to keys and values.

        Args:
            days: times of the events from any origin, which damping needs.
        """
        values = self.value_proj(states) + self.time_value_proj(projection.bias)
        key_values = KeyValues(
            self.query_key.project_keys(states, events, projection),
            append_basis(values, events, self.heads),
        )
        if self.damping is None or days is None:
            return key_values
        column = F.pad(days.to(values.dtype)[:, None, :, None], (0, 1))
        column = column.expand(len(values), self.heads, -1, -1)
        # Fused attention needs keys and values of one width, and rotation needs an even one.
        return KeyValues(
            torch.cat((key_values.keys, column), dim=-1), F.pad(key_values.values, (0, 2))
        )

    def attend(
        self,
        states: Float[Tensor, "batch queries inputs"],
        key_values: KeyValues,
        queries: QueryPhasors,
        projection: BasisProjection,
        mask: AttentionMask = NO_MASK,
    ) -> Float[Tensor, "batch queries dim"]:
        """Attend from `states`, at the query times of `queries`, to the events."""
        visible, is_causal, bias = mask
        attn_mask = None if visible is None else visible.unsqueeze(1)
        if bias is not None:
            masked = _build_mask(mask, bias)
            attn_mask = bias if masked is None else bias.masked_fill(masked, float("-inf"))
        output = F.scaled_dot_product_attention(
            self._project_queries(states, queries, projection),
            key_values.keys,
            key_values.values,
            attn_mask=attn_mask,
            is_causal=is_causal and attn_mask is None,
            scale=1.0,
        )
        return self._merge_heads(output, queries, projection)

    def attention_weights(
        self,
        states: Float[Tensor, "batch queries inputs"],
        key_values: KeyValues,
        queries: QueryPhasors,
        projection: BasisProjection,
        mask: AttentionMask = NO_MASK,
    ) -> Float[Tensor, "batch heads queries len"]:
        """Compute the attention weights: per query, a distribution over its visible events."""
        query_heads = self._project_queries(states, queries, projection)
        logits = query_heads @ key_values.keys.transpose(-1, -2)
        if mask.bias is not None:
            logits = logits + mask.bias
        masked = _build_mask(mask, logits)
        if masked is not None:
            logits = logits.masked_fill(masked, float("-inf"))
        return logits.softmax(-1)

    def apply_weights(
        self,
        weights: Float[Tensor, "batch heads queries len"],
        key_values: KeyValues,
        queries: QueryPhasors,
        projection: BasisProjection,
    ) -> Float[Tensor, "batch queries dim"]:
        """Compute the output of `attend` from given weights, which need not sum to one."""
        return self._merge_heads(weights @ key_values.values, queries, projection)

    def _project_queries(
        self, states: Tensor, queries: Tensor, projection: BasisProjection
    ) -> Tensor:
        heads = self.query_key.project_queries(states, queries, projection)
        if self.damping is None:
            return heads
        return torch.cat((heads, F.pad(self.damping(heads), (0, 1))), dim=-1)

    def _merge_heads(self, output: Tensor, queries: Tensor, projection: BasisProjection) -> Tensor:
        if self.damping is not None:
            output = output[..., :-2]
        merged: Tensor = self.out_proj(
            merge_heads(output, queries, self.time_value_proj, projection, self.heads)
        )
        return merged


def _build_mask(mask: AttentionMask, logits: Tensor) -> Tensor | None:
    """Build the mask that is true where a query must not attend; it broadcasts against logits."""
    if mask.is_causal:
        return torch.ones_like(logits[0, 0], dtype=torch.bool).triu(1)
    return None if mask.visible is None else ~mask.visible.unsqueeze(1)


def split_heads(states: Tensor, heads: int) -> Tensor:
    """Split the heads: batch, len, dim -> batch, heads, len, head_dim."""
    batch, length, dim = states.shape
    return states.view(batch, length, heads, dim // heads).transpose(1, 2)


def append_basis(content: Tensor, events: Tensor, heads: int) -> Tensor:
    """Split content into heads and append the event-time basis, which all heads share."""
    shared = basis(events).unsqueeze(1).expand(content.shape[0], heads, -1, -1)
    return torch.cat((split_heads(content, heads), shared), dim=-1)


def merge_heads(
    output: Tensor,
    queries: Tensor,
    time_value_proj: TimeProjection,
    projection: BasisProjection,
    heads: int,
) -> Tensor:
    """Rotate the time part of the weighted sums, project it, add the content, join the heads.

    batch, heads, queries, width -> batch, queries, dim
    """
    by_head = compose_by_head(time_value_proj, projection, heads)
    content, basis_sums = torch.split(output, list(by_head.shape[1:]), dim=-1)
    time_part = rotate(basis_sums, queries.unsqueeze(1)) @ by_head.transpose(-1, -2)
    return (content + time_part).transpose(1, 2).flatten(2)


def compose_by_head(
    time_projection: TimeProjection, projection: BasisProjection, heads: int
) -> Tensor:
    """Compute `U C` per head: heads, head_dim, 2 * frequencies."""
    composed = time_projection.compose(projection)
    return composed.view(heads, len(composed) // heads, composed.shape[-1])
