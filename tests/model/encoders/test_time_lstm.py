"""TLSTM1 and TLSTM3 against their equations, and TLSTM1 against torch's LSTM."""

import math

import pytest
import torch
from torch import Tensor, nn

from model.encoders.time_lstm import TimeLSTM, TimeLSTM1, TimeLSTM3, TimeLSTMConfig
from model.interfaces import SequenceEncoder
from model.layers.interval_features import LogIntervalConfig
from model.time_encodings.time2vec import Time2VecConfig
from tests.contracts.histories import collate_queries, draw_queries
from tests.contracts.sequence_encoder import SequenceEncoderContract, assert_same, vectors

DIM, HIDDEN = 6, 5


def small(**changed: object) -> TimeLSTMConfig:
    return TimeLSTMConfig.model_validate({"dim": 16, "hidden": 12, "max_history": 40} | changed)


def tlstm1(recurrence: TimeLSTM1, contents: Tensor, intervals: Tensor) -> Tensor:
    """The paper's equations for one history, in float64."""
    weights = {name: tensor.double() for name, tensor in recurrence.state_dict().items()}
    state = cells = torch.zeros(weights["peepholes"].shape[1], dtype=torch.float64)
    w_i, w_f, w_o = weights["peepholes"]
    states = []
    for x, d in zip(contents.double(), intervals.double(), strict=True):
        x_i, x_f, x_g, x_o, x_t = (weights["content.weight"] @ x + weights["content.bias"]).chunk(5)
        h_i, h_f, h_g, h_o = (state @ weights["recurrent"]).chunk(4)
        i = torch.sigmoid(x_i + h_i + w_i * cells)
        f = torch.sigmoid(x_f + h_f + w_f * cells)
        gate = torch.sigmoid(x_t + torch.tanh(weights["gate_interval.weight"] @ d))
        cells = f * cells + i * gate * torch.tanh(x_g + h_g)
        o = torch.sigmoid(x_o + weights["output_interval.weight"] @ d + h_o + w_o * cells)
        state = o * torch.tanh(cells)
        states.append(state)
    return torch.stack(states)


def tlstm3(recurrence: TimeLSTM3, contents: Tensor, intervals: Tensor) -> Tensor:
    """The paper's equations for one history, in float64."""
    weights = {name: tensor.double() for name, tensor in recurrence.state_dict().items()}
    state = cells = torch.zeros(weights["peepholes"].shape[1], dtype=torch.float64)
    w_i, w_o = weights["peepholes"]
    u_1 = -(1 + weights["raw_gate_interval"].exp()).log()
    states = []
    for x, d in zip(contents.double(), intervals.double(), strict=True):
        x_i, x_g, x_o, x_1, x_2 = (weights["content.weight"] @ x + weights["content.bias"]).chunk(5)
        h_i, h_g, h_o = (state @ weights["recurrent"]).chunk(3)
        i = torch.sigmoid(x_i + h_i + w_i * cells)
        g = torch.tanh(x_g + h_g)
        first = torch.sigmoid(x_1 + torch.tanh(u_1 @ d))
        second = torch.sigmoid(x_2 + torch.tanh(weights["carry_interval.weight"] @ d))
        exposed = (1 - i * first) * cells + i * first * g
        cells = (1 - i) * cells + i * second * g
        o = torch.sigmoid(x_o + weights["output_interval.weight"] @ d + h_o + w_o * exposed)
        state = o * torch.tanh(exposed)
        states.append(state)
    return torch.stack(states)


class TimeLSTMContract(SequenceEncoderContract):
    uses_time = True

    def test_outputs_follow_the_formulas(self, encoder: SequenceEncoder) -> None:
        assert isinstance(encoder, TimeLSTM)
        batch = collate_queries(draw_queries(12)[0])
        batch = batch.withhold_query_times(torch.arange(12).expand(1, -1) % 5 == 2)
        items = vectors(encoder, batch)
        network, recurrence = encoder.network, encoder.network.recurrence
        assert network.interval is not None
        intervals = network.interval(batch.query_times - batch.times, batch.query_given)[0]
        if isinstance(recurrence, TimeLSTM1):
            expected = tlstm1(recurrence, items[0], intervals)
        else:
            assert isinstance(recurrence, TimeLSTM3)
            expected = tlstm3(recurrence, items[0], intervals)
        users = encoder.encode_positions(batch, items).users[0]
        weight, bias = network.out_proj.weight.double(), network.out_proj.bias.double()
        assert_same(users, (expected @ weight.T + bias).float())


class TestTimeLSTM1(TimeLSTMContract):
    config = small(gates=1)


class TestTimeLSTM3(TimeLSTMContract):
    config = small(gates=3)


class TestTimeLSTM3OfLogarithms(TimeLSTMContract):
    config = small(gates=3, interval=LogIntervalConfig())


