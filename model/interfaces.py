"""The interfaces of time encodings and encoders, and the capabilities that some encoders add."""

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.clock import MICROSECONDS_PER_DAY
from model.layers.added_scores import AddedScores
from model.layers.damped_basis import damp
from model.layers.fourier_basis import BasisProjection, basis
from model.layers.interval_distribution import IntervalDistribution
from model.layers.item_groups import ItemGroups
from model.popularity_table import PopularityFeatures


class TimeEncoding(nn.Module, ABC):
    """Intervals in days -> features whose inner product is a kernel of time.

    An encoding is defined by its angular frequencies, the rates at which they decay, if any, and an
    affine projection of the Fourier basis at those frequencies. Its features, its kernel and its
    rotation in attention follow from these.

    Attributes:
        dim: features per interval.
        is_stationary: whether the kernel depends only on the difference of its arguments.
        domain: "time" for intervals in days; "position" for the control, whose intervals count
            events.
    """

    dim: int
    is_stationary: ClassVar[bool]
    domain: ClassVar[Literal["time", "position"]] = "time"

    @abstractmethod
    def frequencies(self) -> Float64[Tensor, " frequencies"]:
        """Compute the angular frequencies: radians per day (per event if `domain` is position)."""

    @abstractmethod
    def basis_projection(self) -> BasisProjection:
        """Compute the affine map from the Fourier basis to the features."""

    def rates(self) -> Float64[Tensor, " frequencies"] | None:
        """Compute the rate at which each frequency decays, per day; None where none does."""
        return None

    def forward(self, intervals: Float64[Tensor, "*shape"]) -> Float[Tensor, "*shape time_dim"]:
        """Compute the features of intervals; attention reproduces them by rotation."""
        weight, bias = self.basis_projection()
        at_intervals, rates = basis(intervals, self.frequencies()), self.rates()
        if rates is not None:
            at_intervals = damp(at_intervals, intervals, rates)
        return at_intervals @ weight.T + bias

    def kernel(
        self, times: Float64[Tensor, "*#shape"], other: Float64[Tensor, "*#shape"]
    ) -> Float[Tensor, "*shape"]:
        """Compute K(t, t') = phi(t) . phi(t')."""
        return (self(times) * self(other)).sum(-1)

    @torch.no_grad()
    def power(self) -> float:
        """Compute the squared length of the features, the median over intervals up to ten years."""
        intervals = torch.logspace(-3, math.log10(3650), 257, dtype=torch.float64)
        features = self(intervals.to(self.frequencies().device))
        return float(features.square().sum(-1).median())

    def spectrum(self) -> "Spectrum":
        """Compute the power of each frequency in the kernel."""
        squared = self.basis_projection().weight.square().sum(0)
        return Spectrum(self.frequencies(), squared.view(-1, 2).mean(-1))

    if TYPE_CHECKING:

        def __call__(self, intervals: Tensor) -> Tensor: ...  # noqa: D102


class Spectrum(NamedTuple):
    """The kernel of an encoding by frequency: `psi(x) = constant + sum power cos(frequency x)`.

    Attributes:
        frequencies: radians per day (per event, for the positional control).
        power: the mean of the squared coefficients of a frequency's cosine and sine.
    """

    frequencies: Float64[Tensor, " frequencies"]
    power: Float[Tensor, " frequencies"]


