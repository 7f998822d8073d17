"""GRU4Rec: a gated recurrent unit over the items of a history."""

from typing import Literal, final

from jaxtyping import Float
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from model.batch import SequenceBatch, select_positions
from model.config import Config
from model.interfaces import EncoderOutput, PositionOutputs, SequenceEncoder
from model.layers.dropout import Dropout


class GRU4RecConfig(Config):
    """A GRU over item vectors."""

    kind: Literal["gru4rec"] = "gru4rec"
    dim: PositiveInt = 64
    """Width of item and user vectors."""
    hidden: PositiveInt = 64
    """Width of the hidden state."""
    layers: PositiveInt = 1
    """Layers of the GRU."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout of item vectors and of hidden states, also between layers."""
    max_history: PositiveInt = 200
    """Events of a history in use, the most recent ones."""

    def build(self, *, items: int = 0, actions: int = 0) -> "GRU4Rec":  # noqa: ARG002
        """Build the module."""
        return GRU4Rec(**self.model_dump(exclude={"kind", "max_history"}))


@final
class GRU4Rec(SequenceEncoder):
    """Encodes items in their order by a GRU; a projection of its state is the user vector.

    The encoder uses the order of the items only: neither event times nor the query time.

    Shape: items (batch, len, dim) -> user (batch, dim)

    Paper: Hidasi et al. 2016, "Session-based Recommendations with Recurrent Neural Networks".
    DIFFERS(paper): every history starts from a zero state; a linear map projects the state to the
        width of the item vectors, which score it, where the paper has an output matrix; the reset
        gate is applied after the recurrent matrix of the candidate state, not before.
    DIFFERS(code): whole histories side by side instead of session-parallel mini-batches; the loss
        is the trainer's.
    """

    def __init__(self, *, dim: int, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.dim = dim
        self.dropout = Dropout(dropout)
        self.recurrence = nn.GRU(
            dim, hidden, layers, batch_first=True, dropout=dropout if layers > 1 else 0.0
        )
        self.out_proj = nn.Linear(hidden, dim)

    def encode_positions(
        self,
        batch: SequenceBatch,  # noqa: ARG002
        items: Float[Tensor, "batch len dim"],
    ) -> PositionOutputs:
        """Compute the user vector at every position, from the events up to it."""
        return PositionOutputs(self.out_proj(self._compute_hidden_states(items)))

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> EncoderOutput:
        """Compute the user vector after the last event of each history."""
        last = select_positions(self._compute_hidden_states(items), batch.lengths - 1).squeeze(1)
        return EncoderOutput(self.out_proj(last))

    def _compute_hidden_states(self, items: Tensor) -> Tensor:
        """Compute the state of the last layer after every event."""
        hidden, _ = self.recurrence(self.dropout(items))
        dropped: Tensor = self.dropout(hidden)
        return dropped
