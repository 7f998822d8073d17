"""Self-attention over content and time features of the interval to the query time.

Keys and values depend on both the event and the query time, yet no tensor is computed per pair:
the Fourier basis of an interval is a rotation of the basis at the event's time (`fourier_basis`).
Only a damped basis is computed per pair, and only once for all blocks.
"""

import math
from typing import NamedTuple, final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Float64
from torch import Tensor, nn

from model.layers.composed_maps import (
    AffineMap,
    TimeProjection,
    compose_by_head,
    compose_output,
)
from model.layers.damped_basis import DampedBasis
from model.layers.derived import DerivingModule
from model.layers.fourier_basis import BasisProjection, Rotation, conjugate, pad_ones
from model.layers.heads import split_last

_SLOWEST, _FASTEST = 3650.0, 365.0
"""Half-lives of damping at the start, in days."""

EventBasis = Float[Tensor, "#batch len basis"]
QueryBasis = Float[Tensor, "#batch queries basis"]
HeadPhasors = Float[Tensor, "#batch instants #heads turned"]
"""By how much the planes of content turn, as cosines and sines."""


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
    """

    def __init__(self, *, heads: int) -> None:
        super().__init__()
        half_lives = torch.logspace(math.log10(_SLOWEST), math.log10(_FASTEST), heads)
        self.log_rates = nn.Parameter((math.log(2) / half_lives).log())

    def compute_rates(self) -> Float[Tensor, " heads"]:
        """Compute the rates, per day."""
        return self.log_rates.exp()


@final
class QueryMLP(nn.Module):
    """`ReLU([Z, Z_T] W_0 + b_0) W_1 + b_1`: a query projection that is not linear in time.

    Shape: states beside interval features (*, 2 * dim) -> (*, dim)

    Paper: Xu et al. 2019, section 6.
    """

    def __init__(self, *, dim: int) -> None:
        super().__init__()
        self.linear1 = nn.Linear(2 * dim, dim)
        self.linear2 = nn.Linear(dim, dim)

    def compute_hidden(self, inputs: Float[Tensor, "*shape inputs"]) -> Float[Tensor, "*shape dim"]:
        """Compute the hidden layer."""
        return F.relu(self.linear1(inputs))

    def forward(self, inputs: Float[Tensor, "*shape inputs"]) -> Float[Tensor, "*shape dim"]:
        """Project each position to its query."""
        query: Tensor = self.linear2(self.compute_hidden(inputs))
        return query


@final
class TimeAwareQueryKey(DerivingModule):
    """Query and key projections whose products are time-aware attention logits.

    The key of event i for a query at `T_q` is `K_qi = W z_i + U phi(T_q - t_i)`. With the features
    `phi = C b + o` of the time encoding, the logit is

        q . K_qi = q . (W z_i + U o)  +  (R(T_q) C' U' q) . b(t_i)

    so keys are `[W z_i + U o, b(t_i)]`, which depend on the event only, queries are
    `[q, R(T_q) C' U' q]`, which depend on the query time only, and their product is the logit.
    `[q, C' U' q]` is one map of the state, composed from the parameters of both.

    The query projection is linear by default, or a perceptron: it belongs to a single query time,
    so the rotation does not require it to be linear.

    Paper: Xu et al. 2019, section 6: keys are `[Z, phi(T - t)]` times one matrix `[W, U]`.

    Raises:
        ValueError: if `heads` does not divide `dim`.
    """

    def __init__(
        self,
        *,
        dim: int,
        heads: int,
        time_dim: int,
        query: QueryMLP | None = None,
        damping: bool = False,
    ) -> None:
        super().__init__()
        if dim % heads:
            raise ValueError(f"heads must divide dim, but {dim=}, {heads=}; change one of them")
        self.heads = heads
        head_dim = dim // heads
        # Pairs of the basis begin after an even number of coordinates.
        self.content = head_dim + (1 + (head_dim + 1) % 2 if damping else head_dim % 2)
        self.scale = head_dim**-0.5
        self.query_proj = nn.Linear(dim, dim) if query is None else query
        self.key_proj = nn.Linear(dim, dim)
        self.time_key_proj = TimeProjection(time_dim=time_dim, dim=dim)

    def build_rotation(
        self,
        queries: QueryBasis,
        *,
        phasors: HeadPhasors | None = None,
        damped: DampedBasis | None = None,
    ) -> Rotation | DampedBasis:
        """Build what depends on the query times.

        Args:
            phasors: of the content, where that is rotated; then without a basis.
            damped: where the basis is damped; then `queries` are empty.
        """
        if phasors is not None:
            return Rotation.build_of_content(phasors, self.content)
        if damped is not None:
            return damped
        ones = self.derive("ones", lambda: pad_ones(queries, self.content))
        return Rotation.build(queries, ones)

    def rotate_keys(
        self, keys: Float[Tensor, "batch heads len width"], phasors: HeadPhasors
    ) -> Float[Tensor, "batch heads len width"]:
        """Rotate the content of keys."""
        rotation = Rotation.build_of_content(phasors, self.content)
        return rotation.rotate(keys.transpose(1, 2)).transpose(1, 2)

    def compute_logits(
        self,
        queries: Float[Tensor, "batch heads queries width"],
        keys: Float[Tensor, "batch heads len key_width"],
        rotation: Rotation | DampedBasis,
    ) -> Float[Tensor, "batch heads queries len"]:
        """Compute the products of queries and keys, and those with a damped basis."""
        queries, coefficients = rotation.split(queries, self.content)
        return rotation.add_to_logits(queries @ keys.transpose(-1, -2), coefficients)

    def project_keys(
        self,
        states: Float[Tensor, "batch len dim"],
        events: EventBasis,
        projection: BasisProjection,
        phasors: HeadPhasors | None = None,
    ) -> Float[Tensor, "batch heads len width"]:
        """Project events to keys.

        Args:
            phasors: by which their content turns.
        """
        composed = self.derive("keys", lambda: self.compose_keys(projection))
        keys = append_basis(split_last(composed(states), self.heads), events, self.content)
        return keys if phasors is None else self.rotate_keys(keys, phasors)

    def project_queries(
        self,
        states: Float[Tensor, "batch queries inputs"],
        rotation: Rotation | DampedBasis,
        projection: BasisProjection,
        damping: Damping | None = None,
    ) -> Float[Tensor, "batch heads queries width"]:
        """Project positions to scaled queries, turned to their query times.

        `states` has the input width of the query projection.
        """
        query = self.query_proj
        if isinstance(query, QueryMLP):
            states = query.compute_hidden(states)
        queries = self.derive("queries", lambda: self._compose_queries(projection, damping))
        return rotation.rotate(split_last(queries(states), self.heads)).transpose(1, 2)

    def compose_keys(self, projection: BasisProjection) -> AffineMap:
        """Compose the map from states to the content of keys."""
        bias = self.key_proj.bias + self.time_key_proj(projection.bias)
        return AffineMap(self.key_proj.weight, bias)

    def _compose_queries(self, projection: BasisProjection, damping: Damping | None) -> AffineMap:
        """Compose the map from states to `[scaled q, rate, conjugate of C' U' q]` of each head."""
        query = self.query_proj
        linear = query.linear2 if isinstance(query, QueryMLP) else query
        # Weight and bias side by side: what follows is linear in both.
        content = torch.cat((linear.weight, linear.bias.unsqueeze(1)), dim=1) * self.scale
        content = content.view(self.heads, -1, content.shape[1])
        time = compose_by_head(self.time_key_proj, projection, self.heads)
        coefficients = conjugate(time).transpose(1, 2) @ content
        content = F.pad(content, (0, 0, 0, self.content - content.shape[1]))
        if damping is not None:
            # The keys hold the time of the event where the queries hold the rate.
            content[:, linear.out_features // self.heads, -1] = damping.compute_rates()
        composed = torch.cat((content, coefficients), dim=1).flatten(0, 1)
        return AffineMap(composed[:, :-1], composed[:, -1])


@final
class TimeAwareAttention(DerivingModule):
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
        query: QueryMLP | None = None,
        damping: bool = False,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.damping = Damping(heads=heads) if damping else None
        self.query_key = TimeAwareQueryKey(
            dim=dim, heads=heads, time_dim=time_dim, query=query, damping=damping
        )
        self.value_proj = nn.Linear(dim, dim)
        self.time_value_proj = TimeProjection(time_dim=time_dim, dim=dim)
        self.out_proj = nn.Linear(dim, dim)

    def project_kv(
        self,
        states: Float[Tensor, "batch len dim"],
        events: EventBasis,
        projection: BasisProjection,
        days: Float64[Tensor, "#batch len"] | None = None,
        phasors: HeadPhasors | None = None,
    ) -> KeyValues:
        """Project events to keys and values.

        Args:
            days: times of the events from any origin, which damping needs.
            phasors: by which the content of keys turns.
        """
        composed = self.derive("key_values", lambda: self._compose_key_values(projection))
        content = split_last(composed(states), 2, self.heads)
        spare: Tensor | None = None
        width = self.query_key.content
        if self.damping is not None and days is not None:
            # The keys hold the time of the event where the queries hold the rate.
            spare = content.new_zeros(*content.shape[:-1], width - content.shape[-1])
            spare[:, :, 0, :, 0] = days.to(spare.dtype).unsqueeze(-1)
        keys, values = append_basis(content, events, width, spare).unbind(1)
        if phasors is not None:
            keys = self.query_key.rotate_keys(keys, phasors)
        return KeyValues(keys, values)

    def attend(
        self,
        states: Float[Tensor, "batch queries inputs"],
        key_values: KeyValues,
        rotation: Rotation | DampedBasis,
        projection: BasisProjection,
        mask: AttentionMask = NO_MASK,
    ) -> Float[Tensor, "batch queries dim"]:
        """Attend from `states`, at the query times of `rotation`, to the events."""
        if isinstance(rotation, DampedBasis):
            # The products of pairs come between those that PyTorch fuses.
            weights = self.attention_weights(states, key_values, rotation, projection, mask)
            return self.apply_weights(weights, key_values, rotation, projection)
        visible, is_causal, bias = mask
        attn_mask = None if visible is None else visible.unsqueeze(1)
        if bias is not None:
            masked = _build_mask(mask, bias)
            attn_mask = bias if masked is None else bias.masked_fill(masked, float("-inf"))
        output = F.scaled_dot_product_attention(
            self._project_queries(states, rotation, projection),
            key_values.keys,
            key_values.values,
            attn_mask=attn_mask,
            is_causal=is_causal and attn_mask is None,
            scale=1.0,
        )
        return self._merge_heads(output, rotation, projection)

    def attention_weights(
        self,
        states: Float[Tensor, "batch queries inputs"],
        key_values: KeyValues,
        rotation: Rotation | DampedBasis,
        projection: BasisProjection,
        mask: AttentionMask = NO_MASK,
    ) -> Float[Tensor, "batch heads queries len"]:
        """Compute the attention weights: per query, a distribution over its visible events."""
        query_heads = self._project_queries(states, rotation, projection)
        logits = self.query_key.compute_logits(query_heads, key_values.keys, rotation)
        if mask.bias is not None:
            logits = logits + mask.bias
        masked = _build_mask(mask, logits)
        if masked is not None:
            logits = logits.masked_fill(masked, float("-inf"))
        return logits.softmax(-1)

    def attend_shared(
        self,
        states: Float[Tensor, "queries positions inputs"],
        shared: KeyValues,
        own: KeyValues,
        rotation: Rotation | DampedBasis,
        projection: BasisProjection,
        visible: Bool[Tensor, "queries 1 all_events"],
        bias: Float[Tensor, "queries heads 1 all_events"] | None = None,
    ) -> tuple[
        Float[Tensor, "queries positions dim"], Float[Tensor, "queries heads positions all_events"]
    ]:
        """Attend from several positions of each query to events of all queries, then to its own.

        Equals `attention_weights` and `apply_weights` on both side by side, without a copy of the
        shared keys and values for each query.

        Args:
            shared: of one history, which all queries read.
            own: of each query's own events.
            visible: which events a query attends to: of the history, then of its own.
            bias: added to the logits.

        A damped basis of `rotation` is of the same events, for one position that all share or each.

        Returns:
            The output, and the weights of the same events.
        """
        heads = self._project_queries(states, rotation, projection)
        heads, coefficients = rotation.split(heads, self.query_key.content)
        count, events = len(heads), shared.keys.shape[2]

        def multiply(left: Tensor, right: Tensor) -> Tensor:
            # The queries side by side, for one product with what they share.
            product = left.transpose(0, 1).flatten(1, 2) @ right[0]
            separate = product.view(len(product), count, states.shape[1], product.shape[-1])
            return separate.transpose(0, 1)

        logits = torch.cat(
            (multiply(heads, shared.keys.transpose(-1, -2)), heads @ own.keys.transpose(-1, -2)),
            dim=-1,
        )
        logits = rotation.add_to_logits(logits, coefficients)
        if bias is not None:
            logits = logits + bias
        weights = logits.masked_fill(~visible.unsqueeze(1), float("-inf")).softmax(-1)
        of_shared, of_own = weights.tensor_split((events,), dim=-1)
        output = multiply(of_shared, shared.values) + of_own @ own.values
        output = rotation.append_sums(output, weights)
        return self._merge_heads(output, rotation, projection), weights

    def apply_weights(
        self,
        weights: Float[Tensor, "batch heads queries len"],
        key_values: KeyValues,
        rotation: Rotation | DampedBasis,
        projection: BasisProjection,
    ) -> Float[Tensor, "batch queries dim"]:
        """Compute the output of `attend` from given weights, which need not sum to one."""
        output = rotation.append_sums(weights @ key_values.values, weights)
        return self._merge_heads(output, rotation, projection)

    def _project_queries(
        self, states: Tensor, rotation: Rotation | DampedBasis, projection: BasisProjection
    ) -> Tensor:
        return self.query_key.project_queries(states, rotation, projection, self.damping)

    def _merge_heads(
        self, output: Tensor, rotation: Rotation | DampedBasis, projection: BasisProjection
    ) -> Tensor:
        composed = self.derive("output", lambda: self._compose_output(projection))
        return composed(rotation.rotate_back(output.transpose(1, 2)).flatten(2))

    def _compose_key_values(self, projection: BasisProjection) -> AffineMap:
        """Compose the map from states to the content of keys, then of values."""
        keys = self.query_key.compose_keys(projection)
        value_bias = self.value_proj.bias + self.time_value_proj(projection.bias)
        return AffineMap(
            torch.cat((keys.weight, self.value_proj.weight)), torch.cat((keys.bias, value_bias))
        )

    def _compose_output(self, projection: BasisProjection) -> AffineMap:
        weight = compose_output(
            self.out_proj.weight,
            self.time_value_proj,
            projection,
            self.heads,
            self.query_key.content,
        )
        return AffineMap(weight, self.out_proj.bias)


def _build_mask(mask: AttentionMask, logits: Tensor) -> Tensor | None:
    """Build the mask that is true where a query must not attend; it broadcasts against logits."""
    if mask.is_causal:
        return torch.ones_like(logits[0, 0], dtype=torch.bool).triu(1)
    return None if mask.visible is None else ~mask.visible.unsqueeze(1)


def append_basis(
    content: Float[Tensor, "batch len *parts heads head_dim"],
    events: EventBasis,
    width: int,
    spare: Float[Tensor, "batch len *parts heads spare"] | None = None,
) -> Float[Tensor, "batch *parts heads len width"]:
    """Append the event-time basis, which all heads share, to the content of keys or values.

    Args:
        width: of the coordinates before the basis; zero after the content, unless `spare` is given.
    """
    parts = [content]
    if spare is not None:
        parts.append(spare)
    elif width > content.shape[-1]:
        parts.append(content.new_zeros(*content.shape[:-1], width - content.shape[-1]))
    if events.shape[-1]:
        shared = events
        for _ in content.shape[2:-1]:
            shared = shared.unsqueeze(-2)
        parts.append(shared.expand(*content.shape[:-1], -1))
    joined = torch.cat(parts, dim=-1) if len(parts) > 1 else content
    return joined.movedim(1, -2)
