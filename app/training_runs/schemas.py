"""Responses of the retraining operations."""

from dataclasses import dataclass
from typing import ClassVar

from pydantic import ConfigDict

from app.http.types import RESPONSE_CONFIG, Rfc3339


@dataclass(frozen=True, slots=True)
class GateCheck:
    """One rule of the promotion gate, evaluated."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    name: str
    value: float | None
    """The measured value; null if it could not be measured."""
    threshold: float
    """The value that it is compared with."""
    passed: bool
    sentence: str
    """The check in words."""


@dataclass(frozen=True, slots=True)
class GateDecision:
    """The gate's decision on the new model."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    promote: bool
    checks: tuple[GateCheck, ...]


@dataclass(frozen=True, slots=True)
class TrainingRunProgress:
    """How far a running run is."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    phase: str
    """`read` the events, `fit`, `evaluate`, `write` the bundle, apply the `gate`, `publish`,
    `activate`, `prune` old versions."""
    fit: str | None
    """`fit`, or `refit`: the training on more events that follows; null outside of both."""
    epoch: int | None
    """The running epoch, from 1."""
    epochs: int | None
    """Most epochs of the running fit."""
    share: float
    """Share of the planned epochs of all fits that are done, 0 to 1."""
    seconds_left: float | None
    """Until the planned epochs are done, at the pace so far; evaluation and publication follow."""
    updated_at: Rfc3339


@dataclass(frozen=True, slots=True)
class TrainingRunSummary:
    """One run of the retraining job."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    run_id: str
    result: str
    """`running`; `promoted`: the new model was activated; `kept`: it was not, see `reason`;
    `passed`: the gate let it pass in a dry run; `failed`: there is no new model; `abandoned`: the
    process died."""
    reason: str | None
    started_at: Rfc3339
    finished_at: Rfc3339 | None
    champion: str | None
    """The version that was current when the run began."""
    candidate: str | None
    """The version of the new model, published or not."""
    recipe: str | None
    questions: int | None
    """Number of test events on which every ranker was evaluated."""
    metrics: dict[str, dict[str, float]] | None
    """By ranker (`challenger`, `champion`, `popular_all_time`, `popular_last_week`,
    `last_item_markov`, `counting_live`; `_withheld`: without the query time), then by metric."""
    decision: GateDecision | None
    progress: TrainingRunProgress | None
    """Null for a run that has ended, and for one without a sign of life for ten minutes."""


@dataclass(frozen=True, slots=True)
class TrainingRunList:
    """Runs of the retraining job."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    runs: tuple[TrainingRunSummary, ...]
    """Newest first."""
