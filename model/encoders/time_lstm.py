"""Time-LSTM: an LSTM with gates for how long it is until the query."""

from typing import Annotated, Literal, final

import torch
from jaxtyping import Float, Float64
from pydantic import Field, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from model.batch import SequenceBatch
from model.config import Config
from model.interfaces import Encoded, SequenceEncoder, States
from model.layers.interval_features import IntervalFeatures, LogIntervalConfig, RawIntervalConfig
from model.layers.interval_recurrence import IntervalRecurrence
from model.layers.time_aware_block import at_positions
from model.time_encodings.time2vec import Time2VecConfig

SPREAD = 0.1
"""Standard deviation that weights start with, as in the authors' code."""

Memory = tuple[Tensor, Tensor]
"""The output and the cells after a step: 1, batch, hidden each."""


class TimeLSTMConfig(Config):
    """An LSTM with time gates."""

    kind: Literal["time_lstm"] = "time_lstm"
    gates: Literal[1, 3] = 3
    """1: one time gate, TLSTM1; 3: two time gates and no forget gate, TLSTM3."""
    dim: PositiveInt = 64
    hidden: PositiveInt = 64
    """Width of the recurrent state."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    max_history: PositiveInt = 200
    """Events read of a history, the most recent ones."""
    interval: Annotated[
        RawIntervalConfig | LogIntervalConfig | Time2VecConfig, Field(discriminator="kind")
    ] = RawIntervalConfig()
    """How the time gates and the output gate read the interval from an event to its query time."""

    def build(self, *, items: int = 0, actions: int = 0) -> "TimeLSTM":  # noqa: ARG002
        """The module this describes."""
        features = self.interval.build()
        recurrence = TimeLSTM1 if self.gates == 1 else TimeLSTM3
        return TimeLSTM(
            IntervalRecurrence(
                recurrence(dim=self.dim, time_dim=features.dim, hidden=self.hidden),
                IntervalFeatures(features, time_dim=features.dim),
                hidden=self.hidden,
                dim=self.dim,
                dropout=self.dropout,
            ),
            dim=self.dim,
        )


@final
class TimeLSTM1(nn.Module):
    """An LSTM with peepholes whose input a time gate lets through or holds back.

        i = s(W_i x + U_i h + w_i * c + b_i), f likewise, g = tanh(W_g x + U_g h + b_g)
        T = s(W_t x + tanh(u_t d) + b_t)
        c' = f * c + i * T * g
        o = s(W_o x + v_o d + U_o h + w_o * c' + b_o), h' = o * tanh(c')

    where `d` is the interval as features: one number, or a vector, which makes matrices of `u_t`
    and `v_o`. Called like a `torch.nn.LSTM` that takes the batch first.

    Shape: inputs (batch, len, dim + time_dim) -> outputs (batch, len, hidden), memory

    Paper: Zhu et al. 2017, Time-LSTM 1; with vectors, Kazemi et al. 2019, TLSTM1.
    """

    def __init__(self, *, dim: int, time_dim: int, hidden: int) -> None:
        super().__init__()
        self.dim = dim
        self.content = nn.Linear(dim, 5 * hidden)  # i, f, g, o, T
        self.gate_interval = nn.Linear(time_dim, hidden, bias=False)
        self.output_interval = nn.Linear(time_dim, hidden, bias=False)
        self.recurrent = nn.Parameter(torch.empty(hidden, 4 * hidden))  # i, f, g, o
        self.peepholes = nn.Parameter(torch.empty(3, hidden))  # i, f, o
        _start(self)

    def forward(
        self, inputs: Float[Tensor, "batch len width"], memory: Memory | None = None
    ) -> tuple[Float[Tensor, "batch len hidden"], Memory]:
        """The output after every event, and what the next one will find."""
        contents, intervals = _parted(inputs, self.dim)
        *known, gate = self.content(contents).chunk(5, dim=-1)
        known[3] = known[3] + self.output_interval(intervals)
        gates = (gate + self.gate_interval(intervals).tanh()).sigmoid()
        state, cells = _found(memory, gates[0])
        into_and_forget, out_seen = self.peepholes[:2], self.peepholes[2]
        outputs = []
        # What the state does not reach stands above, for all steps at once.
        for step, opened in zip(torch.stack(known, dim=2).unbind(), gates.unbind(), strict=True):
            heard = torch.addmm(step.flatten(1), state, self.recurrent).view_as(step)
            seeing, candidate, out = heard[:, :2], heard[:, 2], heard[:, 3]
            entered, kept = (
                torch.addcmul(seeing, cells[:, None], into_and_forget).sigmoid().unbind(1)
            )
            cells = torch.addcmul(kept * cells, entered, candidate.tanh() * opened)
            state = torch.addcmul(out, cells, out_seen).sigmoid() * cells.tanh()
            outputs.append(state)
        return torch.stack(outputs, dim=1), (state[None], cells[None])


@final
class TimeLSTM3(nn.Module):
    """An LSTM with peepholes, two time gates and no forget gate: what enters displaces the rest.

        i = s(W_i x + U_i h + w_i * c + b_i), g = tanh(W_g x + U_g h + b_g)
        T_1 = s(W_1 x + tanh(u_1 d) + b_1) with u_1 <= 0, T_2 = s(W_2 x + tanh(u_2 d) + b_2)
        e = (1 - i * T_1) * c + i * T_1 * g, which the output reads
        c' = (1 - i) * c + i * T_2 * g, which is carried on
        o = s(W_o x + v_o d + U_o h + w_o * e + b_o), h' = o * tanh(e)

    where `d` is the interval as features: one number, or a vector, which makes matrices of `u_1`,
    `u_2` and `v_o`. Called like a `torch.nn.LSTM` that takes the batch first.

    The constraint makes an event count the less for the output the longer it is ago. Of a matrix
    every entry is held below 0: that says the same of features that grow with the interval, such
    as the straight line of Time2Vec, and nothing of its sines, which take either sign.

    Shape: inputs (batch, len, dim + time_dim) -> outputs (batch, len, hidden), memory

    Paper: Zhu et al. 2017, Time-LSTM 3; with vectors, Kazemi et al. 2019, TLSTM3.
    DIFFERS(paper): u_1 is held below 0, as Zhu et al. mean it; Kazemi et al. write that of W_1.
    DIFFERS(code): u_1 = -softplus(raw). The code has the bound the wrong way round: it keeps u_1
        at -1e-5 or above, and so time out of T_1.
    """

    def __init__(self, *, dim: int, time_dim: int, hidden: int) -> None:
        super().__init__()
        self.dim = dim
        self.content = nn.Linear(dim, 5 * hidden)  # i, g, o, T_1, T_2
        self.raw_gate_interval = nn.Parameter(torch.empty(hidden, time_dim))
        self.carry_interval = nn.Linear(time_dim, hidden, bias=False)
        self.output_interval = nn.Linear(time_dim, hidden, bias=False)
        self.recurrent = nn.Parameter(torch.empty(hidden, 3 * hidden))  # i, g, o
        self.peepholes = nn.Parameter(torch.empty(2, hidden))  # i, o
        _start(self)
        # As in the code, u_1 starts uniform between -1 and 0; over the root of its width, so that
        # the sum of many features does not start saturated.
        started = torch.empty(hidden, time_dim).uniform_(0.01, 1) / time_dim**0.5
        self.raw_gate_interval.data = started.expm1().log()

    def gate_interval(self) -> Float[Tensor, "hidden time_dim"]:
        """u_1, which weighs the interval in the first time gate: below 0."""
        return -functional.softplus(self.raw_gate_interval)

    def forward(
        self, inputs: Float[Tensor, "batch len width"], memory: Memory | None = None
    ) -> tuple[Float[Tensor, "batch len hidden"], Memory]:
        """The output after every event, and what the next one will find."""
        contents, intervals = _parted(inputs, self.dim)
        *known, first, second = self.content(contents).chunk(5, dim=-1)
        known[2] = known[2] + self.output_interval(intervals)
        shown = (first + (intervals @ self.gate_interval().T).tanh()).sigmoid()
        carried = (second + self.carry_interval(intervals).tanh()).sigmoid()
        state, cells = _found(memory, shown[0])
        into_seen, out_seen = self.peepholes
        outputs = []
        # What the state does not reach stands above, for all steps at once.
        for step, shows, carries in zip(
            torch.cat(known, dim=-1).unbind(), shown.unbind(), carried.unbind(), strict=True
        ):
            into, candidate, out = torch.addmm(step, state, self.recurrent).chunk(3, dim=1)
            entered = torch.addcmul(into, cells, into_seen).sigmoid()
            proposed = candidate.tanh()
            exposed = torch.lerp(cells, proposed, entered * shows)
            cells = torch.lerp(cells, proposed * carries, entered)
            state = torch.addcmul(out, exposed, out_seen).sigmoid() * exposed.tanh()
            outputs.append(state)
        return torch.stack(outputs, dim=1), (state[None], cells[None])


@final
class TimeLSTM(SequenceEncoder):
    """Reads events one after another; gates weigh each by how long before its query time it was.

    Its recurrence is `TimeLSTM1` or `TimeLSTM3`.

    Shape: items (batch, len, dim) -> user (batch, dim)

    Paper: Zhu et al. 2017, "What to Do Next: Modeling User Behaviors by Time-LSTM"; with Time2Vec,
        Kazemi et al. 2019, "Time2Vec: Learning a Vector Representation of Time", section 5.
    DIFFERS(paper): tanh around the interval in the time gates, as in the code of Zhu et al., where
        Kazemi et al. write a sigmoid; items enter as vectors, and are scored by them.
    DIFFERS(code): raw intervals are counted in units of 30 days, not in seconds.
    """

    def __init__(self, reader: IntervalRecurrence, *, dim: int) -> None:
        super().__init__()
        self.dim = dim
        self.reader = reader

    def states(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> States:
        """User vectors at every position; what follows a position never reaches it."""
        return States(self.reader(batch, items))

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> Encoded:
        """User vectors at the last event of each history."""
        return Encoded(at_positions(self.reader(batch, items), batch.lengths - 1).squeeze(1))

    def sweep(
        self,
        batch: SequenceBatch,
        items: Float[Tensor, "1 len dim"],
        query_times: Float64[Tensor, " query_times"],
    ) -> Encoded:
        """One history asked about many instants: only its last step is taken for each."""
        return Encoded(self.reader.sweep(batch, items, query_times))


def _start(recurrence: nn.Module) -> None:
    """Normal weights, no biases."""
    for name, parameter in recurrence.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        else:
            nn.init.normal_(parameter, std=SPREAD)


def _parted(inputs: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """What happened and its interval's features, step by step: len, batch, width each."""
    steps = inputs.transpose(0, 1)
    return steps[..., :dim], steps[..., dim:]


def _found(memory: Memory | None, like: Tensor) -> Memory:
    """The output and the cells that the first event finds: zeros, unless told. batch, hidden."""
    if memory is None:
        return torch.zeros_like(like), torch.zeros_like(like)
    output, cells = memory
    return output.squeeze(0), cells.squeeze(0)