class TestTimeLSTM1WithTime2Vec(TimeLSTMContract):
    config = small(gates=1, interval=Time2VecConfig(frequencies=6))


class TestTimeLSTM3WithTime2Vec(TimeLSTMContract):
    config = small(gates=3, interval=Time2VecConfig(frequencies=6))


def inputs(length: int = 7) -> Tensor:
    return torch.cat((torch.randn(2, length, DIM), 3 * torch.rand(2, length, 1)), dim=-1)


@torch.no_grad()
def open_time_gate(recurrence: TimeLSTM1) -> TimeLSTM1:
    """Set the time gate to one."""
    recurrence.content.weight[-HIDDEN:] = 0
    recurrence.content.bias[-HIDDEN:] = 50
    return recurrence


def test_with_an_open_time_gate_tlstm1_is_a_peephole_lstm() -> None:
    recurrence, sequence = open_time_gate(TimeLSTM1(dim=DIM, time_dim=1, hidden=HIDDEN)), inputs()
    weights = {name: tensor.double() for name, tensor in recurrence.state_dict().items()}
    w_i, w_f, w_o = weights["peepholes"]
    v_o = weights["output_interval.weight"]
    state = cells = torch.zeros(2, HIDDEN, dtype=torch.float64)
    states = []
    for step in sequence.double().unbind(1):
        x = step[:, :DIM] @ weights["content.weight"].T + weights["content.bias"]
        i, f, g, o = (x[:, : 4 * HIDDEN] + state @ weights["recurrent"]).chunk(4, dim=1)
        i, f = torch.sigmoid(i + w_i * cells), torch.sigmoid(f + w_f * cells)
        cells = f * cells + i * torch.tanh(g)
        state = torch.sigmoid(o + step[:, DIM:] @ v_o.T + w_o * cells) * torch.tanh(cells)
        states.append(state)
    assert_same(recurrence(sequence)[0], torch.stack(states, dim=1).float())


@torch.no_grad()
def test_without_peepholes_and_time_tlstm1_is_torchs_lstm() -> None:
    recurrence, sequence = open_time_gate(TimeLSTM1(dim=DIM, time_dim=1, hidden=HIDDEN)), inputs()
    recurrence.peepholes.zero_()
    recurrence.output_interval.weight.zero_()
    reference = nn.LSTM(DIM, HIDDEN, batch_first=True)
    reference.weight_ih_l0.copy_(recurrence.content.weight[: 4 * HIDDEN])
    reference.bias_ih_l0.copy_(recurrence.content.bias[: 4 * HIDDEN])
    reference.weight_hh_l0.copy_(recurrence.recurrent.T)
    reference.bias_hh_l0.zero_()
    outputs, state = recurrence(sequence)
    expected, expected_state = reference(sequence[..., :DIM])
    assert_same(outputs, expected)
    for found, carried in zip(state, expected_state, strict=True):
        assert_same(found, carried)


@pytest.mark.parametrize("kind", [TimeLSTM1, TimeLSTM3])
def test_continuing_from_a_state_equals_one_pass(
    kind: type[TimeLSTM1] | type[TimeLSTM3],
) -> None:
    recurrence, sequence = kind(dim=DIM, time_dim=1, hidden=HIDDEN), inputs()
    whole, _ = recurrence(sequence)
    first, state = recurrence(sequence[:, :4])
    second, _ = recurrence(sequence[:, 4:], state)
    assert_same(torch.cat((first, second), dim=1), whole)


@pytest.mark.parametrize("time_dim", [1, 9])
def test_the_first_time_gates_interval_weights_stay_negative(
    time_dim: int,
) -> None:
    recurrence = TimeLSTM3(dim=DIM, time_dim=time_dim, hidden=HIDDEN)
    initial = recurrence.compute_gate_interval()
    assert (initial < 0).all()
    assert (initial >= -1 / math.sqrt(time_dim)).all()
    # Even when the gradient points the other way.
    optimiser = torch.optim.SGD(recurrence.parameters(), lr=10.0)
    for _ in range(20):
        (-recurrence.compute_gate_interval().sum()).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    assert (recurrence.compute_gate_interval() <= 0).all()


@torch.no_grad()
def test_the_output_of_tlstm3_decreases_with_the_events_age() -> None:
    # With empty cells and an output gate without time, the output is i T_1 g.
    recurrence = TimeLSTM3(dim=DIM, time_dim=1, hidden=HIDDEN)
    recurrence.output_interval.weight.zero_()
    recurrence.peepholes.zero_()
    intervals = torch.linspace(0, 3, 20)
    sequence = torch.cat((torch.randn(DIM).expand(20, 1, DIM), intervals[:, None, None]), dim=-1)
    output = recurrence(sequence)[0][:, 0].abs()
    assert (output.diff(dim=0) < 0).all()
