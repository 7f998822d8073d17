"""What every member of the zoo must offer, and the few abilities only some of them have."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float, Float64, Int64
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.layers.fourier_basis import ReadOut, basis, phasors
from model.layers.item_groups import ItemGroups


class TimeEncoding(nn.Module, ABC):
    """Intervals in days -> features whose inner product is a kernel of time.

    An encoding is its angular frequencies and an affine read-out of the Fourier basis at them;
    nothing else is needed to define it (`forward`), to draw its kernel, or to attend with it.

    Attributes:
        dim: features per interval.
        is_stationary: whether the kernel depends on the difference of its arguments alone.
        reads: "time" for intervals in days; "position" for the control, whose clock ticks once per
            event.
    """

    dim: int
    is_stationary: ClassVar[bool]
    reads: ClassVar[Literal["time", "position"]] = "time"

    @abstractmethod
    def frequencies(self) -> Float64[Tensor, " frequencies"]:
        """Angular frequencies, in radians per day (per event, where `reads` is "position")."""

    @abstractmethod
    def read_out(self) -> ReadOut:
        """How the features follow from the basis."""

    def forward(self, intervals: Float64[Tensor, "*shape"]) -> Float[Tensor, "*shape time_dim"]:
        """The features of intervals: the definition, which attention reproduces by rotation."""
        weight, offset = self.read_out()
        return basis(phasors(intervals, self.frequencies())) @ weight.T + offset

    def kernel(
        self, times: Float64[Tensor, "*#shape"], other: Float64[Tensor, "*#shape"]
    ) -> Float[Tensor, "*shape"]:
        """K(t, t') = phi(t) . phi(t')."""
        return (self(times) * self(other)).sum(-1)

    def spectrum(self) -> "Spectrum":
        """How much each frequency weighs in the kernel."""
        squared = self.read_out().weight.square().sum(0)
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
    """K(t, t') of two instants where no finite feature map exists: a bias on attention's logits.

    Instants are days since the first event of the history.
    """

    is_stationary: ClassVar[bool] = False

    @abstractmethod
    def forward(
        self, times: Float64[Tensor, "*#shape"], other: Float64[Tensor, "*#shape"]
    ) -> Float[Tensor, "*shape"]:
        """K(t, t'), broadcasting one against the other."""

    if TYPE_CHECKING:

        def __call__(self, times: Tensor, other: Tensor) -> Tensor: ...  # noqa: D102


@runtime_checkable
class Drawn(Protocol):
    """A module with random draws of its own, kept in a buffer and so frozen in a bundle."""

    def draw(self) -> None:
        """Draw anew; the training loop does so before every step, and nobody else."""
        ...


@runtime_checkable
class NextTime(Protocol):
    """When the next event comes: a distribution of the interval to it, in days, per position."""

    def log_density(self, intervals: Float64[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """The log-density, per day, at one interval per position."""
        ...

    def quantile(self, share: float) -> Float64[Tensor, "*shape"]:
        """The interval by which the next event has come with probability `share`; may be inf."""
        ...

    def quantile_after(
        self, share: float, waited: Float64[Tensor, "*shape"]
    ) -> Float64[Tensor, "*shape"]:
        """The same, once it is known that no event has come for so many days."""
        ...

    def log_survival(self, intervals: Float64[Tensor, "*shape"]) -> Float64[Tensor, "*shape"]:
        """The logarithm of the probability that no event comes for so long."""
        ...


@runtime_checkable
class Intensities(Protocol):
    """How likely an item of each group is per day, as one attention layer sees it (its lambda)."""

    def at(
        self, intervals: Float64[Tensor, "batch len"]
    ) -> Float[Tensor, "batch heads len groups"]:
        """The intensities after these intervals, in days, since each position's own event."""
        ...


class Encoded(NamedTuple):
    """What an encoder says of each history at its query time.

    Attributes:
        user: a vector whose similarity with an item's vector is that item's score.
        attention: the weights of the last block, from the query position, per head and before
            dropout, over the events of the history (0 on padding); None where the method has none.
        repeats: per event, the log-mass that the encoder adds to that event's own item; None where
            it does not treat repetition apart. -inf adds nothing.
        pointed_rows: the items that `repeats` belongs to, where they are not the events' own; 0
            for none.
        intensity: per group of items, the last block's intensity at the query time, mean over
            heads; None where the method has none.
        next_time: when the next event comes, counted from the last; None where the method does not
            say.
    """

    user: Float[Tensor, "batch dim"]
    attention: Float[Tensor, "batch heads len"] | None = None
    repeats: Float[Tensor, "batch pointed"] | None = None
    pointed_rows: Int64[Tensor, "batch pointed"] | None = None
    intensity: Float[Tensor, "batch groups"] | None = None
    next_time: NextTime | None = None


class States(NamedTuple):
    """What an encoder says at every position of every history.

    Attributes:
        users: `users[:, i]` is the user vector after event `i`, asked about `query_times[:, i]`.
        repeats: `repeats[:, i, j]` is the log-mass that position `i` adds to the item of event `j`.
        intensities: of every self-modulating layer, first to last.
        next_time: at every position, when the next event comes, counted from the position's own.
    """

    users: Float[Tensor, "batch len dim"]
    repeats: Float[Tensor, "batch len len"] | None = None
    intensities: tuple[Intensities, ...] = ()
    next_time: NextTime | None = None


class Judged(NamedTuple):
    """What an encoder says of some candidates, each judged by itself.

    Attributes:
        scores: larger is better; comparable within a question.
        attention: how much each event counted for each candidate (0 on what the question may not
            see); None where the method has none.
        intensities: as each candidate sees the history; their `batch` are the questions, their
            `len` the candidates. None where the method has none.
    """

    scores: Float[Tensor, "questions candidates"]
    attention: Float[Tensor, "questions candidates len"] | None
    intensities: Intensities | None = None


class SequenceEncoder(nn.Module, ABC):
    """Histories -> user vectors. Handed looked-up item vectors; never owns the item table.

    Attributes:
        dim: width of the item vectors and of the user vector.
        similarity: how user and item vectors compare; the index must know. "l2" is the negated
            squared Euclidean distance.
        is_normalised: whether attention weights sum to one.
        in_unit_ball: whether item vectors are kept at a length of at most one.
        says_when: whether it also says when the next event comes.
        places_items: whether item vectors mean anything: items alike lie close together.
        item_groups: of an encoder that tells groups of items apart; the trainer tells it which.
    """

    dim: int
    similarity: ClassVar[Literal["dot", "l2"]] = "dot"
    is_normalised: bool = True
    in_unit_ball: ClassVar[bool] = False
    says_when: ClassVar[bool] = False
    places_items: ClassVar[bool] = True
    item_groups: ItemGroups | None

    def __init__(self) -> None:
        super().__init__()
        self.item_groups = None

    @abstractmethod
    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> Encoded:
        """Encode each history at the query time of its last event."""

    if TYPE_CHECKING:

        def __call__(self, batch: SequenceBatch, items: Tensor) -> Encoded: ...  # noqa: D102


@runtime_checkable
class EveryPosition(Protocol):
    """A causal encoder: one training pass answers at every position."""

    def states(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> States:
        """User vectors at every position; the last valid one equals `forward`'s."""
        ...


@runtime_checkable
class QuerySweep(Protocol):
    """An encoder that asks one history about many instants at little more than one's cost."""

    def sweep(
        self,
        batch: SequenceBatch,
        items: Float[Tensor, "1 len dim"],
        query_times: Float64[Tensor, " query_times"],
    ) -> Encoded:
        """Encode the single history of `batch` at each of `query_times` (its own day count)."""
        ...


@runtime_checkable
class CandidateScorer(Protocol):
    """An encoder whose view of a history depends on the item in question.

    It cannot be an index lookup: the index proposes candidates by the user vector, and `judge`
    decides among them.
    """

    def judge(
        self,
        batch: SequenceBatch,
        items: Float[Tensor, "batch len dim"],
        positions: Int64[Tensor, " questions"],
        candidates: Float[Tensor, "questions candidates dim"],
    ) -> Judged:
        """Score candidates, given by their item vectors, at some positions.

        A question reads the events up to and including its position, a flat index into batch x len,
        and is asked about that position's query time.
        """
        ...


class Counted(NamedTuple):
    """What counting gives beside the encoder's own tables: a score of each catalogue row."""

    item_bias: Float[Tensor, " rows"]


@runtime_checkable
class CountingEncoder(Protocol):
    """An encoder fitted by counting events instead of by gradients."""

    def count(
        self,
        rows: Int64[Tensor, " events"],
        times: Int64[Tensor, " events"],
        users: Int64[Tensor, " events"],
    ) -> Counted:
        """Count the training events (catalogue rows; epoch microseconds; sorted by user, time)."""
        ...
