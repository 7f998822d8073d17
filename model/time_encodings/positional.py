"""The control: the same attention with event counts instead of times."""

from typing import Literal, final

from jaxtyping import Float64
from pydantic import NonNegativeInt, PositiveFloat
from torch import Tensor

from model.config import Config
from model.interfaces import TimeEncoding
from model.layers.fourier_basis import BasisProjection, scaled_basis
from model.layers.periods import Periods, log_uniform


class PositionalConfig(Config):
    """Cosines and sines of relative positions instead of intervals."""

    kind: Literal["positional"] = "positional"
    frequencies: NonNegativeInt = 64
    """Number of frequencies; 0 leaves the order to the encoder's `position_table`."""
    shortest_period: PositiveFloat = 2.0
    """Shortest initial period, in events."""
    longest_period: PositiveFloat = 1000.0
    """Longest initial period, in events."""
    learn_frequencies: bool = True
    """Whether training changes the frequencies."""

    @classmethod
    def from_paper_code(cls) -> "PositionalConfig":
        """Use no features, as the authors: only the encoder's table of absolute positions."""
        return cls(frequencies=0)

    def build(self) -> "Positional":
        """Build the module."""
        return Positional(**self.model_dump(exclude={"kind"}))


@final
class Positional(TimeEncoding):
    """Features of how many events ago, instead of how long ago.

    Features, width and rotation are those of `BochnerNonparametric`, but the input is the number of
    events. The difference between a time-aware model and this control is what time contributes.

    Shape: positions (*) -> features (*, 2 * frequencies)

    Example:
        >>> encoding = PositionalConfig(frequencies=8).build()
        >>> encoding(torch.zeros(3, dtype=torch.float64)).shape
        torch.Size([3, 16])

    Paper: the PosEnc row of Xu et al. 2019, Table 3.
    DIFFERS(code): the authors concatenate a learned table of absolute positions; here the encoder's
        `position_table` is added, and these features are relative to the query position.
    """

    is_stationary = True
    domain = "position"

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
        """Compute the angular frequencies, in radians per event."""
        return self.periods.frequencies()

    def basis_projection(self) -> BasisProjection:
        """Return the scaled basis."""
        return scaled_basis(self.periods.log_periods)
