"""The trainable recommender: an item table and one encoder."""

import math
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Float, Float64, Int64
from pydantic import PositiveInt
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.catalog import PADDING_ROW
from model.config import Config
from model.encoders import EncoderConfig
from model.encoders.self_attention import SelfAttentionConfig
from model.exported_encoder import ExportedEncoder
from model.interfaces import (
    CandidateScorer,
    CandidateScores,
    CausalEncoder,
    EncoderOutput,
    PositionOutputs,
    PrefixSweep,
    QuerySweep,
    SelectedPositions,
    SeparateAttention,
    SequenceEncoder,
)
from model.layers.added_scores import AddedScores
from model.layers.repeat_scores import HistoryQueries
from model.popularity import FEATURES
from model.popularity_table import PopularityFeatures
from model.time_zone import TimeZoneName
from model.wide import EventCounts, WideConfig, WideOutput, WidePart


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
    time_zone: TimeZoneName = "UTC"
    """The zone of the hours, weekdays and seasons that a wide part reads."""
    wide: WideConfig | None = None
    """Counted features of the score beside the encoder; none by default."""
    encoder: EncoderConfig = SelfAttentionConfig()

    def build(self) -> "Recommender":
        """Build the module with fresh weights; a wide part also needs `Recommender.counts`."""
        encoder = self.encoder.build(items=self.items, actions=len(self.actions))
        wide = None
        if self.wide is not None:
            wide = self.wide.build(items=self.items, dim=encoder.dim, time_zone=self.time_zone)
        return Recommender(items=self.items, item_bias=self.item_bias, encoder=encoder, wide=wide)


class ScoredPositions(NamedTuple):
    """What scores every item at some positions of a batch.

    Attributes:
        users: in the coordinates of `Recommender.item_vectors`, without the popularity features.
        gates: the weights of the popularity features; None without a wide part.
        popularity: the features at each position's query time; None without a wide part.
        added: scores added to single items in log space; None if there are none.
        outputs: of the encoder, at every position of the batch.
    """

    users: Float[Tensor, "positions width"]
    gates: Float[Tensor, "positions features"] | None
    popularity: PopularityFeatures | None
    added: AddedScores | None
    outputs: PositionOutputs

    def select(self, part: slice) -> "ScoredPositions":
        """Select some of the positions."""
        added = self.added
        return self._replace(
            users=self.users[part],
            gates=None if self.gates is None else self.gates[part],
            popularity=None if self.popularity is None else self.popularity.select(part),
            added=None if added is None else AddedScores(*(one[part] for one in added)),
        )


