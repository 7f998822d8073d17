"""Published models, what answers, and what a model makes of time."""

from typing import Any

from kairos_client.answers.answer import Answer, Moment


class DataSpan(Answer):
    """The span of the events a model was trained on."""

    first_at: Moment
    last_at: Moment


class ModelSummary(Answer):
    """One published bundle."""

    version: str
    """Its name."""
    is_current: bool
    """Whether it is the one to answer with."""
    is_serving: bool
    """Whether the process that was asked answers with it already."""
    is_challenger: bool
    """Whether that process answers some users with it instead."""
    is_shadow: bool
    """Whether that process asks it, too, and drops the answers."""
    trained_at: Moment | None = None
    """When training ended; None where the manifest cannot be read."""
    data_window: DataSpan | None = None
    """What it was trained on; None where the manifest cannot be read."""
    metrics: dict[str, float | None] | None = None
    """Its headline test metrics; None where the manifest cannot be read."""
    refused: str | None = None
    """Why the manifest cannot be read; None where it can."""


class ModelList(Answer):
    """The published bundles."""

    models: tuple[ModelSummary, ...]
    """Newest first."""


class Rhythm(Answer):
    """How much one period weighs in a kernel."""

    period_days: float
    power: float
    """The mean of its squared coefficients."""
    share: float | None = None
    """`power` as a share of the power of all periods, 0 to 1."""


class KernelCurve(Answer):
    """How alike an event so long ago and one right now look to a time encoding: psi."""

    place: str
    """The module of the recommender that it belongs to."""
    kind: str
    """The kind of time encoding."""
    is_stationary: bool
    """Whether the kernel knows differences of instants alone."""
    interval_days: tuple[float, ...]
    """From a second to the span of the training data, evenly spread in logarithm."""
    psi: tuple[float, ...]
    """The curve at these intervals."""
    spectrum: tuple[Rhythm, ...] | None = None
    """The kernel by period, strongest first; None where it has no fixed periods."""
    initial_psi: tuple[float, ...] | None = None
    """`psi` before the model learned anything; None where the bundle does not tell."""
    initial_spectrum: tuple[Rhythm, ...] | None = None
    """`spectrum` likewise."""
    constant: float | None = None
    """The constant of `psi(x) = constant + sum of power * cos(2 pi x / period_days)`; None where
    that sum does not reproduce `psi`."""
    initial_constant: float | None = None
    """`constant` of `initial_psi` and `initial_spectrum`."""


class Epoch(Answer):
    """One pass over the training events."""

    phase: str
    """`fit`: of the fit that was measured."""
    epoch: int
    """Counted from 1."""
    loss: float
    """Mean over its batches."""
    validation: dict[str, float]
    """Metrics on the validation questions after it; empty where none were asked."""
    seconds: float
    """What it took, validation not included."""


class ProfilePoint(Answer):
    """A point of a curve: how attention on the last event fades."""

    view: str
    """`observed` where histories were asked about when their next event came, `predicted` where
    each was asked about every interval."""
    by: str
    """Whose curve: of `all` histories, or of those whose last event had this `action` or
    `category`."""
    name: str
    """Which action or category."""
    interval_days: float
    """From the last event to the query time."""
    count: int
    """Over so many histories."""
    mean: float | None = None
    """Mean weight on the last event."""
    sd: float | None = None
    """Its standard deviation."""
    standard_error: float | None = None
    """The standard error of `mean`; None for fewer than two histories."""


class Clicks(Answer):
    """What came of the answers of a version that are still remembered."""

    shown: int
    """Answers given."""
    clicked: int
    """Answers to which an event refers by `recommendation_id`, for an item that they showed."""
    rate: float | None = None
    """`clicked` by `shown`; None where nothing was shown."""
    rate_low: float | None = None
    """Lower bound of the 95 % Wilson score interval of `rate`."""
    rate_high: float | None = None
    """Upper bound of that interval."""


class Missing(Answer):
    """A part of a description that is None."""

    part: str
    why: str


class ModelDetail(Answer):
    """One published bundle, with its manifest and what it makes of time."""

    version: str
    """Its name."""
    is_current: bool
    """Whether it is the one to answer with."""
    is_serving: bool
    """Whether the process that was asked answers with it already."""
    is_challenger: bool
    """Whether that process answers some users with it instead."""
    is_shadow: bool
    """Whether that process asks it, too, and drops the answers."""
    manifest: dict[str, Any]
    """What the trainer wrote: configuration, data window, counts, metrics, checksums."""
    missing: tuple[Missing, ...]
    """Which of the parts below are None, and why."""
    kernels: tuple[KernelCurve, ...] | None = None
    """The kernel of every time encoding."""
    attention_profile: tuple[ProfilePoint, ...] | None = None
    """How attention on the last event fades, over a population."""
    attention_is_normalised: bool | None = None
    """Whether the attention weights of a history sum to 1; None where the bundle does not open."""
    epochs: tuple[Epoch, ...] | None = None
    """How its training went."""
    index_recall: float | None = None
    """Mean share of the exact ten best items that its index finds: 0 to 1."""
    p95_seconds: float | None = None
    """What 95 of 100 answers took no longer than, one at a time where it was trained."""
    clicks: Clicks | None = None
    """What came of its answers."""


class CurrentVersion(Answer):
    """The current version, after a change."""

    version: str
    """The version that is current now; the process that was asked answers with it already."""
    previous_version: str | None = None
    """The version that was current until then."""


class ModelTraffic(Answer):
    """Which versions answer beside the current one."""

    share: float
    """The share of users that the challenger answers."""
    challenger: str | None = None
    """The version that answers `share` of the users in place of the current one."""
    shadow: str | None = None
    """The version that is asked, too, and whose answers are never returned."""


class RecordedChange(Answer):
    """One change of what is served."""

    at: Moment
    actor: str
    """Who: the name and id of an API key, `loopback`, or `cli:` and a user of the machine."""
    change: str
    """What: `activate`, `publish`, `retrain`, `rollback` or `traffic`."""
    version: str | None = None
    """The current version after it."""
    previous_version: str | None = None
    """The current version before it."""
    reason: str | None = None
    """Why, in the actor's words."""
    traffic: ModelTraffic | None = None
    """Of a change of `traffic`: what answers beside the current version from then on."""


class ChangeList(Answer):
    """The record of changes."""

    changes: tuple[RecordedChange, ...]
    """Newest first."""
    rollback_version: str | None = None
    """The version that a rollback would activate now; None where there is none."""


class MappedItem(Answer):
    """An item on a map."""

    item_id: str
    x: float
    """Along the axis of the greatest variance, from the centre of the map."""
    y: float
    """Along the axis of the second greatest."""
    events: int
    """How many events of it the model was trained on."""
    title: str | None = None
    categories: tuple[str, ...] = ()


class ModelMap(Answer):
    """The items of a model as points of a plane: those that are alike lie together."""

    model_version: str
    method: str
    """How the plane was found: `pca`, by the principal components of the items' unit vectors."""
    explained: tuple[float, float]
    """The share of the variance of these vectors that lies along x and along y."""
    items: tuple[MappedItem, ...]
    """The most popular first."""
