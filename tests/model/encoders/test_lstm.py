"""LSTM, LSTM+T and LSTM+Time2Vec against their gates in a loop."""

import math

import torch

from model.encoders.lstm import LSTM, LSTMConfig
from model.interfaces import SequenceEncoder
from model.layers.interval_features import LogIntervalConfig, RawIntervalConfig
from model.time_encodings.time2vec import Time2VecConfig
from tests.contracts.histories import draw_queries, laid_out
from tests.contracts.sequence_encoder import SequenceEncoderContract, assert_same, vectors


def small(**changed: object) -> LSTMConfig:
    return LSTMConfig.model_validate({"dim": 16, "hidden": 12, "max_history": 40} | changed)


class LSTMContract(SequenceEncoderContract):
    config: LSTMConfig  # type: ignore[misc]

    def test_the_gates_one_event_at_a_time_in_double_precision(
        self, encoder: SequenceEncoder
    ) -> None:
        assert isinstance(encoder, LSTM)
        batch = laid_out(draw_queries(9)[0])
        batch = batch.withhold(torch.arange(9).expand(1, -1) % 4 == 2)
        items = vectors(encoder, batch)
        weights = {name: tensor.double() for name, tensor in encoder.state_dict().items()}
        recurrence, read_out = "reader.recurrence.", "reader.read_out."
        state = cells = torch.zeros(12, dtype=torch.float64)
        users = []
        for place, event in enumerate(items[0].double()):
            x = event
            if self.config.interval is not None:
                days = float(batch.query_times[0, place] - batch.times[0, place])
                told = bool(batch.query_given[0, place])
                withheld = weights["reader.interval.withheld"]
                x = torch.cat((event, self.features(days, weights) if told else withheld))
            gates = (
                weights[recurrence + "weight_ih_l0"] @ x
                + weights[recurrence + "bias_ih_l0"]
                + weights[recurrence + "weight_hh_l0"] @ state
                + weights[recurrence + "bias_hh_l0"]
            )
            into, forget, candidate, out = gates.chunk(4)
            cells = forget.sigmoid() * cells + into.sigmoid() * candidate.tanh()
            state = out.sigmoid() * cells.tanh()
            users.append(weights[read_out + "weight"] @ state + weights[read_out + "bias"])
        assert_same(encoder.states(batch, items).users[0], torch.stack(users).float())

    def features(self, days: float, weights: dict[str, torch.Tensor]) -> torch.Tensor:
        """The interval as the method reads it."""
        raise NotImplementedError


class TestLSTM(LSTMContract):
    config = small()
    reads_time = False


class TestLSTMWithRawTime(LSTMContract):
    config = small(interval=RawIntervalConfig(time_scale=7.0))
    reads_time = True

    def features(self, days: float, weights: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.tensor([days / 7], dtype=torch.float64)


class TestLSTMWithLogTime(LSTMContract):
    config = small(interval=LogIntervalConfig())
    reads_time = True

    def features(self, days: float, weights: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.tensor([math.log1p(days)], dtype=torch.float64)


class TestLSTMWithTime2Vec(LSTMContract):
    config = small(interval=Time2VecConfig(frequencies=6))
    reads_time = True

    def features(self, days: float, weights: dict[str, torch.Tensor]) -> torch.Tensor:
        part = "reader.interval.features."
        slope = weights[part + "slope"] / Time2VecConfig().longest_period
        line = slope * days + weights[part + "intercept"]
        angular = 2 * math.pi / weights[part + "periods.log_periods"].exp()
        return torch.cat((line, torch.sin(angular * days + weights[part + "phases"])))


def test_only_the_named_readings_of_an_interval_exist() -> None:
    assert small(interval={"kind": "raw"}).interval == RawIntervalConfig()
    assert small(interval={"kind": "time2vec"}).interval == Time2VecConfig()
    assert small().interval is None
