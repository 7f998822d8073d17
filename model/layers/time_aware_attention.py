"""Self-attention whose keys and values hold the interval to the query time, at no pairwise cost."""

from typing import NamedTuple, final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Complex64, Float
from torch import Tensor, nn

from model.layers.fourier_basis import ReadOut, basis, rotate

Events = Complex64[Tensor, "#batch len frequencies"]
Asked = Complex64[Tensor, "#batch queries frequencies"]


class KeyValues(NamedTuple):
    """What a query reads of each event: content first, then the basis at the event's own time.

    Nothing here depends on a query time, which is why one history can be asked about many.
    """

    keys: Float[Tensor, "batch heads len width"]
    values: Float[Tensor, "batch heads len width"]


class Sight(NamedTuple):
    """What each query may see of the events; with nothing said, all of them.

    Attributes:
        visible: which events each query may see.
        is_causal: whether query i sees the first i + 1 events only.
        bias: what is added to how well each event matches, such as a kernel of the two instants.
    """

    visible: Bool[Tensor, "batch #queries len"] | None = None
    is_causal: bool = False
    bias: Float[Tensor, "batch heads queries len"] | None = None


EVERYTHING = Sight()


@final
class TimeProjection(nn.Module):
    """A linear map of time features, of which an encoding may also have none."""

    def __init__(self, *, time_dim: int, dim: int) -> None:
        super().__init__()
        bound = max(time_dim, 1) ** -0.5
        self.weight = nn.Parameter(torch.empty(dim, time_dim).uniform_(-bound, bound))

    def forward(self, features: Float[Tensor, "*shape time_dim"]) -> Float[Tensor, "*shape dim"]:
        """Project features."""
        return F.linear(features, self.weight)

    def on_basis(self, read_out: ReadOut) -> Float[Tensor, "dim basis"]:
        """The same map, read off the Fourier basis instead of the features: `U C`."""
        return self.weight @ read_out.weight


@final
class TimeAwareMatch(nn.Module):
    """How well an event and its age match what a position looks for.

    The key of event i for a query at `T_q` is `K_qi = W z_i + U phi(T_q - t_i)`. With the read-out
    `phi = C b + o` of the encoding, the match is

        q . K_qi = q . (W z_i + U o)  +  (R(T_q) C' U' q) . b(t_i)

    so keys are `[W z_i + U o, b(t_i)]`, which depend on the event alone, queries are
    `[q, R(T_q) C' U' q]`, which depend on the query time alone, and one product gives the match.

    What a position looks for is a linear map of its state, or whatever `query` makes of it: a query
    is asked about one instant, so nothing needs to be linear there.

    Paper: Xu et al. 2019, section 6: keys are `[Z, phi(T - t)]` times one matrix `[W, U]`.

    Raises:
        ValueError: if `heads` does not divide `dim`.
    """

    def __init__(
        self, *, dim: int, heads: int, time_dim: int, query: nn.Module | None = None
    ) -> None:
        super().__init__()
        if dim % heads:
            raise ValueError(f"heads must divide dim, however: {dim=}, {heads=}")
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.query = nn.Linear(dim, dim) if query is None else query
        self.key = nn.Linear(dim, dim)
        self.time_key = TimeProjection(time_dim=time_dim, dim=dim)

    def keys(
        self, states: Float[Tensor, "batch len dim"], events: Events, read_out: ReadOut
    ) -> Float[Tensor, "batch heads len width"]:
        """The keys of events."""
        content = self.key(states) + self.time_key(read_out.offset)
        return beside_basis(content, events, self.heads)

    def queries(
        self, states: Float[Tensor, "batch queries known"], asked: Asked, read_out: ReadOut
    ) -> Float[Tensor, "batch heads queries width"]:
        """The queries of positions asked about the instants of `asked`, scaled.

        `states` is as wide as what `query` reads.
        """
        content = split_heads(self.query(states) * self.scale, self.heads)
        of_basis = content @ on_basis(self.time_key, read_out, self.heads)
        return torch.cat((content, rotate(of_basis, asked.unsqueeze(1))), dim=-1)


