"""Responses about published models, their traffic, and retraining."""

from typing import Any

from kairos_client.responses.response import Response, UtcDatetime


class DataSpan(Response):
    """The time span of a model's training events."""

    first_at: UtcDatetime
    last_at: UtcDatetime


class ModelSummary(Response):
    """One published bundle."""

    version: str
    """Its name."""
    is_current: bool
    """Whether it is the current version of the store."""
    is_serving: bool
    """Whether the responding process serves it as the current version."""
    is_challenger: bool
    """Whether the responding process serves it to a share of the users."""
    is_shadow: bool
    """Whether the responding process computes its results and discards them."""
    trained_at: UtcDatetime | None = None
    """When training ended; None if the manifest cannot be read."""
    data_window: DataSpan | None = None
    """The span of its training data; None if the manifest cannot be read."""
    encoder: str | None = None
    """The kind of its encoder; "counting" only counts. None if the manifest cannot be read."""
    metrics: dict[str, float | None] | None = None
    """Its main test metrics; None if the manifest cannot be read."""
    refused: str | None = None
    """Why the manifest cannot be read; None if it can."""


class ModelList(Response):
    """The published bundles."""

    models: tuple[ModelSummary, ...]
    """Newest first."""


class Rhythm(Response):
    """The weight of one period in a time kernel."""

    period_days: float
    power: float
    """Mean of its squared coefficients."""
    share: float | None = None
    """`power` as a share of the power of all periods, 0 to 1."""


class KernelCurve(Response):
    """The kernel of a time encoding by interval: the similarity psi of two instants."""

    place: str
    """The recommender's module that contains the time encoding."""
    kind: str
    """The kind of time encoding."""
    is_stationary: bool
    """Whether the kernel depends on the interval between two instants only."""
    interval_days: tuple[float, ...]
    """From one second to the span of the training data, logarithmically spaced."""
    psi: tuple[float, ...]
    """The kernel at these intervals."""
    spectrum: tuple[Rhythm, ...] | None = None
    """The kernel by period, largest power first; None without fixed periods."""
    initial_psi: tuple[float, ...] | None = None
    """`psi` before training; None if the bundle does not contain it."""
    initial_spectrum: tuple[Rhythm, ...] | None = None
    """`spectrum` before training; None if the bundle does not contain it."""
    constant: float | None = None
    """The constant of `psi(x) = constant + sum of power * cos(2 pi x / period_days)`; None where
    that sum does not reproduce `psi`."""
    initial_constant: float | None = None
    """`constant` of `initial_psi` and `initial_spectrum`."""


class Epoch(Response):
    """One pass over the training events."""

    phase: str
    """`fit`: the fit that was evaluated."""
    epoch: int
    """Counted from 1."""
    loss: float
    """Mean over the batches."""
    validation: dict[str, float]
    """Validation metrics after the epoch; empty if they were not computed."""
    seconds: float
    """Duration without validation."""


class ProfilePoint(Response):
    """One point of an attention profile: the attention on the last event by its age."""

    view: str
    """`observed`: each history is queried at its next event; `predicted`: at every interval."""
    by: str
    """Grouping of the histories: `all`, or by the last event's `action` or `category`."""
    name: str
    """The action or category."""
    interval_days: float
    """From the last event to the query time."""
    count: int
    """Number of histories."""
    mean: float | None = None
    """Mean attention weight of the last event."""
    sd: float | None = None
    """Standard deviation of the weight."""
    standard_error: float | None = None
    """Standard error of `mean`; None for fewer than two histories."""


class Clicks(Response):
    """Clicks on a version's recorded recommendations."""

    shown: int
    """Number of recommendations."""
    clicked: int
    """Number of recommendations that an event refers to by `recommendation_id`, for an item that
    they contain."""
    rate: float | None = None
    """`clicked` / `shown`; None if `shown` is 0."""
    rate_low: float | None = None
    """Lower bound of the 95 % Wilson score interval of `rate`."""
    rate_high: float | None = None
    """Upper bound of that interval."""


class Missing(Response):
    """A part of a description that is None, and the reason."""

    part: str
    why: str


class ModelDetail(Response):
    """One published bundle with its manifest, time kernels and attention profile."""

    version: str
    """Its name."""
    is_current: bool
    """Whether it is the current version of the store."""
    is_serving: bool
    """Whether the responding process serves it as the current version."""
    is_challenger: bool
    """Whether the responding process serves it to a share of the users."""
    is_shadow: bool
    """Whether the responding process computes its results and discards them."""
    manifest: dict[str, Any]
    """The bundle's manifest: configuration, data window, counts, metrics, checksums."""
    missing: tuple[Missing, ...]
    """The parts below that are None, with reasons."""
    kernels: tuple[KernelCurve, ...] | None = None
    """The kernel of every time encoding."""
    attention_is_normalised: bool | None = None
    """Whether the attention weights of a history sum to 1; None if the bundle cannot be opened."""
    attention_profile: tuple[ProfilePoint, ...] | None = None
    """Attention on the last event by its age, over many histories."""
    epochs: tuple[Epoch, ...] | None = None
    """The epochs of its training."""
    index_recall: float | None = None
    """Mean share, 0 to 1, of the exact ten best items that its index finds."""
    p95_seconds: float | None = None
    """95th percentile of the latency of single requests, measured after training."""
    clicks: Clicks | None = None
    """Clicks on its recommendations."""


