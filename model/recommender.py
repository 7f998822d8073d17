"""The trainable whole: an item table and one encoder."""

from typing import final

import torch
from jaxtyping import Float, Float64, Int64
from pydantic import PositiveInt
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.catalog import PADDING_ROW
from model.config import Config
from model.encoders import EncoderConfig
from model.encoders.self_attention import SelfAttentionConfig
from model.interfaces import (
    CandidateScorer,
    Encoded,
    EveryPosition,
    Judged,
    QuerySweep,
    SequenceEncoder,
    States,
)


class RecommenderConfig(Config):
    """What a recommender is made of; with the weights, all that is needed to rebuild it."""

    items: PositiveInt
    """Catalogue size, without the padding row."""
    actions: tuple[str, ...] = ()
    """Known actions; action `p` of the tuple is row `p + 1` of the action table."""
    ignored_actions: tuple[str, ...] = ()
    """Actions whose events are left out of every history, as they were left out of training."""
    groups: tuple[str, ...] = ()
    """Names of the groups of items, for encoders that tell groups apart."""
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

    A score is always an inner product, `user_vectors(u) @ item_vectors().T`: what else a similarity
    needs (an item's bias, the squared lengths of a distance) lives in further coordinates. Training
    and evaluation therefore know one kind of score. An index of distances holds
    `index_vectors()` and is searched by `index_queries`; it ranks and scores exactly alike.
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
        """One vector per catalogue row, padding included, to be multiplied with a user's."""
        vectors = self._kept(self.items.weight)
        columns = [vectors]
        if self.encoder.similarity == "l2":
            lengths = vectors.square().sum(-1)
            columns += [(self._lowered_bias() - lengths)[:, None], torch.ones_like(vectors[:, :1])]
        elif self.item_bias is not None:
            columns.append(self.item_bias[:, None])
        return torch.cat(columns, dim=-1) if len(columns) > 1 else vectors

    def user_vectors(self, users: Float[Tensor, "*shape dim"]) -> Float[Tensor, "*shape width"]:
        """Encoder states as vectors comparable with `item_vectors`."""
        one = users.new_ones(*users.shape[:-1], 1)
        if self.encoder.similarity == "l2":
            return torch.cat((2 * users, one, -users.square().sum(-1, keepdim=True)), dim=-1)
        return users if self.item_bias is None else torch.cat((users, one), dim=-1)

    def index_vectors(self) -> Float[Tensor, "rows index_width"]:
        """One vector per catalogue row, padding included, as an index of `similarity` holds them.

        Under a distance, an item's bias is one more coordinate: how far the item stands off the
        plane in which users are. The most favoured item stands in the plane.
        """
        if self.encoder.similarity == "dot":
            return self.item_vectors()
        off_plane = (-self._lowered_bias()).clamp(min=0).sqrt()
        return torch.cat((self._kept(self.items.weight), off_plane[:, None]), dim=-1)

    def index_queries(
        self, users: Float[Tensor, "*shape width"]
    ) -> Float[Tensor, "*shape index_width"]:
        """What to search the index with, from `user_vectors`."""
        if self.encoder.similarity == "dot":
            return users
        in_plane = users[..., : self.encoder.dim] / 2
        return torch.cat((in_plane, torch.zeros_like(in_plane[..., :1])), dim=-1)

    def score_catalogue(
        self, batch: SequenceBatch, vectors: Float[Tensor, "rows width"] | None = None
    ) -> Float[Tensor, "batch rows"]:
        """The score of every catalogue row after the last event of every history.

        Pass `item_vectors()` where it is at hand. Column 0 is padding and means nothing.
        """
        if isinstance(self.encoder, CandidateScorer):
            every_row = torch.arange(len(self.items.weight), device=self.device)
            last = torch.arange(len(batch.rows), device=self.device) * batch.rows.shape[1]
            asked = last + batch.lengths - 1
            return self.judge(batch, asked, every_row.expand(len(asked), -1)).scores
        encoded = self(batch)
        vectors = self.item_vectors() if vectors is None else vectors
        scores: Tensor = encoded.user @ vectors.T
        if encoded.repeats is not None:
            pointed = batch.rows if encoded.pointed_rows is None else encoded.pointed_rows
            mass = encoded.repeats.masked_fill(pointed == PADDING_ROW, float("-inf"))
            scores = with_repeats(scores, mass, pointed)
        return scores

    def judge(
        self,
        batch: SequenceBatch,
        positions: Int64[Tensor, " questions"],
        candidate_rows: Int64[Tensor, "questions candidates"],
    ) -> Judged:
        """Scores of some catalogue rows at some positions, by an encoder that must see them."""
        if not isinstance(self.encoder, CandidateScorer):
            raise _lacks(self.encoder, "CandidateScorer")
        candidates = self._look_up(candidate_rows)
        judged = self.encoder.judge(batch, self._look_up(batch.rows), positions, candidates)
        if self.item_bias is None:
            return judged
        return judged._replace(scores=judged.scores + self.item_bias[candidate_rows])

    def states(self, batch: SequenceBatch) -> States:
        """The encoder's states at every position."""
        if not isinstance(self.encoder, EveryPosition):
            raise _lacks(self.encoder, "EveryPosition")
        return self.encoder.states(batch, self._look_up(batch.rows))

    def forward(self, batch: SequenceBatch) -> Encoded:
        """The encoder's answer at the last event of every history, with comparable user vectors."""
        encoded = self.encoder(batch, self._look_up(batch.rows))
        return encoded._replace(user=self.user_vectors(encoded.user))

    def sweep(self, batch: SequenceBatch, query_times: Float64[Tensor, " query_times"]) -> Encoded:
        """One history at many instants, with comparable user vectors."""
        if not isinstance(self.encoder, QuerySweep):
            raise _lacks(self.encoder, "QuerySweep")
        encoded = self.encoder.sweep(batch, self._look_up(batch.rows), query_times)
        return encoded._replace(user=self.user_vectors(encoded.user))

    def _look_up(self, rows: Tensor) -> Tensor:
        return self._kept(self.items(rows))

    def _kept(self, vectors: Tensor) -> Tensor:
        """Item vectors within the bounds that the encoder sets them."""
        if not self.encoder.in_unit_ball:
            return vectors
        lengths: Tensor = vectors.norm(dim=-1, keepdim=True)
        return vectors / lengths.clamp(min=1)

    def _lowered_bias(self) -> Tensor:
        """Biases of which the largest is zero, which changes no order; padding's says nothing."""
        if self.item_bias is None:
            return self.items.weight.new_zeros(len(self.items.weight))
        return (self.item_bias - self.item_bias[1:].max()).clamp(max=0)


def _lacks(encoder: SequenceEncoder, ability: str) -> TypeError:
    return TypeError(
        f"this needs an encoder with the ability {ability}, however: "
        f"encoder={type(encoder).__name__}; choose another encoder"
    )


def with_repeats(
    scores: Float[Tensor, "batch rows"],
    repeats: Float[Tensor, "batch pointed"],
    rows: Int64[Tensor, "batch pointed"],
) -> Float[Tensor, "batch rows"]:
    """Add the mass of pointed-at events to the scores of their items, in log space.

    `repeats` is -inf where an event must not count; padding (row 0) never matters.
    """
    peak = torch.maximum(scores.amax(-1), repeats.amax(-1)).unsqueeze(-1)
    mass = torch.zeros_like(scores).scatter_add_(1, rows, (repeats - peak).exp())
    return torch.logaddexp(scores, mass.log() + peak)