class TimeKernel(nn.Module, ABC):
    """A kernel K(t, t') of two instants without a finite feature map: a bias on attention logits.

    Instants are days since `origin`, so that an instant is the same in every history, however much
    of it is in use.

    Attributes:
        origin: the first event of the training data, epoch microseconds. It belongs to the weights,
            and is saved with them.
    """

    is_stationary: ClassVar[bool] = False
    origin: Int64[Tensor, ""]

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("origin", torch.zeros((), dtype=torch.int64))

    def count_days(
        self, days: Float64[Tensor, "batch len"], origins: Int64[Tensor, " #batch"]
    ) -> Float64[Tensor, "batch len"]:
        """Convert days since the first event of each history to days since `origin`.

        Args:
            origins: times of these first events, epoch microseconds.
        """
        start = (origins - self.origin).double() / MICROSECONDS_PER_DAY
        return days + start.unsqueeze(-1)

    @abstractmethod
    def forward(
        self, times: Float64[Tensor, "*#shape"], other: Float64[Tensor, "*#shape"]
    ) -> Float[Tensor, "*shape"]:
        """Compute K(t, t'); the arguments broadcast against each other."""

    if TYPE_CHECKING:

        def __call__(self, times: Tensor, other: Tensor) -> Tensor: ...  # noqa: D102


class PlaneFrequencies(NamedTuple):
    """How fast the planes of content turn: pairs of coordinates of each head.

    Attributes:
        order: radians per event; 0 where the order does not turn the plane.
        time: radians per day; 0 where time does not.
    """

    order: Float64[Tensor, "#heads planes"]
    time: Float64[Tensor, "#heads planes"]


class ContentRotation(nn.Module, ABC):
    """A rotation of the content of queries and keys by order and time, without any features.

    A plane of a query at position `q` and of a key at `i` turn by
    `order (q - i) + time (T_q - t_i)` against each other.
    """

    @abstractmethod
    def frequencies(self, *, heads: int, planes: int, device: torch.device) -> PlaneFrequencies:
        """Compute the frequencies of all planes of `heads` heads, on a device."""


@runtime_checkable
class RandomFeatures(Protocol):
    """A module with random draws in a buffer, so that they are fixed in evaluation and a bundle."""

    def resample(self) -> None:
        """Draw new values. The training loop calls this before every step."""
        ...


@runtime_checkable
class Intensities(Protocol):
    """Intensities (lambda) of one attention layer: expected events per day, per item group."""

    def evaluate(
        self, intervals: Float64[Tensor, "batch len"]
    ) -> Float[Tensor, "batch heads len groups"]:
        """Compute the intensities after intervals in days since each position's own event."""
        ...


class EncoderOutput(NamedTuple):
    """The output of an encoder for each history at its query time.

    Attributes:
        user: a vector whose similarity with an item's vector is that item's score.
        attention: the weights of the last block from the query position over the events of the
            history, per head, before dropout, 0 on padding; None if the encoder has no attention.
        repeat_scores: per event, a score that is added to the event's own item in log space
            (`model.recommender.add_repeat_scores`), -inf to add nothing; None if the encoder does
            not score repeats.
        repeat_rows: the items that `repeat_scores` belong to, if not the events' own; 0 for none.
            The encoder is then a `DividedRepeats`.
        followers: how many of the last columns of `repeat_scores` are of followers, not of repeats.
        calendar: what the calendar phase of the query time has added to the user vector, in the
            coordinates of the encoder; None if nothing has.
        popularity: features of all items at each query time, whose weights are the last coordinates
            of `user`; None if the recommender has no wide part.
        intensity: per item group, the last block's intensity at the query time (events per day),
            averaged over heads; None if the encoder has no intensities.
        next_time: the interval from the last event to the next one; None if the encoder does not
            predict it.
    """

    user: Float[Tensor, "batch dim"]
    attention: Float[Tensor, "batch heads len"] | None = None
    repeat_scores: Float[Tensor, "batch repeats"] | None = None
    repeat_rows: Int64[Tensor, "batch repeats"] | None = None
    followers: int = 0
    calendar: Float[Tensor, "batch encoder_dim"] | None = None
    popularity: PopularityFeatures | None = None
    intensity: Float[Tensor, "batch groups"] | None = None
    next_time: IntervalDistribution | None = None