class CurrentVersion(Response):
    """The current version after a change; the responding process serves it already."""

    version: str
    previous_version: str | None = None
    """The version that was current before."""


class ModelTraffic(Response):
    """The versions that run besides the current one."""

    share: float
    """The share of users, 0 to 1, that the challenger serves."""
    challenger: str | None = None
    """The version that serves `share` of the users instead of the current one."""
    shadow: str | None = None
    """The version whose results are computed and discarded."""


class RecordedChange(Response):
    """One change of the served models."""

    at: UtcDatetime
    actor: str
    """Who made it: name and id of an API key, `loopback`, or `cli:` and an operating-system
    user."""
    change: str
    """`activate`, `publish`, `retrain`, `rollback` or `traffic`."""
    version: str | None = None
    """The current version after the change."""
    previous_version: str | None = None
    """The current version before the change."""
    reason: str | None = None
    """The reason that the actor gave."""
    traffic: ModelTraffic | None = None
    """For a change of `traffic`: the new setting."""


class ChangeList(Response):
    """The record of changes."""

    changes: tuple[RecordedChange, ...]
    """Newest first."""
    rollback_version: str | None = None
    """The version that a rollback would activate now; None if there is none."""


class MappedItem(Response):
    """An item on a map."""

    item_id: str
    x: float
    """Horizontal coordinate; distances compare within one map only."""
    y: float
    """Vertical coordinate, on the same scale."""
    events: int
    """Number of its training events."""
    title: str | None = None
    categories: tuple[str, ...] = ()


class ModelMap(Response):
    """The items of a model in two dimensions; similar items are close to each other."""

    model_version: str
    method: str
    """`tsne`: near items stay near; `pca`: principal components of the items' unit vectors."""
    items: tuple[MappedItem, ...]
    """Most popular first."""
    categories: tuple[str, ...] = ()
    """The most frequent categories of all items of the map, most frequent first."""
    explained: tuple[float, float] | None = None
    """The share of variance that each of the two components explains; None unless `pca`."""
    neighbours_kept: float | None = None
    """The share of an item's ten nearest neighbours that are its ten nearest on the map."""


class GateCheck(Response):
    """One rule of the retraining gate, with its outcome."""

    name: str
    threshold: float
    """The limit that `value` is compared with."""
    passed: bool
    sentence: str
    """The outcome in words."""
    value: float | None = None
    """The measured value; None if it could not be measured."""


class GateDecision(Response):
    """The retraining gate's decision on a candidate."""

    promote: bool
    checks: tuple[GateCheck, ...]


class TrainingRunProgress(Response):
    """How far a running run is."""

    phase: str
    """`read` the events, `fit`, `evaluate`, `write` the bundle, apply the `gate`, `publish`,
    `activate`, `prune` old versions."""
    share: float
    """Share of the planned epochs of all fits that are done, 0 to 1."""
    updated_at: UtcDatetime
    fit: str | None = None
    """`fit`, or `refit`: the training on more events that follows."""
    epoch: int | None = None
    """The running epoch, from 1."""
    epochs: int | None = None
    """Most epochs of the running fit."""
    seconds_left: float | None = None
    """Until the planned epochs are done, at the pace so far; evaluation and publication follow."""


class TrainingRunSummary(Response):
    """One run of the retraining job."""

    run_id: str
    result: str
    """`running`; `promoted`: the candidate was activated; `kept`: it was not, see `reason`;
    `passed`: it passed the gate in a dry run; `failed`: there is no candidate; `abandoned`: the
    process died."""
    started_at: UtcDatetime
    reason: str | None = None
    finished_at: UtcDatetime | None = None
    champion: str | None = None
    """The version that was current when the run began."""
    candidate: str | None = None
    """The version of the new model, published or not."""
    recipe: str | None = None
    questions: int | None = None
    """Number of test queries that every ranker was evaluated on."""
    metrics: dict[str, dict[str, float | None]] | None = None
    """Metrics by ranker and metric name; None for a value that is not finite."""
    decision: GateDecision | None = None
    progress: TrainingRunProgress | None = None
    """None for a run that has ended, and for one without a sign of life for ten minutes."""


class TrainingRunList(Response):
    """Runs of the retraining job."""

    runs: tuple[TrainingRunSummary, ...]
    """Newest first."""
