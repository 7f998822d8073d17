"""Runs of the retraining job."""

from kairos_client.answers.answer import Answer, Moment


class GateCheck(Answer):
    """One rule of the gate, applied."""

    name: str
    threshold: float
    """What `value` is held against."""
    passed: bool
    sentence: str
    """The same for a person."""
    value: float | None = None
    """What was measured; None where it could not be."""


class GateDecision(Answer):
    """What the gate said of the new model."""

    promote: bool
    checks: tuple[GateCheck, ...]


class TrainingRunSummary(Answer):
    """One run of the job."""

    run_id: str
    result: str
    """`running`; `promoted`: the new model was activated; `kept`: it was not, see `reason`;
    `passed`: it would have been, but the run was a dry one; `failed`: there is no new model;
    `abandoned`: the process died."""
    started_at: Moment
    reason: str | None = None
    finished_at: Moment | None = None
    champion: str | None = None
    """The version that was current when the run began."""
    candidate: str | None = None
    """The version of the new model, published or not."""
    recipe: str | None = None
    questions: int | None = None
    """Questions that all were asked."""
    metrics: dict[str, dict[str, float | None]] | None = None
    """By ranker, then by metric; None for one that is no number."""
    decision: GateDecision | None = None


class TrainingRunList(Answer):
    """Runs of the job."""

    runs: tuple[TrainingRunSummary, ...]
    """Newest first."""