class PositionOutputs(NamedTuple):
    """The outputs of a causal encoder at every position of every history.

    Attributes:
        users: `users[:, i]` is the user vector after event `i` at query time `query_times[:, i]`.
        repeat_scores: `repeat_scores[:, i, j]` is the score at position `i` of the item of event
            `j`, added in log space.
        intensities: of every self-modulating layer, first to last.
        next_time: at every position, the interval from its event to the next one.
    """

    users: Float[Tensor, "batch len dim"]
    repeat_scores: Float[Tensor, "batch len len"] | None = None
    intensities: tuple[Intensities, ...] = ()
    next_time: IntervalDistribution | None = None


class CandidateScores(NamedTuple):
    """Scores of candidate items by an encoder whose user vector depends on the candidate.

    Attributes:
        scores: larger is better; comparable within a query.
        attention: the weight of each event for each candidate, 0 where the query may not attend;
            None if the encoder has no attention.
        intensities: given the history as each candidate weights it; their `batch` are the queries,
            their `len` the candidates. None if the encoder has no intensities.
    """

    scores: Float[Tensor, "queries candidates"]
    attention: Float[Tensor, "queries candidates len"] | None
    intensities: Intensities | None = None


class SequenceEncoder(nn.Module, ABC):
    """Histories -> user vectors. The input is item vectors; the encoder owns no item table.

    Attributes:
        dim: width of the item vectors and of the user vector.
        similarity: how user and item vectors compare, also in the index. "l2" is the negated
            squared Euclidean distance.
        is_normalised: whether attention weights sum to one.
        in_unit_ball: whether item vectors are scaled down to a length of at most one.
        predicts_next_time: whether outputs include a distribution of the next event's time.
        has_item_space: whether distances between item vectors measure how alike items are.
        limits_intervals: whether it reads query times as they are, and limits intervals itself;
            others read none later than `Recommender.longest_interval` after the last event.
        item_groups: group membership, for encoders that use it; the trainer sets it.
        is_exportable: whether the encoding of a single history can become a program of
            `model.exported_encoder`: all its operators are in ONNX, and it returns tensors only.
        reads_baskets: whether all events of the last instant depend on the query time, not only the
            last event.
        sweeps_share_history: for a `QuerySweep`, whether it encodes the earlier events once for all
            query times; if not, each query time costs a whole pass.
    """

    dim: int
    similarity: ClassVar[Literal["dot", "l2"]] = "dot"
    is_normalised: bool = True
    in_unit_ball: ClassVar[bool] = False
    predicts_next_time: ClassVar[bool] = False
    has_item_space: ClassVar[bool] = True
    limits_intervals: ClassVar[bool] = False
    item_groups: ItemGroups | None
    is_exportable: bool = False
    reads_baskets: bool = False
    sweeps_share_history: bool = True

    def __init__(self) -> None:
        super().__init__()
        self.item_groups = None

    @abstractmethod
    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> EncoderOutput:
        """Encode each history at the query time of its last event."""

    if TYPE_CHECKING:

        def __call__(self, batch: SequenceBatch, items: Tensor) -> EncoderOutput: ...  # noqa: D102


@runtime_checkable
class CausalEncoder(Protocol):
    """An encoder with a causal pass: one forward pass gives the outputs of every position."""

    def encode_positions(
        self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]
    ) -> PositionOutputs:
        """Encode every position; the user vector at the last event equals `forward`'s."""
        ...


@runtime_checkable
class SelectedPositions(Protocol):
    """A causal encoder that spares its last block the positions that are not supervised."""

    def encode_selected(
        self,
        batch: SequenceBatch,
        items: Float[Tensor, "batch len dim"],
        positions: Int64[Tensor, " positions"],
    ) -> Float[Tensor, "positions dim"] | None:
        """Compute the user vectors of some positions, ascending flat indices into batch x len.

        They equal those of `encode_positions`. None if all positions are needed.
        """
        ...


