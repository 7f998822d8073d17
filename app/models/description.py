"""What the service tells of one published bundle, part by part."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from app.http.types import RESPONSE_CONFIG


@dataclass(frozen=True, slots=True)
class Rhythm:
    """How much one period weighs in a kernel."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    period_days: float
    """The period."""
    power: float
    """The mean of its squared coefficients."""
    share: float
    """`power` as a share of the power of all periods, 0 to 1; 0 where none has any."""


@dataclass(frozen=True, slots=True)
class KernelCurve:
    """How alike an event so long ago and one right now look to a time encoding: psi."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    place: str
    """The module of the recommender that it belongs to."""
    kind: str
    """The kind of time encoding."""
    is_stationary: bool
    """Whether the kernel knows differences of instants alone; the curve of one that does not is
    that of intervals from the first event of a history."""
    interval_days: tuple[float, ...]
    """From a second to the span of the training data, evenly spread in logarithm."""
    psi: tuple[float, ...]
    """The curve at these intervals."""
    spectrum: tuple[Rhythm, ...] | None
    """The kernel by period, strongest first; null where it has no fixed periods."""
    initial_psi: tuple[float, ...] | None
    """`psi` before the model learned anything, or as a warm start gave it; null where the bundle
    does not tell."""
    initial_spectrum: tuple[Rhythm, ...] | None
    """`spectrum` likewise."""
    constant: float | None
    """The constant of `psi(x) = constant + sum of power * cos(2 pi x / period_days)` over
    `spectrum`; null where that sum does not reproduce `psi`."""
    initial_constant: float | None
    """`constant` of `initial_psi` and `initial_spectrum`."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """One pass over the training events."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    phase: Literal["fit"]
    """Of the fit that was measured; what a refit on all events did is not told."""
    epoch: int
    """Counted from 1."""
    loss: float
    """Mean over its batches."""
    validation: dict[str, float]
    """Metrics on the validation questions after it; empty where none were asked."""
    seconds: float
    """What it took, validation not included."""


@dataclass(frozen=True, slots=True)
class ProfilePoint:
    """A point of a curve: how attention on the last event fades."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    view: Literal["observed", "predicted"]
    """`observed` where histories were asked about when their next event came, `predicted` where
    each was asked about every interval."""
    by: Literal["all", "action", "category"]
    """Whose curve: of all histories, or of those whose last event had this action or category."""
    name: str
    """Which action or category."""
    interval_days: float
    """From the last event to the query time."""
    mean: float | None
    """Mean weight on the last event."""
    sd: float | None
    """Its standard deviation."""
    standard_error: float | None
    """The standard error of `mean`; null for fewer than two histories."""
    count: int
    """Over so many histories."""


@dataclass(frozen=True, slots=True)
class Clicks:
    """What came of the answers of a version that are still remembered."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    shown: int
    """Answers given."""
    clicked: int
    """Answers to which an event refers by `recommendation_id`, for an item that they showed."""
    rate: float | None
    """`clicked` by `shown`; null where nothing was shown."""
    rate_low: float | None
    """Lower bound of the 95 % Wilson score interval of `rate`; null where nothing was shown."""
    rate_high: float | None
    """Upper bound of that interval; null where nothing was shown."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A part of a description that is null."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    part: Literal[
        "kernels",
        "initial_kernels",
        "attention_profile",
        "epochs",
        "index_recall",
        "p95_seconds",
        "clicks",
    ]
    """Which one."""
    why: str
    """Why there is none."""


@dataclass(frozen=True, slots=True)
class ModelDetail:
    """One published bundle, with its manifest and what it makes of time."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    version: str
    """Its name."""
    is_current: bool
    """Whether `CURRENT` names it."""
    is_serving: bool
    """Whether this process answers with it."""
    is_challenger: bool
    """Whether this process answers some users with it in place of the one it serves."""
    is_shadow: bool
    """Whether this process asks it, too, and drops the answers."""
    manifest: dict[str, Any]
    """What the trainer wrote: configuration, data window, counts, metrics, checksums."""
    kernels: tuple[KernelCurve, ...] | None
    """The kernel of every time encoding."""
    attention_profile: Annotated[tuple[ProfilePoint, ...], Field(max_length=2000)] | None
    """How attention on the last event fades, over a population; at most 2,000 points."""
    attention_is_normalised: bool | None
    """Whether the attention weights of a history sum to 1; null where the bundle does not open."""
    epochs: Annotated[tuple[Epoch, ...], Field(max_length=10_000)] | None
    """How its training went; of the last 10,000 epochs."""
    index_recall: float | None
    """Mean share of the exact ten best items that its index finds, as measured when it was
    written: 0 to 1."""
    p95_seconds: float | None
    """What 95 of 100 answers took no longer than, one at a time where it was trained."""
    clicks: Clicks | None
    """What came of its answers."""
    missing: tuple[Missing, ...]
    """Which of these parts are null, and why. `initial_kernels` are what the kernels were before
    training."""
