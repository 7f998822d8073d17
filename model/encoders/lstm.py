"""LSTM, LSTM+T and LSTM+Time2Vec."""

from typing import Annotated, Literal, final

from jaxtyping import Float, Float64
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from model.batch import SequenceBatch, select_positions
from model.config import Config
from model.interfaces import EncoderOutput, PositionOutputs, SequenceEncoder
from model.layers.interval_features import IntervalFeatures, LogIntervalConfig, RawIntervalConfig
from model.layers.interval_recurrence import IntervalRecurrence
from model.time_encodings.time2vec import Time2VecConfig


class LSTMConfig(Config):
    """An LSTM over item vectors, optionally with interval features."""

    kind: Literal["lstm"] = "lstm"
    dim: PositiveInt = 64
    """Width of item and user vectors."""
    hidden: PositiveInt = 64
    """Width of the hidden state."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout of item vectors and of hidden states."""
    max_history: PositiveInt = 200
    """Events of a history in use, the most recent ones."""
    interval: (
        Annotated[
            RawIntervalConfig | LogIntervalConfig | Time2VecConfig, Field(discriminator="kind")
        ]
        | None
    ) = None
    """Features of the interval from an event to its query time: `raw` and `log` make LSTM+T,
    `time2vec` makes LSTM+Time2Vec."""

    def build(self, *, items: int = 0, actions: int = 0) -> "LSTM":  # noqa: ARG002
        """Build the module."""
        features = self.interval.build() if self.interval else None
        time_dim = features.dim if features else 0
        return LSTM(
            IntervalRecurrence(
                nn.LSTM(self.dim + time_dim, self.hidden, batch_first=True),
                IntervalFeatures(features, time_dim=time_dim) if features else None,
                hidden=self.hidden,
                dim=self.dim,
                dropout=self.dropout,
            ),
            dim=self.dim,
        )


@final
class LSTM(SequenceEncoder):
    """Encodes events in their order, each with the features of the interval to its query time.

    Without interval features, the encoder uses the order of the items only.

    Shape: items (batch, len, dim) -> user (batch, dim)

    Paper: LSTM+T as compared in Zhu et al. 2017, and with the logarithm in Li et al. 2017;
        LSTM+Time2Vec of Kazemi et al. 2019, section 5.
    DIFFERS(paper): no peepholes; raw intervals are in units of 30 days; items are scored by their
        vectors instead of an output matrix.
    DIFFERS(paper): Time2Vec is applied to the interval to the query time; Kazemi et al. apply it to
        the time of the event or the time since the last event.
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
