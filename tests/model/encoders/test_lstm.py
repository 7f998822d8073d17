"""LSTM, LSTM+T and LSTM+Time2Vec against their equations, one event at a time."""

import math

import torch

from model.encoders.lstm import LSTM, LSTMConfig
from model.interfaces import SequenceEncoder
from model.layers.interval_features import LogIntervalConfig, RawIntervalConfig
from model.time_encodings.time2vec import Time2VecConfig
from tests.contracts.histories import collate_queries, draw_queries
from tests.contracts.sequence_encoder import SequenceEncoderContract, assert_same, vectors


def small(**changed: object) -> LSTMConfig:
    return LSTMConfig.model_validate({"dim": 16, "hidden": 12, "max_history": 40} | changed)


class LSTMContract(SequenceEncoderContract):
    config: LSTMConfig  # type: ignore[misc]

    def test_users_follow_the_equations(self, encoder: SequenceEncoder) -> None:
        assert isinstance(encoder, LSTM)
        batch = collate_queries(draw_queries(9)[0])
        batch = batch.withhold_query_times(torch.arange(9).expand(1, -1) % 4 == 2)
        items = vectors(encoder, batch)
        weights = {name: tensor.double() for name, tensor in encoder.state_dict().items()}
        recurrence, out_proj = "network.recurrence.", "network.out_proj."
        state = cells = torch.zeros(12, dtype=torch.float64)
        users = []
        for position, event in enumerate(items[0].double()):
            x = event
            if self.config.interval is not None:
                days = float(batch.query_times[0, position] - batch.times[0, position])
                given = bool(batch.query_given[0, position])
                withheld = weights["network.interval.withheld"]
                x = torch.cat((event, self.features(days, weights) if given else withheld))
            gates = (
                weights[recurrence + "weight_ih_l0"] @ x
                + weights[recurrence + "bias_ih_l0"]
                + weights[recurrence + "weight_hh_l0"] @ state
                + weights[recurrence + "bias_hh_l0"]
            )
            into, forget, candidate, out = gates.chunk(4)
            cells = forget.sigmoid() * cells + into.sigmoid() * candidate.tanh()
            state = out.sigmoid() * cells.tanh()
            users.append(weights[out_proj + "weight"] @ state + weights[out_proj + "bias"])
        assert_same(encoder.encode_positions(batch, items).users[0], torch.stack(users).float())

    def features(self, days: float, weights: dict[str, torch.Tensor]) -> torch.Tensor:
        """Compute the interval features."""
        raise NotImplementedError


class TestLSTM(LSTMContract):
    config = small()
    uses_time = False


class TestLSTMWithRawTime(LSTMContract):
    config = small(interval=RawIntervalConfig(time_scale=7.0))
    uses_time = True

    def features(self, days: float, weights: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.tensor([days / 7], dtype=torch.float64)


class TestLSTMWithLogTime(LSTMContract):
    config = small(interval=LogIntervalConfig())
    uses_time = True

    def features(self, days: float, weights: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.tensor([math.log1p(days)], dtype=torch.float64)


class TestLSTMWithTime2Vec(LSTMContract):
    config = small(interval=Time2VecConfig(frequencies=6))
    uses_time = True

    def features(self, days: float, weights: dict[str, torch.Tensor]) -> torch.Tensor:
        prefix = "network.interval.features."
        slope = weights[prefix + "slope"] / Time2VecConfig().longest_period
        linear = slope * days + weights[prefix + "intercept"]
        angular = 2 * math.pi / weights[prefix + "periods.log_periods"].exp()
        return torch.cat((linear, torch.sin(angular * days + weights[prefix + "phases"])))


def test_interval_features_are_optional() -> None:
    assert small(interval={"kind": "raw"}).interval == RawIntervalConfig()
    assert small(interval={"kind": "time2vec"}).interval == Time2VecConfig()
    assert small().interval is None