@final
class TimeAwareAttention(nn.Module):
    """Multi-head attention over `[z_i, phi(T_q - t_i)]`: content beside time features.

    The match is rotated as in `TimeAwareMatch`. Values `V_qi = W z_i + U phi(T_q - t_i)` are
    rotated after the weighted sum: their time part adds up to `U C R(T_q) sum_i a_qi b(t_i)`. So
    attention itself is one fused call on heads that are `2 * frequencies` wider.

    Shape: states (batch, len, dim) -> (batch, len, dim)

    Paper: Xu et al. 2019, section 6.
    DIFFERS(paper): keys and values are linear in `[Z, phi]`; the rotation needs them so. Queries
        may be a perceptron of it, as the paper suggests.
    DIFFERS(code): every position is asked about its own target time, exactly, in one pass.
    """

    def __init__(
        self, *, dim: int, heads: int, time_dim: int, query: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.heads = heads
        self.match = TimeAwareMatch(dim=dim, heads=heads, time_dim=time_dim, query=query)
        self.value = nn.Linear(dim, dim)
        self.time_value = TimeProjection(time_dim=time_dim, dim=dim)
        self.output = nn.Linear(dim, dim)

    def remember(
        self, states: Float[Tensor, "batch len dim"], events: Events, read_out: ReadOut
    ) -> KeyValues:
        """Keys and values of events."""
        values = self.value(states) + self.time_value(read_out.offset)
        return KeyValues(
            self.match.keys(states, events, read_out), beside_basis(values, events, self.heads)
        )

    def read(
        self,
        states: Float[Tensor, "batch queries known"],
        memory: KeyValues,
        asked: Asked,
        read_out: ReadOut,
        sight: Sight = EVERYTHING,
    ) -> Float[Tensor, "batch queries dim"]:
        """Attend from `states`, asked about the instants of `asked`, to what was remembered."""
        visible, is_causal, bias = sight
        mask = None if visible is None else visible.unsqueeze(1)
        if bias is not None:
            hidden = _hidden(sight, bias)
            mask = bias if hidden is None else bias.masked_fill(hidden, float("-inf"))
        answer = F.scaled_dot_product_attention(
            self.match.queries(states, asked, read_out),
            memory.keys,
            memory.values,
            attn_mask=mask,
            is_causal=is_causal and mask is None,
            scale=1.0,
        )
        return self._joined(answer, asked, read_out)

    def weigh(
        self,
        states: Float[Tensor, "batch queries known"],
        memory: KeyValues,
        asked: Asked,
        read_out: ReadOut,
        sight: Sight = EVERYTHING,
    ) -> Float[Tensor, "batch heads queries len"]:
        """How much every query attends to each event: a distribution over what it sees."""
        logits = self.match.queries(states, asked, read_out) @ memory.keys.transpose(-1, -2)
        if sight.bias is not None:
            logits = logits + sight.bias
        hidden = _hidden(sight, logits)
        if hidden is not None:
            logits = logits.masked_fill(hidden, float("-inf"))
        return logits.softmax(-1)

    def read_weighed(
        self,
        weights: Float[Tensor, "batch heads queries len"],
        memory: KeyValues,
        asked: Asked,
        read_out: ReadOut,
    ) -> Float[Tensor, "batch queries dim"]:
        """What `read` answers, with weights at hand; they need not sum to one."""
        return self._joined(weights @ memory.values, asked, read_out)

    def _joined(self, answer: Tensor, asked: Tensor, read_out: ReadOut) -> Tensor:
        """Heads side by side, their sums over the basis turned to the query time and read out."""
        of_basis = on_basis(self.time_value, read_out, self.heads)
        content, of_events = torch.split(answer, list(of_basis.shape[1:]), dim=-1)
        of_time = rotate(of_events, asked.unsqueeze(1)) @ of_basis.transpose(-1, -2)
        joined: Tensor = self.output((content + of_time).transpose(1, 2).flatten(2))
        return joined


def _hidden(sight: Sight, logits: Tensor) -> Tensor | None:
    """Which events each query must not see, broadcasting against its logits."""
    if sight.is_causal:
        return torch.ones_like(logits[0, 0], dtype=torch.bool).triu(1)
    return None if sight.visible is None else ~sight.visible.unsqueeze(1)


def split_heads(states: Tensor, heads: int) -> Tensor:
    """batch, len, dim -> batch, heads, len, head_dim."""
    batch, length, dim = states.shape
    return states.view(batch, length, heads, dim // heads).transpose(1, 2)


def beside_basis(content: Tensor, events: Tensor, heads: int) -> Tensor:
    """Every head's content, followed by the basis that all heads share."""
    shared = basis(events).unsqueeze(1).expand(content.shape[0], heads, -1, -1)
    return torch.cat((split_heads(content, heads), shared), dim=-1)


def on_basis(projection: TimeProjection, read_out: ReadOut, heads: int) -> Tensor:
    """`U C` per head: heads, head_dim, 2 * frequencies."""
    folded = projection.on_basis(read_out)
    return folded.view(heads, len(folded) // heads, folded.shape[-1])
