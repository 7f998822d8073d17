"""Time-LSTM: an LSTM with gates for the interval to the query time."""

from typing import Annotated, Literal, final

import torch
from jaxtyping import Float, Float64
from pydantic import Field, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from model.batch import SequenceBatch, select_positions
from model.config import Config
from model.interfaces import EncoderOutput, PositionOutputs, SequenceEncoder
from model.layers.interval_features import IntervalFeatures, LogIntervalConfig, RawIntervalConfig
from model.layers.interval_recurrence import IntervalRecurrence
from model.time_encodings.time2vec import Time2VecConfig

INITIAL_STD = 0.1
"""Standard deviation of the initial weights, as in the authors' code."""

LSTMState = tuple[Tensor, Tensor]
"""The output and the cells after a step: 1, batch, hidden each."""


class TimeLSTMConfig(Config):
    """An LSTM with time gates."""

    kind: Literal["time_lstm"] = "time_lstm"
    gates: Literal[1, 3] = 3
    """1: one time gate, TLSTM1; 3: two time gates and no forget gate, TLSTM3."""
    dim: PositiveInt = 64
    """Width of item and user vectors."""
    hidden: PositiveInt = 64
    """Width of the hidden state."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout of item vectors and of hidden states."""
    max_history: PositiveInt = 200
    """Events of a history in use, the most recent ones."""
    interval: Annotated[
        RawIntervalConfig | LogIntervalConfig | Time2VecConfig, Field(discriminator="kind")
    ] = RawIntervalConfig()
    """Features, for the time gates and the output gate, of the interval to the query time."""

    def build(self, *, items: int = 0, actions: int = 0) -> "TimeLSTM":  # noqa: ARG002
        """Build the module."""
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
    """An LSTM with peepholes and a time gate on its input.

        i = s(W_i x + U_i h + w_i * c + b_i), f likewise, g = tanh(W_g x + U_g h + b_g)
        T = s(W_t x + tanh(u_t d) + b_t)
        c' = f * c + i * T * g
        o = s(W_o x + v_o d + U_o h + w_o * c' + b_o), h' = o * tanh(c')

    where `d` is the interval as features: one number, or a vector, for which `u_t` and `v_o` are
    matrices. The call signature is that of a `torch.nn.LSTM` with `batch_first=True`.

    Shape: inputs (batch, len, dim + time_dim) -> outputs (batch, len, hidden), state

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
        _initialise(self)

    def forward(
        self, inputs: Float[Tensor, "batch len width"], state: LSTMState | None = None
    ) -> tuple[Float[Tensor, "batch len hidden"], LSTMState]:
        """Compute the output after every event, and the final state."""
        contents, intervals = _split_inputs(inputs, self.dim)
        *content_terms, gate = self.content(contents).chunk(5, dim=-1)
        content_terms[3] = content_terms[3] + self.output_interval(intervals)
        time_gates = (gate + self.gate_interval(intervals).tanh()).sigmoid()
        hidden, cells = _build_initial_state(state, time_gates[0])
        input_forget_peepholes, output_peephole = self.peepholes[:2], self.peepholes[2]
        outputs = []
        # Everything that does not depend on the state is computed above, for all steps at once.
        for step, time_gate in zip(
            torch.stack(content_terms, dim=2).unbind(), time_gates.unbind(), strict=True
        ):
            terms = torch.addmm(step.flatten(1), hidden, self.recurrent).view_as(step)
            input_forget, candidate, out = terms[:, :2], terms[:, 2], terms[:, 3]
            input_gate, forget_gate = (
                torch.addcmul(input_forget, cells[:, None], input_forget_peepholes)
                .sigmoid()
                .unbind(1)
            )
            cells = torch.addcmul(forget_gate * cells, input_gate, candidate.tanh() * time_gate)
            hidden = torch.addcmul(out, cells, output_peephole).sigmoid() * cells.tanh()
            outputs.append(hidden)
        return torch.stack(outputs, dim=1), (hidden[None], cells[None])


@final
class TimeLSTM3(nn.Module):
    """An LSTM with peepholes, two time gates, and an input gate that also acts as the forget gate.

        i = s(W_i x + U_i h + w_i * c + b_i), g = tanh(W_g x + U_g h + b_g)
        T_1 = s(W_1 x + tanh(u_1 d) + b_1) with u_1 <= 0, T_2 = s(W_2 x + tanh(u_2 d) + b_2)
        e = (1 - i * T_1) * c + i * T_1 * g, the cells for the output
        c' = (1 - i) * c + i * T_2 * g, the cells for the next step
        o = s(W_o x + v_o d + U_o h + w_o * e + b_o), h' = o * tanh(e)

    where `d` is the interval as features: one number, or a vector, for which `u_1`, `u_2` and `v_o`
    are matrices. The call signature is that of a `torch.nn.LSTM` with `batch_first=True`.

    The constraint makes the effect of an event on the output decrease with its age. Every entry of
    a matrix is negative: that has the same effect for features that grow with the interval, such as
    the linear term of Time2Vec, and no meaning for its sines, which take either sign.

    Shape: inputs (batch, len, dim + time_dim) -> outputs (batch, len, hidden), state

    Paper: Zhu et al. 2017, Time-LSTM 3; with vectors, Kazemi et al. 2019, TLSTM3.
    DIFFERS(paper): u_1 is negative, as Zhu et al. intend; Kazemi et al. state it of W_1.
    DIFFERS(code): u_1 = -softplus(raw). The code has the bound the wrong way round: it keeps u_1
        at -1e-5 or above, and so time out of T_1. Initially uniform in (-1, 0), as in the code,
        but divided by sqrt(time_dim).
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
        _initialise(self)
        # Divided by the root of the width, so that the sum of many features is not saturated.
        magnitude = torch.empty(hidden, time_dim).uniform_(0.01, 1) / time_dim**0.5
        self.raw_gate_interval.data = magnitude.expm1().log()

    def compute_gate_interval(self) -> Float[Tensor, "hidden time_dim"]:
        """Compute u_1, the weight of the interval in the first time gate; negative."""
        return -functional.softplus(self.raw_gate_interval)

    def forward(
        self, inputs: Float[Tensor, "batch len width"], state: LSTMState | None = None
    ) -> tuple[Float[Tensor, "batch len hidden"], LSTMState]:
        """Compute the output after every event, and the final state."""
        contents, intervals = _split_inputs(inputs, self.dim)
        *content_terms, first, second = self.content(contents).chunk(5, dim=-1)
        content_terms[2] = content_terms[2] + self.output_interval(intervals)
        output_gates = (first + (intervals @ self.compute_gate_interval().T).tanh()).sigmoid()
        carry_gates = (second + self.carry_interval(intervals).tanh()).sigmoid()
        hidden, cells = _build_initial_state(state, output_gates[0])
        input_peephole, output_peephole = self.peepholes
        outputs = []
        # Everything that does not depend on the state is computed above, for all steps at once.
        for step, output_gate, carry_gate in zip(
            torch.cat(content_terms, dim=-1).unbind(),
            output_gates.unbind(),
            carry_gates.unbind(),
            strict=True,
        ):
            into, candidate, out = torch.addmm(step, hidden, self.recurrent).chunk(3, dim=1)
            input_gate = torch.addcmul(into, cells, input_peephole).sigmoid()
            proposed = candidate.tanh()
            exposed = torch.lerp(cells, proposed, input_gate * output_gate)
            cells = torch.lerp(cells, proposed * carry_gate, input_gate)
            hidden = torch.addcmul(out, exposed, output_peephole).sigmoid() * exposed.tanh()
            outputs.append(hidden)
        return torch.stack(outputs, dim=1), (hidden[None], cells[None])


