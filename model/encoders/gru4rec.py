"""GRU4Rec: a gated recurrent unit over the items of a history."""

from typing import Literal, final

from jaxtyping import Float
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.config import Config
from model.interfaces import Encoded, SequenceEncoder, States
from model.layers.time_aware_block import at_positions


class GRU4RecConfig(Config):
    """A GRU over item vectors."""

    kind: Literal["gru4rec"] = "gru4rec"
    dim: PositiveInt = 64
    hidden: PositiveInt = 64
    """Width of the recurrent state."""
    layers: PositiveInt = 1
    dropout: float = Field(default=0.2, ge=0, lt=1)
    max_history: PositiveInt = 200
    """Events read of a history, the most recent ones."""

    def build(self, *, items: int = 0, actions: int = 0) -> "GRU4Rec":  # noqa: ARG002
        """The module this describes."""
        return GRU4Rec(**self.model_dump(exclude={"kind", "max_history"}))


@final
class GRU4Rec(SequenceEncoder):
    """Reads items one after another into a recurrent state; the state is the user vector.

    It reads the order of the items alone: not when they came, nor when it is asked.

    Shape: items (batch, len, dim) -> user (batch, dim)

    Paper: Hidasi et al. 2016, "Session-based Recommendations with Recurrent Neural Networks".
    DIFFERS(paper): the state starts anew with every history, and a linear map brings it to the
        width of the item vectors, which score it, rather than an output matrix of its own; the
        reset gate scales the state's share of the candidate after its matrix, not before.
    DIFFERS(code): whole histories side by side instead of session-parallel mini-batches; the loss
        is the trainer's.
    """

    def __init__(self, *, dim: int, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.dim = dim
        self.dropout = nn.Dropout(dropout)
        self.recurrence = nn.GRU(
            dim, hidden, layers, batch_first=True, dropout=dropout if layers > 1 else 0.0
        )
        self.read_out = nn.Linear(hidden, dim)

    def states(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> States:  # noqa: ARG002
        """User vectors at every position; what follows a position never reaches it."""
        return States(self.read_out(self._read(items)))

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> Encoded:
        """User vectors after the last event of each history."""
        last = at_positions(self._read(items), batch.lengths - 1).squeeze(1)
        return Encoded(self.read_out(last))

    def _read(self, items: Tensor) -> Tensor:
        """The state of the last layer after every event."""
        read, _ = self.recurrence(self.dropout(items))
        dropped: Tensor = self.dropout(read)
        return dropped
