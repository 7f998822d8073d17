"""What the service tells of runs of the retraining job."""

from dataclasses import dataclass
from typing import ClassVar

from pydantic import ConfigDict

from app.http.types import RESPONSE_CONFIG, Rfc3339


@dataclass(frozen=True, slots=True)
class GateCheck:
    """One rule of the gate, applied."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    name: str
    value: float | None
    """What was measured; null where it could not be."""
    threshold: float
    """What it is held against."""
    passed: bool
    sentence: str
    """The same for a person."""


@dataclass(frozen=True, slots=True)
class GateDecision:
    """What the gate said of the new model."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    promote: bool
    checks: tuple[GateCheck, ...]


@dataclass(frozen=True, slots=True)
class TrainingRunSummary:
    """One run of the job."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    run_id: str
    result: str
    """`running`; `promoted`: the new model was activated; `kept`: it was not, see `reason`;
    `passed`: it would have been, but the run was a dry one; `failed`: there is no new model;
    `abandoned`: the process died."""
    reason: str | None
    started_at: Rfc3339
    finished_at: Rfc3339 | None
    champion: str | None
    """The version that was current when the run began."""
    candidate: str | None
    """The version of the new model, published or not."""
    recipe: str | None
    questions: int | None
    """Questions that all were asked."""
    metrics: dict[str, dict[str, float]] | None
    """By ranker (`challenger`, `champion`, `popular_all_time`, `popular_last_week`,
    `last_item_markov`; `_withheld`: asked without the query time), then by metric."""
    decision: GateDecision | None


@dataclass(frozen=True, slots=True)
class TrainingRunList:
    """Runs of the job."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    runs: tuple[TrainingRunSummary, ...]
    """Newest first."""