@runtime_checkable
class SeparateAttention(Protocol):
    """An encoder whose attention weights cost less than its scores."""

    def compute_attention(self, batch: SequenceBatch) -> Float[Tensor, "batch heads len"]:
        """Compute the attention weights of `forward` alone."""
        ...


@runtime_checkable
class QuerySweep(Protocol):
    """An encoder that encodes one history at many query times for little more than one pass."""

    def sweep(
        self,
        batch: SequenceBatch,
        items: Float[Tensor, "1 len dim"],
        query_times: Float64[Tensor, " query_times"],
    ) -> EncoderOutput:
        """Encode the single history of `batch` at query times in days since its first event."""
        ...


@runtime_checkable
class PrefixSweep(Protocol):
    """A causal encoder that encodes many prefixes of a history, each at a query time, in one pass.

    Where `sweeps_share_history` is false, it cannot in its configuration.
    """

    def sweep_prefixes(
        self,
        batch: SequenceBatch,
        items: Float[Tensor, "1 len dim"],
        query_times: Float64[Tensor, " query_times"],
        ends: Int64[Tensor, " query_times"],
    ) -> EncoderOutput:
        """Encode the first `ends` events of the single history of `batch` at each query time.

        Query times are days since its first event. With baskets, a prefix ends with one.
        """
        ...


@runtime_checkable
class CandidateScorer(Protocol):
    """An encoder whose user vector depends on the candidate item, so no index can be searched.

    It reranks: the index retrieves candidates by the user vector of `forward`, and
    `score_candidates` scores them.
    """

    def score_candidates(
        self,
        batch: SequenceBatch,
        items: Float[Tensor, "batch len dim"],
        positions: Int64[Tensor, " queries"],
        candidates: Float[Tensor, "queries candidates dim"],
    ) -> CandidateScores:
        """Score candidates, given by their item vectors, at some positions.

        A query attends to the events up to and including its position, a flat index into
        batch x len, at that position's query time.
        """
        ...


class RepeatParts(NamedTuple):
    """What the repeat scores of some items add up from: parts of their exponentials, in any unit.

    Attributes:
        own: of each event of the user, to the score of its own item; None if there are none.
        followers: of each event, to the scores of what followed it; None if there are none.
        neighbours: of the items of similar users; None if there are none.
    """

    own: Float64[Tensor, "items len"] | None = None
    followers: Float64[Tensor, "items len"] | None = None
    neighbours: Float64[Tensor, " items"] | None = None


@runtime_checkable
class DividedRepeats(Protocol):
    """An encoder whose repeat scores are not one per event, of the event's own item."""

    def divide_repeats(
        self, batch: SequenceBatch, added: AddedScores, rows: Int64[Tensor, " items"]
    ) -> RepeatParts:
        """Divide the repeat scores of some items after the single history of `batch`.

        Args:
            added: all repeat scores of the encoder for the history.
            rows: of the catalog.
        """
        ...


@runtime_checkable
class MeasuredStart(Protocol):
    """A learned encoder some of whose parameters start at what is measured in the events."""

    def start_from(
        self,
        rows: Int64[Tensor, " events"],
        times: Int64[Tensor, " events"],
        users: Int64[Tensor, " events"],
    ) -> None:
        """Set these parameters by the training events.

        Args:
            rows: catalog row of each event; events are sorted by user, then time.
            times: epoch microseconds.
            users: user number of each event.
        """
        ...


@runtime_checkable
class CountingEncoder(Protocol):
    """An encoder fitted by counting events instead of by gradient descent."""

    def fit_counts(
        self,
        rows: Int64[Tensor, " events"],
        times: Int64[Tensor, " events"],
        users: Int64[Tensor, " events"],
    ) -> Float[Tensor, " rows"]:
        """Count the training events and return the item bias: one score per catalog row.

        Args:
            rows: catalog row of each event; events are sorted by user, then time.
            times: epoch microseconds.
            users: user number of each event.
        """
        ...
