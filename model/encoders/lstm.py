"""LSTM, LSTM+T and LSTM+Time2Vec."""

from typing import Annotated, Literal, final

from jaxtyping import Float, Float64
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.config import Config
from model.interfaces import Encoded, SequenceEncoder, States
from model.layers.interval_features import IntervalFeatures, LogIntervalConfig, RawIntervalConfig
from model.layers.interval_recurrence import IntervalRecurrence
from model.layers.time_aware_block import at_positions
from model.time_encodings.time2vec import Time2VecConfig


class LSTMConfig(Config):
    """An LSTM over item vectors, and over intervals where asked."""

    kind: Literal["lstm"] = "lstm"
    dim: PositiveInt = 64
    hidden: PositiveInt = 64
    """Width of the recurrent state."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    max_history: PositiveInt = 200
    """Events read of a history, the most recent ones."""
    interval: (
        Annotated[
            RawIntervalConfig | LogIntervalConfig | Time2VecConfig, Field(discriminator="kind")
        ]
        | None
    ) = None
    """How the interval from an event to its query time is read beside it: `raw` and `log` make
    LSTM+T, `time2vec` makes LSTM+Time2Vec."""

    def build(self, *, items: int = 0, actions: int = 0) -> "LSTM":  # noqa: ARG002
        """The module this describes."""
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
    """Reads events one after another, each with how long before its query time it happened.

    Without intervals it reads the order of the items alone.

    Shape: items (batch, len, dim) -> user (batch, dim)

    Paper: LSTM+T as compared in Zhu et al. 2017, and with the logarithm in Li et al. 2017;
        LSTM+Time2Vec of Kazemi et al. 2019, section 5.
    DIFFERS(paper): no peepholes; raw intervals are counted in units of 30 days; items are scored by
        their vectors rather than by an output matrix.
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
