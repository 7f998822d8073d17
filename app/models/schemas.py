"""Requests and responses of the model operations."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from app.http.types import RESPONSE_CONFIG, Id, RequestModel, Rfc3339
from model.store.traffic import Share

ActivationKind = Literal["activate", "publish", "retrain"]
"""What made a version the current one: a request by name, a publication, or a retraining run."""

ChangeKind = Literal[ActivationKind, "rollback", "traffic"]

Reason = Annotated[
    str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")
]
"""The reason for a change: one line."""


class ChangeRequest(RequestModel):
    """A change of the current version."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"reason": "complaints about Christmas items"}]}
    )

    reason: Reason | None = None
    """The reason; stored with the change."""


class TrafficRequest(RequestModel):
    """The challenger and the shadow that replace the present ones."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"challenger": "20261128T145214Z-0a4eb590a133", "share": 0.1, "reason": "a try"}
            ]
        }
    )

    challenger: Id | None = None
    """The version that serves `share` of the users instead of the current one."""
    share: Share = 0.0
    """The share of users that the challenger serves, 0 to 1. A user's assignment is stable."""
    shadow: Id | None = None
    """The version that scores the same requests; its results are compared and counted, never
    returned."""
    reason: Reason | None = None
    """The reason; stored with the change."""

    @model_validator(mode="after")
    def _require_challenger_of_share(self) -> "TrafficRequest":
        if self.share and self.challenger is None:
            raise PydanticCustomError(
                "share_without_challenger", "a share of the users needs a challenger to serve them"
            )
        return self


@dataclass(frozen=True, slots=True)
class CurrentVersion:
    """The current version after a change."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    version: str
    """The version that is current now in every process; the responding process already serves
    it."""
    previous_version: str | None
    """The version that was current before."""


@dataclass(frozen=True, slots=True)
class ModelTraffic:
    """The versions that serve requests beside the current one."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    challenger: str | None
    """The version that serves `share` of the users instead of the current one."""
    share: float
    """The share of users that the challenger serves, 0 to 1."""
    shadow: str | None
    """The version that scores the same requests without its results being returned."""


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """A recorded change of the served models."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    at: Rfc3339
    """The instant of the change."""
    actor: str
    """The author: the name and id of an API key, `loopback`, or `cli:` and a user of the
    machine."""
    change: ChangeKind
    """The kind of change: `activate`, `publish` and `retrain` activated a version, `rollback`
    activated the previous one, `traffic` set the challenger and the shadow."""
    version: str | None
    """The current version after the change."""
    previous_version: str | None
    """The current version before the change, as read from the store."""
    reason: str | None
    """The reason that the actor gave."""
    traffic: ModelTraffic | None
    """For a change of kind `traffic`: the challenger and the shadow from then on."""


@dataclass(frozen=True, slots=True)
class ChangeList:
    """The recorded changes of the served models."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    changes: tuple[RecordedChange, ...]
    """Newest first."""
    rollback_version: str | None
    """The version that a rollback would activate now, by the whole record; null if there is none,
    or the store cannot be read. The rollback itself verifies that the version can be served."""


@dataclass(frozen=True, slots=True)
class DataSpan:
    """The span of the events that a model was trained on."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    first_at: Rfc3339
    """The first event."""
    last_at: Rfc3339
    """The last event."""


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """A published bundle."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    version: str
    """The version's name."""
    is_current: bool
    """Whether `CURRENT` names this version."""
    is_serving: bool
    """Whether the responding process serves this version; it follows `CURRENT` within a poll
    interval."""
    is_challenger: bool
    """Whether the responding process serves some users with this version instead of the current
    one."""
    is_shadow: bool
    """Whether the responding process scores requests with this version without returning the
    results."""
    trained_at: Rfc3339 | None
    """The end of training; null if the manifest cannot be read."""
    data_window: DataSpan | None
    """The span of the training events; null if the manifest cannot be read."""
    encoder: str | None
    """The kind of its encoder, such as `self_attention`; `counting` only counts events. Null if the
    manifest cannot be read."""
    metrics: dict[str, float] | None
    """Headline test metrics; null if the manifest cannot be read."""
    refused: str | None
    """Why the manifest cannot be read; null if it can. The rest of the bundle is verified on
    activation."""


@dataclass(frozen=True, slots=True)
class ModelList:
    """The published bundles."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    models: tuple[ModelSummary, ...]
    """Newest first."""


@dataclass(frozen=True, slots=True)
class Rhythm:
    """The weight of one period in a kernel."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    period_days: float
    """The period."""
    power: float
    """The mean of the period's squared coefficients."""
    share: float
    """`power` as a share of the power of all periods, 0 to 1; 0 if no period has any."""


