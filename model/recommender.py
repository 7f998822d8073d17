"""The trainable whole: an item table and one encoder."""

from typing import final

import torch
from jaxtyping import Float, Float64
from pydantic import PositiveInt
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.catalog import PADDING_ROW
from model.config import Config
from model.encoders import EncoderConfig
from model.encoders.self_attention import SelfAttentionConfig
from model.interfaces import Encoded, EveryPosition, QuerySweep, SequenceEncoder, States


class RecommenderConfig(Config):
    """What a recommender is made of; with the weights, all that is needed to rebuild it."""

    items: PositiveInt
    """Catalogue size, without the padding row."""
    actions: tuple[str, ...] = ()
    """Known actions; action `p` of the tuple is row `p + 1` of the action table."""
    ignored_actions: tuple[str, ...] = ()
    """Actions whose events are left out of every history, as they were left out of training."""
    item_bias: bool = True
    """Give every item a score of its own beside its similarity with the user vector."""
    encoder: EncoderConfig = SelfAttentionConfig()

    def build(self) -> "Recommender":
        """The module this describes, with fresh weights."""
        encoder = self.encoder.build(items=self.items, actions=len(self.actions))
        return Recommender(items=self.items, item_bias=self.item_bias, encoder=encoder)


@final
class Recommender(nn.Module):
    """Scores every item of a catalogue for a history and a query time.

    A score is `user . item`: item biases live in one more coordinate, against a constant one in the
    user vector, so that an index of plain vectors ranks exactly as the model does.
    """

    def __init__(self, *, items: int, item_bias: bool, encoder: SequenceEncoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.items = nn.Embedding(items + 1, encoder.dim, padding_idx=PADDING_ROW)
        self.item_bias = nn.Parameter(torch.zeros(items + 1)) if item_bias else None
        nn.init.normal_(self.items.weight, std=encoder.dim**-0.5)
        with torch.no_grad():
            self.items.weight[PADDING_ROW].zero_()

    @property
    def device(self) -> torch.device:
        """Where the weights are, and so where batches must be."""
        return self.items.weight.device

    def item_vectors(self) -> Float[Tensor, "rows width"]:
        """One vector per catalogue row, padding included, as an index holds them."""
        if self.item_bias is None:
            return self.items.weight
        return torch.cat((self.items.weight, self.item_bias.unsqueeze(-1)), dim=-1)

    def user_vectors(self, users: Float[Tensor, "*shape dim"]) -> Float[Tensor, "*shape width"]:
        """Encoder states as vectors comparable with `item_vectors`."""
        if self.item_bias is None:
            return users
        return torch.cat((users, users.new_ones(*users.shape[:-1], 1)), dim=-1)

    def states(self, batch: SequenceBatch) -> States:
        """The encoder's states at every position."""
        if not isinstance(self.encoder, EveryPosition):
            raise _lacks(self.encoder, "EveryPosition")
        return self.encoder.states(batch, self.items(batch.rows))

    def forward(self, batch: SequenceBatch) -> Encoded:
        """The encoder's answer at the last event of every history, with comparable user vectors."""
        encoded = self.encoder(batch, self.items(batch.rows))
        return encoded._replace(user=self.user_vectors(encoded.user))

    def sweep(self, batch: SequenceBatch, query_times: Float64[Tensor, " query_times"]) -> Encoded:
        """One history at many instants, with comparable user vectors."""
        if not isinstance(self.encoder, QuerySweep):
            raise _lacks(self.encoder, "QuerySweep")
        encoded = self.encoder.sweep(batch, self.items(batch.rows), query_times)
        return encoded._replace(user=self.user_vectors(encoded.user))


def _lacks(encoder: SequenceEncoder, ability: str) -> TypeError:
    return TypeError(
        f"this needs an encoder with the ability {ability}, however: "
        f"encoder={type(encoder).__name__}; choose another encoder"
    )


def with_repeats(
    scores: Float[Tensor, "batch rows"],
    repeats: Float[Tensor, "batch len"],
    rows: Tensor,
) -> Float[Tensor, "batch rows"]:
    """Add the mass of pointed-at events to the scores of their items, in log space.

    `repeats` is -inf where an event must not count; padding (row 0) never matters.
    """
    peak = torch.maximum(scores.amax(-1), repeats.amax(-1)).unsqueeze(-1)
    mass = torch.zeros_like(scores).scatter_add_(1, rows, (repeats - peak).exp())
    return torch.logaddexp(scores, mass.log() + peak)