@final
class TimeLSTM(SequenceEncoder):
    """Encodes events in their order by an LSTM whose gates depend on the interval to the query.

    The recurrence is `TimeLSTM1` or `TimeLSTM3`.

    Shape: items (batch, len, dim) -> user (batch, dim)

    Paper: Zhu et al. 2017, "What to Do Next: Modeling User Behaviors by Time-LSTM"; with Time2Vec,
        Kazemi et al. 2019, "Time2Vec: Learning a Vector Representation of Time", section 5.
    DIFFERS(paper): tanh around the interval in the time gates, as in the code of Zhu et al., where
        Kazemi et al. write a sigmoid; items enter as vectors, and are scored by them.
    DIFFERS(code): raw intervals are in units of 30 days, not in seconds.
    """

    def __init__(self, network: IntervalRecurrence, *, dim: int) -> None:
        super().__init__()
        self.dim = dim
        self.network = network

    def encode_positions(
        self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]
    ) -> PositionOutputs:
        """Compute the user vector at every position, from the events up to it."""
        return PositionOutputs(self.network(batch, items))

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> EncoderOutput:
        """Compute the user vector at the last event of each history."""
        users = self.network(batch, items)
        return EncoderOutput(select_positions(users, batch.lengths - 1).squeeze(1))

    def sweep(
        self,
        batch: SequenceBatch,
        items: Float[Tensor, "1 len dim"],
        query_times: Float64[Tensor, " query_times"],
    ) -> EncoderOutput:
        """Encode one history at many query times; only its last step runs for each."""
        return EncoderOutput(self.network.sweep(batch, items, query_times))


def _initialise(recurrence: nn.Module) -> None:
    """Initialise weights from a normal distribution and biases to zero."""
    for name, parameter in recurrence.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        else:
            nn.init.normal_(parameter, std=INITIAL_STD)


def _split_inputs(inputs: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Split into item vectors and interval features, step by step: len, batch, width each."""
    steps = inputs.transpose(0, 1)
    return steps[..., :dim], steps[..., dim:]


def _build_initial_state(state: LSTMState | None, like: Tensor) -> LSTMState:
    """Return the output and the cells before the first event, zeros by default: batch, hidden."""
    if state is None:
        return torch.zeros_like(like), torch.zeros_like(like)
    output, cells = state
    return output.squeeze(0), cells.squeeze(0)
