"""What the service tells of published bundles, and how it is told which of them to serve."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import ConfigDict, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from app.http.types import RESPONSE_CONFIG, Id, RequestModel, Rfc3339
from app.models.changes import Kind
from model.store.traffic import Share

Reason = Annotated[
    str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")
]
"""Why somebody changes what is served: one line."""


class ChangeRequest(RequestModel):
    """A change of the current version."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"reason": "complaints about Christmas items"}]}
    )

    reason: Reason | None = None
    """Why; kept with the change."""


class TrafficRequest(RequestModel):
    """Which versions are to answer beside the current one, in place of those that do."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"challenger": "20261128T145214Z-0a4eb590a133", "share": 0.1, "reason": "a try"}
            ]
        }
    )

    challenger: Id | None = None
    """A version that answers `share` of the users in place of the current one."""
    share: Share = 0.0
    """The share of users that the challenger answers, always the same ones: 0 to 1."""
    shadow: Id | None = None
    """A version that is asked, too: its answers are compared and counted, never returned."""
    reason: Reason | None = None
    """Why; kept with the change."""

    @model_validator(mode="after")
    def _somebody_answers_the_share(self) -> "TrafficRequest":
        if self.share and self.challenger is None:
            raise PydanticCustomError(
                "share_without_challenger", "a share of the users needs a challenger to answer them"
            )
        return self


@dataclass(frozen=True, slots=True)
class CurrentVersion:
    """The current version, after a change."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    version: str
    """The version that is current now, for every process; this one answers with it already."""
    previous_version: str | None
    """The version that was current until then."""


@dataclass(frozen=True, slots=True)
class ModelTraffic:
    """Which versions answer beside the current one."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    challenger: str | None
    """The version that answers `share` of the users in place of the current one."""
    share: float
    """The share of users that the challenger answers."""
    shadow: str | None
    """The version that is asked, too, and whose answers are never returned."""


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """One change of what is served."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    at: Rfc3339
    """When."""
    actor: str
    """Who: the name and id of an API key, `loopback`, or `cli:` and a user of the machine."""
    change: Kind
    """What: `activate`, `publish` and `retrain` made a version the current one, `rollback` the one
    before, and `traffic` says what answers beside it."""
    version: str | None
    """The current version after it."""
    previous_version: str | None
    """The current version before it, as found."""
    reason: str | None
    """Why, in the actor's words."""
    traffic: ModelTraffic | None
    """Of a change of `traffic`: what answers beside the current version from then on."""


@dataclass(frozen=True, slots=True)
class ChangeList:
    """The record of changes."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    changes: tuple[RecordedChange, ...]
    """Newest first."""
    rollback_version: str | None
    """The version that a rollback would activate now, by the whole record; null where there is
    none, or the store cannot be read. Whether it can still be served is checked by the rollback."""


@dataclass(frozen=True, slots=True)
class DataSpan:
    """The span of the events a model was trained on."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    first_at: Rfc3339
    """The first event."""
    last_at: Rfc3339
    """The last event."""


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """One published bundle."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    version: str
    """Its name."""
    is_current: bool
    """Whether `CURRENT` names it."""
    is_serving: bool
    """Whether this process answers with it; it follows `CURRENT` within a poll interval."""
    is_challenger: bool
    """Whether this process answers some users with it in place of the one it serves."""
    is_shadow: bool
    """Whether this process asks it, too, and drops the answers."""
    trained_at: Rfc3339 | None
    """When training ended; null where the manifest cannot be read."""
    data_window: DataSpan | None
    """What it was trained on; null where the manifest cannot be read."""
    metrics: dict[str, float] | None
    """Its headline test metrics; null where the manifest cannot be read."""
    refused: str | None
    """Why the manifest cannot be read; null where it can. Whether the rest of the bundle is sound
    shows when it is activated."""


@dataclass(frozen=True, slots=True)
class ModelList:
    """The published bundles."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    models: tuple[ModelSummary, ...]
    """Newest first."""