@dataclass(frozen=True, slots=True)
class KernelCurve:
    """The kernel psi of a time encoding: the similarity of two events by the interval between."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    place: str
    """The module of the recommender that holds the encoding."""
    kind: str
    """The kind of time encoding."""
    is_stationary: bool
    """Whether the kernel depends on intervals alone; the curve of a kernel that does not is
    evaluated from the first event of the training data."""
    interval_days: tuple[float, ...]
    """Intervals from a second to the span of the training data, evenly spaced in logarithm."""
    psi: tuple[float, ...]
    """The kernel at these intervals."""
    spectrum: tuple[Rhythm, ...] | None
    """The kernel by period, strongest first; null if it has no fixed periods."""
    initial_psi: tuple[float, ...] | None
    """`psi` before training, or as set by a warm start; null if the bundle does not record it."""
    initial_spectrum: tuple[Rhythm, ...] | None
    """`spectrum` before training; null if the bundle does not record it."""
    constant: float | None
    """The constant of `psi(x) = constant + sum of power * cos(2 pi x / period_days)` over
    `spectrum`; null if that sum does not reproduce `psi`."""
    initial_constant: float | None
    """`constant` of `initial_psi` and `initial_spectrum`."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """One pass over the training events."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    phase: Literal["fit"]
    """The evaluated fit; epochs of a refit on all events are not recorded."""
    epoch: int
    """Counted from 1."""
    loss: float
    """Mean over the epoch's batches."""
    validation: dict[str, float]
    """Validation metrics after the epoch; empty if none were computed."""
    seconds: float
    """Duration of the epoch, validation not included."""


@dataclass(frozen=True, slots=True)
class ProfilePoint:
    """A point of an attention profile: the weight of the last event by its age."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    view: Literal["observed", "predicted"]
    """`observed`: the query time is that of the next event; `predicted`: every history is
    evaluated at every interval."""
    by: Literal["all", "action", "category"]
    """The group of the curve: all histories, or those whose last event has this action or
    category."""
    name: str
    """The action or category."""
    interval_days: float
    """From the last event to the query time."""
    mean: float | None
    """Mean weight of the last event."""
    sd: float | None
    """Standard deviation of that weight."""
    standard_error: float | None
    """Standard error of `mean`; null for fewer than two histories."""
    count: int
    """Number of histories."""


@dataclass(frozen=True, slots=True)
class Clicks:
    """The recorded impressions of a version and the clicks on them."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    shown: int
    """Recorded impressions: recommendations that were returned to be shown."""
    clicked: int
    """Impressions to which an event of their user refers by `recommendation_id`, for one of the
    items shown."""
    rate: float | None
    """`clicked` by `shown`; null without impressions."""
    rate_low: float | None
    """Lower bound of the 95 % Wilson score interval of `rate`; null without impressions."""
    rate_high: float | None
    """Upper bound of that interval; null without impressions."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A part of a model's description that is null."""

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
    """The part."""
    why: str
    """Why it is null."""


@dataclass(frozen=True, slots=True)
class ModelDetail:
    """A published bundle: its manifest, time kernels, attention profile and clicks."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    version: str
    """The version's name."""
    is_current: bool
    """Whether `CURRENT` names this version."""
    is_serving: bool
    """Whether the responding process serves this version."""
    is_challenger: bool
    """Whether the responding process serves some users with this version instead of the current
    one."""
    is_shadow: bool
    """Whether the responding process scores requests with this version without returning the
    results."""
    manifest: dict[str, Any]
    """The trainer's record: configuration, data window, counts, metrics, checksums."""
    kernels: tuple[KernelCurve, ...] | None
    """The kernel of every time encoding."""
    attention_profile: Annotated[tuple[ProfilePoint, ...], Field(max_length=2000)] | None
    """The weight of the last event by its age, over a population; at most 2,000 points."""
    attention_is_normalised: bool | None
    """Whether the attention weights of a history sum to 1; null if the bundle cannot be opened."""
    epochs: Annotated[tuple[Epoch, ...], Field(max_length=10_000)] | None
    """The epochs of its training; at most the last 10,000."""
    index_recall: float | None
    """Mean share of the exact ten best items that the index finds, measured when it was written:
    0 to 1."""
    p95_seconds: float | None
    """95th percentile of the latency of single requests, measured where the model was trained."""
    clicks: Clicks | None
    """Impressions and clicks."""
    missing: tuple[Missing, ...]
    """The parts that are null, and why. `initial_kernels` are the kernels before training."""


@dataclass(frozen=True, slots=True)
class MappedItem:
    """An item on a map."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    item_id: str
    title: str | None
    categories: tuple[str, ...]
    x: float
    """Horizontal coordinate; distances compare within one map only."""
    y: float
    """Vertical coordinate, on the same scale."""
    events: int
    """Number of the item's training events."""


@dataclass(frozen=True, slots=True)
class ModelMap:
    """The items of a model in two dimensions: similar items lie close together."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    model_version: str
    method: Literal["tsne", "pca"]
    """`tsne` (computed when the bundle was written): near items stay near, and distances between
    far ones say little. `pca` (of a bundle without such a map): a projection on the two principal
    components of the items' unit vectors, which loses most of what is near."""
    explained: tuple[float, float] | None
    """The share of these vectors' variance along x and along y; null unless `method` is `pca`."""
    neighbours_kept: float | None
    """The share of an item's ten nearest neighbours, by the cosine of their vectors, that are among
    its ten nearest on the map: 0 to 1, over up to 1,000 of the items; null for ten items or
    fewer."""
    categories: tuple[str, ...]
    """The categories of all items of the map, however many are returned: the 100 with the most
    items, most first."""
    items: tuple[MappedItem, ...]
    """Most popular first; deleted items are left out."""
