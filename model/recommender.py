"""The trainable recommender: an item table and one encoder."""

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
    CandidateScores,
    CausalEncoder,
    EncoderOutput,
    PositionOutputs,
    QuerySweep,
    SequenceEncoder,
)


class RecommenderConfig(Config):
    """The configuration of a recommender; with the weights, all that is needed to rebuild it."""

    items: PositiveInt
    """Catalog size, without the padding row."""
    actions: tuple[str, ...] = ()
    """Known actions; action `p` of the tuple is row `p + 1` of the action table."""
    ignored_actions: tuple[str, ...] = ()
    """Actions whose events are dropped from every history, in training and in serving."""
    groups: tuple[str, ...] = ()
    """Names of the item groups, for encoders that use groups."""
    item_bias: bool = True
    """Give every item a learned bias beside its similarity with the user vector."""
    encoder: EncoderConfig = SelfAttentionConfig()

    def build(self) -> "Recommender":
        """Build the module with fresh weights."""
        encoder = self.encoder.build(items=self.items, actions=len(self.actions))
        return Recommender(items=self.items, item_bias=self.item_bias, encoder=encoder)


@final
class Recommender(nn.Module):
    """Scores every item of a catalog for a history and a query time.

    A score is always an inner product, `user_vectors(u) @ item_vectors().T`: an item's bias and the
    squared lengths of a distance are further coordinates. Training and evaluation therefore use one
    kind of score. An index of distances holds `index_vectors()` and is searched by `index_queries`;
    its order and its scores are the same.

    DIFFERS(paper): items have a bias unless `item_bias` is false; SASRec, TiSASRec and SHAN lack
        it.
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
        """The device of the weights; batches must be on it."""
        return self.items.weight.device

    def item_vectors(self) -> Float[Tensor, "rows width"]:
        """Compute one vector per catalog row, padding included, to multiply with a user's."""
        vectors = self._constrain(self.items.weight)
        columns = [vectors]
        if self.encoder.similarity == "l2":
            lengths = vectors.square().sum(-1)
            columns += [
                (self._shift_bias() - lengths)[:, None],
                torch.ones_like(vectors[:, :1]),
            ]
        elif self.item_bias is not None:
            columns.append(self.item_bias[:, None])
        return torch.cat(columns, dim=-1) if len(columns) > 1 else vectors

    def user_vectors(self, users: Float[Tensor, "*shape dim"]) -> Float[Tensor, "*shape width"]:
        """Extend the user vectors of an encoder to the coordinates of `item_vectors`."""
        one = users.new_ones(*users.shape[:-1], 1)
        if self.encoder.similarity == "l2":
            return torch.cat((2 * users, one, -users.square().sum(-1, keepdim=True)), dim=-1)
        return users if self.item_bias is None else torch.cat((users, one), dim=-1)

    def index_vectors(self) -> Float[Tensor, "rows index_width"]:
        """Compute one vector per catalog row, padding included, for an index of `similarity`.

        Under a distance, an item's bias becomes one more coordinate: the item's distance from the
        hyperplane of the users. The item with the largest bias lies in the hyperplane.
        """
        if self.encoder.similarity == "dot":
            return self.item_vectors()
        off_plane = (-self._shift_bias()).clamp(min=0).sqrt()
        return torch.cat((self._constrain(self.items.weight), off_plane[:, None]), dim=-1)

    def index_queries(
        self, users: Float[Tensor, "*shape width"]
    ) -> Float[Tensor, "*shape index_width"]:
        """Convert `user_vectors` to the vectors that the index is searched with."""
        if self.encoder.similarity == "dot":
            return users
        in_plane = users[..., : self.encoder.dim] / 2
        return torch.cat((in_plane, torch.zeros_like(in_plane[..., :1])), dim=-1)

    def score_catalog(
        self, batch: SequenceBatch, vectors: Float[Tensor, "rows width"] | None = None
    ) -> Float[Tensor, "batch rows"]:
        """Score every catalog row after the last event of every history.

        Column 0 is padding and has no meaning.

        Args:
            vectors: the result of `item_vectors()`, if already computed.
        """
        if isinstance(self.encoder, CandidateScorer):
            all_rows = torch.arange(len(self.items.weight), device=self.device)
            starts = torch.arange(len(batch.rows), device=self.device) * batch.rows.shape[1]
            positions = starts + batch.lengths - 1
            return self.score_candidates(
                batch, positions, all_rows.expand(len(positions), -1)
            ).scores
        encoded = self(batch)
        vectors = self.item_vectors() if vectors is None else vectors
        scores: Tensor = encoded.user @ vectors.T
        if encoded.repeat_scores is not None:
            rows = batch.rows if encoded.repeat_rows is None else encoded.repeat_rows
            repeat_scores = encoded.repeat_scores.masked_fill(rows == PADDING_ROW, float("-inf"))
            scores = add_repeat_scores(scores, repeat_scores, rows)
        return scores

    def score_candidates(
        self,
        batch: SequenceBatch,
        positions: Int64[Tensor, " queries"],
        candidate_rows: Int64[Tensor, "queries candidates"],
    ) -> CandidateScores:
        """Score some catalog rows at some positions (flat indices into batch x len).

        Raises:
            TypeError: if the encoder is not a `CandidateScorer`.
        """
        if not isinstance(self.encoder, CandidateScorer):
            raise _build_unsupported_error(self.encoder, "CandidateScorer")
        candidates = self._embed(candidate_rows)
        scored = self.encoder.score_candidates(
            batch, self._embed(batch.rows), positions, candidates
        )
        if self.item_bias is None:
            return scored
        return scored._replace(scores=scored.scores + self.item_bias[candidate_rows])

    def encode_positions(self, batch: SequenceBatch) -> PositionOutputs:
        """Encode every position of every history; pass the users to `user_vectors` to score.

        Raises:
            TypeError: if the encoder is not a `CausalEncoder`.
        """
        if not isinstance(self.encoder, CausalEncoder):
            raise _build_unsupported_error(self.encoder, "CausalEncoder")
        return self.encoder.encode_positions(batch, self._embed(batch.rows))

    def forward(self, batch: SequenceBatch) -> EncoderOutput:
        """Encode every history at its last event; `user` is in the coordinates of item vectors."""
        encoded = self.encoder(batch, self._embed(batch.rows))
        return encoded._replace(user=self.user_vectors(encoded.user))

    def sweep(
        self, batch: SequenceBatch, query_times: Float64[Tensor, " query_times"]
    ) -> EncoderOutput:
        """Encode one history at many query times (days since its first event).

        Raises:
            TypeError: if the encoder is not a `QuerySweep`.
        """
        if not isinstance(self.encoder, QuerySweep):
            raise _build_unsupported_error(self.encoder, "QuerySweep")
        encoded = self.encoder.sweep(batch, self._embed(batch.rows), query_times)
        return encoded._replace(user=self.user_vectors(encoded.user))

    def _embed(self, rows: Tensor) -> Tensor:
        return self._constrain(self.items(rows))

    def _constrain(self, vectors: Tensor) -> Tensor:
        """Scale item vectors into the unit ball, if the encoder requires it."""
        if not self.encoder.in_unit_ball:
            return vectors
        lengths: Tensor = vectors.norm(dim=-1, keepdim=True)
        return vectors / lengths.clamp(min=1)

    def _shift_bias(self) -> Tensor:
        """Shift biases so that the largest is zero, which keeps the order; padding is arbitrary."""
        if self.item_bias is None:
            return self.items.weight.new_zeros(len(self.items.weight))
        return (self.item_bias - self.item_bias[1:].max()).clamp(max=0)


def _build_unsupported_error(encoder: SequenceEncoder, interface: str) -> TypeError:
    return TypeError(
        f"this operation needs an encoder that implements {interface}, but "
        f"{type(encoder).__name__} does not; choose another encoder"
    )


def add_repeat_scores(
    scores: Float[Tensor, "batch rows"],
    repeat_scores: Float[Tensor, "batch repeats"],
    rows: Int64[Tensor, "batch repeats"],
) -> Float[Tensor, "batch rows"]:
    """Add repeat scores to the scores of their items in log space: log(exp(score) + sum exp).

    A repeat score of -inf adds nothing. Row 0, padding, has no meaning.
    """
    peak = torch.maximum(scores.amax(-1), repeat_scores.amax(-1)).unsqueeze(-1)
    repeats = torch.zeros_like(scores).scatter_add_(1, rows, (repeat_scores - peak).exp())
    return torch.logaddexp(scores, repeats.log() + peak)
