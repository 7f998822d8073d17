"""What every member of the zoo must offer, and the few abilities only some of them have."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float, Float64
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.layers.fourier_basis import ReadOut, basis, phasors


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

    if TYPE_CHECKING:

        def __call__(self, intervals: Tensor) -> Tensor: ...  # noqa: D102


class Encoded(NamedTuple):
    """What an encoder says of each history at its query time.

    Attributes:
        user: a vector whose similarity with an item's vector is that item's score.
        attention: the weights of the last block, from the query position, per head and before
            dropout, over the events of the history (0 on padding); None where the method has none.
        repeats: per event, the log-mass that the encoder adds to that event's own item; None where
            it does not treat repetition apart.
    """

    user: Float[Tensor, "batch dim"]
    attention: Float[Tensor, "batch heads len"] | None
    repeats: Float[Tensor, "batch len"] | None = None


class States(NamedTuple):
    """What an encoder says at every position of every history.

    Attributes:
        users: `users[:, i]` is the user vector after event `i`, asked about `query_times[:, i]`.
        repeats: `repeats[:, i, j]` is the log-mass that position `i` adds to the item of event `j`.
    """

    users: Float[Tensor, "batch len dim"]
    repeats: Float[Tensor, "batch len len"] | None = None


class SequenceEncoder(nn.Module, ABC):
    """Histories -> user vectors. Handed looked-up item vectors; never owns the item table.

    Attributes:
        dim: width of the item vectors and of the user vector.
        similarity: how user and item vectors compare; the index must know.
    """

    dim: int
    similarity: ClassVar[Literal["dot", "l2"]] = "dot"
    is_normalised: ClassVar[bool] = True

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
