"""The control: the same attention with a clock that ticks once per event."""

from typing import Literal, final

from jaxtyping import Float64
from pydantic import NonNegativeInt, PositiveFloat
from torch import Tensor

from model.config import Config
from model.interfaces import TimeEncoding
from model.layers.fourier_basis import ReadOut, scaled_basis
from model.layers.periods import Periods, log_uniform


class PositionalConfig(Config):
    """How many frequencies, started over which periods (events)."""

    kind: Literal["positional"] = "positional"
    frequencies: NonNegativeInt = 64
    """0 leaves order to the encoder's `position_table`, as SASRec does."""
    shortest_period: PositiveFloat = 2.0
    longest_period: PositiveFloat = 1000.0
    learn_frequencies: bool = True

    @classmethod
    def paper_code(cls) -> "PositionalConfig":
        """As the authors have it: order by the encoder's table of absolute positions alone."""
        return cls(frequencies=0)

    def build(self) -> "Positional":
        """The module this describes."""
        return Positional(**self.model_dump(exclude={"kind"}))


@final
class Positional(TimeEncoding):
    """How many events ago, instead of how long ago.

    The same features, width and rotation as the Bochner encoding, read off the order of the events
    alone: whatever a time-aware row gains over this one, it gains from time.

    Shape: positions (*) -> features (*, 2 * frequencies)

    Example:
        >>> encoding = PositionalConfig(frequencies=8).build()
        >>> encoding(torch.zeros(3, dtype=torch.float64)).shape
        torch.Size([3, 16])

    Paper: the PosEnc row of Xu et al. 2019, Table 3.
    DIFFERS(code): the authors concatenate a learned table of absolute positions; the encoder's own
        `position_table` adds one, and these features are relative to the position asked about.
    """

    is_stationary = True
    reads = "position"

    def __init__(
        self,
        *,
        frequencies: int,
        shortest_period: float,
        longest_period: float,
        learn_frequencies: bool,
    ) -> None:
        super().__init__()
        self.dim = 2 * frequencies
        self.periods = Periods(
            log_uniform(count=frequencies, shortest=shortest_period, longest=longest_period),
            learned=learn_frequencies,
        )

    def frequencies(self) -> Float64[Tensor, " frequencies"]:
        """Angular frequencies, in radians per event."""
        return self.periods.frequencies()

    def read_out(self) -> ReadOut:
        """The basis itself, scaled."""
        return scaled_basis(self.periods.log_periods)