@final
class Recommender(nn.Module):
    """Scores every item of a catalog for a history and a query time.

    A score is always an inner product, `user_vectors(u) @ item_vectors().T`: an item's bias and the
    squared lengths of a distance are further coordinates, and so are the popularity features of a
    wide part, whose values depend on the query time. Training and evaluation therefore use one
    kind of score. An index of distances holds `index_vectors()` and is searched by `index_queries`;
    its order and its scores are the same.

    Attributes:
        scores_candidates: whether the encoder is a `CandidateScorer`.
        sweeps_share_history: whether it is a `QuerySweep` that encodes earlier events once.
        sweeps_prefixes: whether it is a `PrefixSweep` that does so for histories of all lengths.
        counts: what the wide part reads, to be set before it is used.
        exported: the encoder as a program, which encodes single histories in its place. None in
            training, and after the module has moved or loaded other parameters.
        longest_interval: days after an event at which the encoder reads a later query time, unless
            it limits intervals itself; those of a bundle are limited to the span of its training
            data. The wide part reads the query time itself.

    DIFFERS(paper): items have a bias unless `item_bias` is false; SASRec, TiSASRec and SHAN lack
        it.
    """

    def __init__(
        self,
        *,
        items: int,
        item_bias: bool,
        encoder: SequenceEncoder,
        wide: WidePart | None = None,
    ) -> None:
        super().__init__()
        self.exported: ExportedEncoder | None = None
        self.encoder = encoder
        self.wide = wide
        # Asked at every request, where a check of an interface costs as much as a layer.
        self.scores_candidates = isinstance(encoder, CandidateScorer)
        shares = encoder.sweeps_share_history
        self.sweeps_share_history = shares and isinstance(encoder, QuerySweep)
        self.sweeps_prefixes = shares and isinstance(encoder, PrefixSweep)
        self.counts: EventCounts | None = None
        self.longest_interval = math.inf
        self.items = nn.Embedding(items + 1, encoder.dim, padding_idx=PADDING_ROW)
        self.item_bias = nn.Parameter(torch.zeros(items + 1)) if item_bias else None
        nn.init.normal_(self.items.weight, std=encoder.dim**-0.5)
        with torch.no_grad():
            self.items.weight[PADDING_ROW].zero_()

    def train(self, mode: bool = True) -> "Recommender":
        """Set the mode; training forgets the exported encoder."""
        if mode:
            self.exported = None
        return super().train(mode)

    def _apply(self, *args: Any, **kwargs: Any) -> "Recommender":
        self.exported = None
        applied: Recommender = super()._apply(*args, **kwargs)  # type: ignore[no-untyped-call]
        return applied

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        self.exported = None
        super()._load_from_state_dict(*args, **kwargs)

    @property
    def device(self) -> torch.device:
        """The device of the weights; batches must be on it."""
        return self.items.weight.device

    def item_vectors(self) -> Float[Tensor, "rows width"]:
        """Compute one vector per catalog row, padding included, to multiply with a user's.

        The popularity features of a wide part are those as of all counted events.
        """
        vectors = self.static_vectors()
        if self.wide is None:
            return vectors
        return torch.cat((vectors, self._require_counts().popularity.latest.T), dim=-1)

    def static_vectors(
        self, rows: Int64[Tensor, " rows"] | slice = slice(None)
    ) -> Float[Tensor, "rows width"]:
        """Compute the coordinates of `item_vectors` that do not depend on the query time.

        Args:
            rows: of the catalog; all by default.
        """
        vectors = self._constrain(self.items.weight[rows])
        columns = [vectors]
        if self.encoder.similarity == "l2":
            lengths = vectors.square().sum(-1)
            columns += [
                (self._shift_bias()[rows] - lengths)[:, None],
                torch.ones_like(vectors[:, :1]),
            ]
        elif self.item_bias is not None:
            columns.append(self.item_bias[rows, None])
        return torch.cat(columns, dim=-1) if len(columns) > 1 else vectors

    def item_biases(self) -> Float[Tensor, " rows"] | None:
        """Return what each item's bias adds to its scores; None if items have none."""
        if self.item_bias is None:
            return None
        return self.item_bias if self.encoder.similarity == "dot" else self._shift_bias()

    def user_vectors(self, users: Float[Tensor, "*shape dim"]) -> Float[Tensor, "*shape width"]:
        """Extend the user vectors of an encoder to the coordinates of `item_vectors`."""
        one = users.new_ones(*users.shape[:-1], 1)
        if self.encoder.similarity == "l2":
            return torch.cat((2 * users, one, -users.square().sum(-1, keepdim=True)), dim=-1)
        columns = [users]
        if self.wide is not None:
            columns[0] = users * self.wide.log_scale.exp()
        if self.item_bias is not None:
            columns.append(one)
        if self.wide is not None:
            columns.append(self.wide.gates(users))
        return torch.cat(columns, dim=-1) if len(columns) > 1 else users

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
            vectors: the result of `static_vectors()`, if already computed.
        """
        if isinstance(self.encoder, CandidateScorer):
            all_rows = torch.arange(len(self.items.weight), device=self.device)
            starts = torch.arange(len(batch.rows), device=self.device) * batch.rows.shape[1]
            positions = starts + batch.lengths - 1
            return self.score_candidates(
                batch, positions, all_rows.expand(len(positions), -1)
            ).scores
        encoded = self(batch)
        vectors = self.static_vectors() if vectors is None else vectors
        scores = _score_users(encoded.user, vectors, encoded.popularity)
        if encoded.repeat_scores is not None:
            rows = batch.rows if encoded.repeat_rows is None else encoded.repeat_rows
            repeat_scores = encoded.repeat_scores.masked_fill(rows == PADDING_ROW, float("-inf"))
            scores = add_repeat_scores(scores, repeat_scores, rows)
        return scores

    def score_rows(
        self, encoded: EncoderOutput, rows: Int64[Tensor, " items"]
    ) -> Float[Tensor, "batch items"]:
        """Score some catalog rows for the histories of `forward`, without repeat scores."""
        vectors = self.static_vectors(rows)
        if encoded.popularity is None:
            return encoded.user @ vectors.T
        users, gates = encoded.user.tensor_split((vectors.shape[1],), dim=-1)
        return encoded.popularity.add_to(users @ vectors.T, gates, rows)

    def score_at(
        self, user: Float[Tensor, " width"], features: Float[Tensor, "features rows"]
    ) -> Float[Tensor, " rows"]:
        """Score every catalog row for one user vector, with the popularity features of any time.

        Without repeat scores. Copies no item vectors, unlike `user @ item_vectors().T`.
        """
        encoded, _, gates = user.tensor_split((self.encoder.dim, len(user) - FEATURES))
        scores: Tensor = self._constrain(self.items.weight) @ encoded
        if self.item_bias is not None:
            scores += self.item_bias
        return scores.addmv_(features.T, gates)

    def score_encoded(
        self, at: ScoredPositions, vectors: Float[Tensor, "rows width"]
    ) -> Float[Tensor, "positions rows"]:
        """Score every catalog row at the positions of `encode_at`.

        Args:
            vectors: the result of `static_vectors()`.
        """
        users = at.users if at.gates is None else torch.cat((at.users, at.gates), dim=-1)
        scores = _score_users(users, vectors, at.popularity)
        if at.added is None:
            return scores
        added = at.added.log_scores.masked_fill(at.added.rows == PADDING_ROW, float("-inf"))
        return add_repeat_scores(scores, added, at.added.rows)

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
            self._limit_intervals(batch), self._embed(batch.rows), positions, candidates
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

    def encode_at(
        self, batch: SequenceBatch, positions: Int64[Tensor, " positions"]
    ) -> ScoredPositions:
        """Encode some positions of the histories of a batch, flat indices into batch x len.

        Later events add nothing to the scores at a position.

        Raises:
            TypeError: if the encoder is not a `CausalEncoder`.
        """
        outputs, users = self._encode_at(batch, positions)
        queries = HistoryQueries.at_positions(batch, positions)
        added: AddedScores | None = None
        if outputs.repeat_scores is not None:
            later = torch.arange(batch.rows.shape[1], device=self.device) > queries.last[:, None]
            of_events = outputs.repeat_scores.flatten(0, 1)[positions]
            added = AddedScores(
                batch.rows[queries.sample], of_events.masked_fill(later, float("-inf"))
            )
        if self.wide is None:
            return ScoredPositions(self.user_vectors(users), None, None, added, outputs)
        wide = self.wide(users, batch, queries, self._require_counts())
        vectors, gates = self.user_vectors(wide.users).tensor_split((-FEATURES,), dim=-1)
        return ScoredPositions(
            vectors,
            gates,
            wide.popularity,
            AddedScores.join((added, wide.repeats, wide.followers)),
            outputs,
        )

    def _encode_at(self, batch: SequenceBatch, positions: Tensor) -> tuple[PositionOutputs, Tensor]:
        # Only on a CPU: a device would have to tell the host how many positions a history has.
        selects = self.device.type == "cpu" and 2 * len(positions) < batch.rows.numel()
        if selects and isinstance(self.encoder, SelectedPositions):
            users = self.encoder.encode_selected(batch, self._embed(batch.rows), positions)
            if users is not None:
                return PositionOutputs(users.unsqueeze(1)), users
        outputs = self.encode_positions(batch)
        return outputs, outputs.users.flatten(0, 1)[positions]

    def attend(self, batch: SequenceBatch) -> EncoderOutput:
        """Run the encoder alone at every history's last event, without scores of items.

        `user` is the encoder's own vector, and only its own repeat scores are there.
        """
        is_single = len(batch.rows) == 1
        encode = self.exported if self.exported is not None and is_single else self.encoder
        encoded: EncoderOutput = encode(self._limit_intervals(batch), self._embed(batch.rows))
        return encoded

    def compute_attention(self, batch: SequenceBatch) -> Float[Tensor, "batch heads len"] | None:
        """Compute the attention weights at every history's last event; None without attention."""
        if isinstance(self.encoder, SeparateAttention):
            return self.encoder.compute_attention(self._limit_intervals(batch))
        return self.attend(batch).attention

    def forward(self, batch: SequenceBatch) -> EncoderOutput:
        """Encode every history at its last event; `user` is in the coordinates of item vectors."""
        encoded = self.attend(batch)
        if self.wide is None:
            return encoded._replace(user=self.user_vectors(encoded.user))
        return self._add_wide_part(self.wide, batch, encoded, HistoryQueries.at_last_events(batch))

    def sweep(
        self,
        batch: SequenceBatch,
        query_times: Float64[Tensor, " query_times"],
        ends: Int64[Tensor, " query_times"] | None = None,
    ) -> EncoderOutput:
        """Encode one history at many query times (days since its first event).

        Args:
            ends: how many events to encode for each of them; all by default.

        Raises:
            TypeError: if the encoder is not a `QuerySweep`, or with `ends` not a `PrefixSweep`.
        """
        limited, items = self._limit_intervals(batch), self._embed(batch.rows)
        every = batch.lengths.expand(len(query_times))
        last = (every if ends is None else ends) - 1
        times = query_times.minimum(batch.times[0, last] + self.longest_interval)
        if ends is None:
            if not isinstance(self.encoder, QuerySweep):
                raise _build_unsupported_error(self.encoder, "QuerySweep")
            encoded = self.encoder.sweep(limited, items, times)
        else:
            if not isinstance(self.encoder, PrefixSweep):
                raise _build_unsupported_error(self.encoder, "PrefixSweep")
            encoded = self.encoder.sweep_prefixes(limited, items, times, ends)
        if self.wide is None:
            return encoded._replace(user=self.user_vectors(encoded.user))
        queries = HistoryQueries(
            sample=torch.zeros_like(last),
            last=last,
            times=query_times,
            given=batch.query_given[0, -1].expand_as(query_times),
        )
        return self._add_wide_part(self.wide, batch, encoded, queries)

    def _limit_intervals(self, batch: SequenceBatch) -> SequenceBatch:
        if self.encoder.limits_intervals or math.isinf(self.longest_interval):
            return batch
        latest = batch.times + self.longest_interval
        return batch._replace(query_times=torch.minimum(batch.query_times, latest))

    def _add_wide_part(
        self, part: WidePart, batch: SequenceBatch, encoded: EncoderOutput, queries: HistoryQueries
    ) -> EncoderOutput:
        wide: WideOutput = part(encoded.user, batch, queries, self._require_counts())
        own: AddedScores | None = None
        if encoded.repeat_scores is not None:
            rows = batch.rows if encoded.repeat_rows is None else encoded.repeat_rows
            own = AddedScores(rows.expand_as(encoded.repeat_scores), encoded.repeat_scores)
        added = AddedScores.join((own, wide.repeats, wide.followers))
        return encoded._replace(
            user=self.user_vectors(wide.users),
            popularity=wide.popularity,
            repeat_scores=None if added is None else added.log_scores,
            repeat_rows=None if added is None else added.rows,
            followers=0 if wide.followers is None else wide.followers.rows.shape[1],
            calendar=wide.calendar,
        )

    def count_first_events(self, rows: Int64[Tensor, " items"]) -> Int64[Tensor, " items"]:
        """Count the events of items in the first span of time that has any of the item."""
        return self._require_counts().popularity.count_first_events(rows)

    def _require_counts(self) -> EventCounts:
        if self.counts is None:
            raise RuntimeError(
                "a recommender with a wide part reads counts of events, but has none; set `counts`"
            )
        if self.counts.device != self.device:
            self.counts = self.counts.to(self.device)
        return self.counts

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


def _score_users(
    users: Float[Tensor, "users width"],
    vectors: Float[Tensor, "rows static_width"],
    popularity: PopularityFeatures | None,
) -> Float[Tensor, "users rows"]:
    """Score every catalog row; the last coordinates of `users` are weights of the popularity."""
    if popularity is None:
        return users @ vectors.T
    users, gates = users.tensor_split((vectors.shape[1],), dim=-1)
    return popularity.add_to(users @ vectors.T, gates)


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
