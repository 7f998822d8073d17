"""A recipe that suits a profile of events, with a reason for every setting.

Every rule is one function from the profile to a `Reason`; `recommend_recipe` lists them.
"""

from dataclasses import dataclass

from training.config import SESSION_SECONDS, DataConfig, RunConfig
from training.data.split import ByTimeConfig, Predict, SplitConfig
from training.inspection.action_names import format_name, list_names
from training.inspection.profile import DataProfile

Value = bool | int | float | str | tuple[str, ...]

BASKET_TIES = 0.2
"""Least share of steps within an instant, for events to come in baskets."""
BASKET_GAP_SECONDS = 3_600.0
"""Least median gap between a user's instants, for events at one instant to be a basket."""
SEEN_REPEATS = 0.01
"""Share of repeats below which items of the history are not recommended again."""
SMALL_DATA_EVENTS = 200_000
"""Number of events below which dropout is stronger."""
HISTORY_LENGTHS = (8, 16, 32, 64, 100, 128, 200)
"""Choices of the number of events that the model reads."""
HISTORY_LENGTH_OF_REPEATS = 400
"""One more choice where users return to items: their shares are of the events that are read."""
BATCHES_PER_EPOCH = 300
TOKENS = (200, 6_400)
"""Bounds of the positions per batch."""
SESSION_WEIGHT = 0.1
"""Weight of targets within a session, where users are asked when they return (decision 74)."""
EVENTS_READ = 3_500_000
"""Events that a fit reads at most, over all epochs: some minutes on two cores."""
EPOCHS = (2, 12)
"""Bounds of the number of epochs."""
WARMUP_STEPS = 100
LOGITS = 4e9
"""Scores of items per epoch above which the softmax is sampled: minutes on two cores."""
NEGATIVES = 2_048


@dataclass(frozen=True)
class Reason:
    """One setting of a recipe, and why.

    Attributes:
        setting: its dotted name, such as "data.predict".
        value: its value.
        reason: a sentence without a full stop.
    """

    setting: str
    value: Value
    reason: str


@dataclass(frozen=True)
class Recommendation:
    """A recipe with a reason for every setting that it names.

    Attributes:
        config: the recipe.
        reasons: in the order of the recipe's tables.
    """

    config: RunConfig
    reasons: tuple[Reason, ...]


def recommend_recipe(
    profile: DataProfile, data: DataConfig | None = None, split: SplitConfig | None = None
) -> Recommendation:
    """Recommend a recipe for events of a profile.

    Args:
        data: settings that are fixed: the fields that were set are kept, the others are decided.
        split: the split of the recipe; by time by default.
    """
    data = data or DataConfig()
    fixed = _keep_settings("data", data.model_dump(exclude_unset=True))
    decided = [
        _choose_predict(profile),
        _choose_exclude_seen(profile),
        _choose_read_actions(profile),
    ]
    reasons = [*fixed, *(one for one in decided if one.setting not in {it.setting for it in fixed})]
    values = {one.setting: one.value for one in reasons}
    predicts_baskets = values["data.predict"] == "next_basket"
    excludes_seen = values["data.exclude_seen"] is True
    repeats = _choose_repeats(profile, excludes_seen=excludes_seen)
    reasons += [
        *_choose_split(split),
        _choose_popularity(profile),
        repeats,
        _choose_followers(),
        _choose_calendar_phase(profile),
        *_choose_encoder(),
        _choose_layers(predicts_baskets=predicts_baskets),
        _choose_baskets(predicts_baskets=predicts_baskets),
        _choose_dropout(profile),
        _choose_max_history(profile, has_repeats=repeats.value is True),
        _choose_calendar_periods(),
        *_choose_time_encoding(),
        *_choose_epochs(profile),
        _choose_tokens(profile),
        _choose_warmup(profile),
        *_choose_learning_rates(),
        _choose_item_vectors(),
        *_choose_session_weight(profile, split),
        *_choose_refits(),
        *_choose_loss(profile, predicts_baskets=predicts_baskets),
    ]
    settings: dict[str, object] = {}
    for one in reasons:
        _set(settings, one.setting.split("."), one.value)
    return Recommendation(RunConfig.model_validate(settings), tuple(reasons))


def decide_predict(profile: DataProfile) -> Predict:
    """Decide whether the data suggests to predict baskets or single events.

    Ties alone do not make baskets: a session of ratings with timestamps in seconds has many. A
    basket stands apart, so the user's next instant is far. Duplicates of an event are no basket.
    """
    ties = profile.baskets.tied_choices >= BASKET_TIES
    apart = profile.gaps is not None and profile.gaps.median >= BASKET_GAP_SECONDS
    return "next_basket" if ties and apart else "next_event"


def _choose_predict(profile: DataProfile) -> Reason:
    ties = f"{profile.baskets.tied_steps:.0%} of the steps are within one instant"
    predict = decide_predict(profile)
    if predict == "next_basket":
        reason = f"{ties}, and the next instant is far: events come in baskets"
    elif profile.gaps is None:
        reason = "no user has events at two instants, so nothing follows"
    elif profile.baskets.tied_choices < BASKET_TIES:
        repeats = profile.baskets.tied_repeats
        reason = f"{ties}" + (f", {repeats:.0%} to the same item" if repeats >= 0.005 else "")
        reason += ": events come one by one"
    else:
        reason = (
            f"{ties}, but the median gap to the next instant is only {profile.gaps.median:,.0f} s: "
            "these are sessions, not baskets"
        )
    return Reason("data.predict", predict, reason)


def _choose_exclude_seen(profile: DataProfile) -> Reason:
    excludes = profile.repeats < SEEN_REPEATS
    return Reason(
        "data.exclude_seen",
        excludes,
        f"{profile.repeats:.1%} of the events are of an item that the user chose before"
        + (", so ranking those again would waste places" if excludes else ""),
    )


def _choose_read_actions(profile: DataProfile) -> Reason:
    names = list_names(
        [format_name(name) for name, _ in profile.actions if name not in profile.ignored_actions]
    )
    return Reason(
        "data.read_actions",
        profile.used_actions > 1,
        f"actions that differ say something: {names}"
        if profile.used_actions > 1
        else f"there is one action only: {names}",
    )


def _choose_split(split: SplitConfig | None) -> list[Reason]:
    if split is not None:
        settings = {"kind": split.kind, **split.model_dump(exclude_unset=True)}
        return _keep_settings("split", settings)
    default = ByTimeConfig()
    return [
        Reason("split.kind", default.kind, "the test is on the latest events, as in service"),
        Reason("split.test", default.test, "the latest tenth of the events"),
        Reason("split.validation", default.validation, "the tenth before it"),
    ]


def _choose_popularity(profile: DataProfile) -> Reason:
    reason = "what is chosen often now is a good guess"
    if profile.drift is not None and profile.drift.change >= 0.02:
        reason = (
            f"choices change: the overlap with the {profile.drift.unit} before is "
            f"{1 - profile.drift.change:.2f}"
        )
    if profile.popularity is not None and profile.popularity.recent:
        best = max(profile.popularity.recent, key=lambda it: it.gain)
        often = max(profile.popularity.recent, key=lambda it: it.hit_rate)
        if best.gain > 1.05:
            reason += (
                f"; the popularity of {best.days} days gives chosen items {best.gain:.2f} times "
                "the share that the popularity of all time gives them"
            )
        elif often.hit_rate > 1.2 * profile.popularity.hit_rate:
            reason += (
                f"; {often.hit_rate:.1%} of the events are of the ten most popular items of the "
                f"last {often.days} days, {profile.popularity.hit_rate:.1%} of those of all time"
            )
    return Reason("wide.popularity", True, reason)


def _choose_repeats(profile: DataProfile, *, excludes_seen: bool) -> Reason:
    if excludes_seen:
        return Reason("wide.repeats", False, "items of the history are not recommended again")
    return Reason(
        "wide.repeats",
        profile.repeats > 0,
        f"users return to items: {profile.repeats:.1%} of the events"
        if profile.repeats > 0
        else "no user returns to an item",
    )


def _choose_followers() -> Reason:
    return Reason("wide.followers", True, "what follows an item helps most where data is sparse")


def _choose_calendar_phase(profile: DataProfile) -> Reason:
    if profile.gaps is not None and _has_sessions(profile):
        return Reason(
            "wide.calendar",
            False,
            "half of the gaps between a user's instants are within "
            f"{profile.gaps.median:,.0f} seconds: the phase of the query time would name the "
            "session, and training memorise it",
        )
    deciding = [one.cycle for one in profile.activity if one.decides_items]
    return Reason(
        "wide.calendar",
        bool(deciding),
        f"what is chosen depends on the {' and the '.join(deciding)}"
        if deciding
        else "neither the hour nor the weekday predicts what is chosen later, and training would "
        "memorise a phase that means nothing",
    )


def _choose_encoder() -> list[Reason]:
    reason = "the time-aware encoder at its usual size"
    return [
        Reason("encoder.kind", "self_attention", reason),
        Reason("encoder.dim", 64, reason),
        Reason("encoder.heads", 2, reason),
    ]


def _choose_layers(*, predicts_baskets: bool) -> Reason:
    if predicts_baskets:
        return Reason("encoder.layers", 1, "baskets have no order within, so one layer is enough")
    return Reason("encoder.layers", 2, "the order of single events takes two layers")


def _choose_baskets(*, predicts_baskets: bool) -> Reason:
    return Reason(
        "encoder.baskets",
        predicts_baskets,
        "the order within a basket means nothing"
        if predicts_baskets
        else "events of one instant are predicted one by one",
    )


def _choose_dropout(profile: DataProfile) -> Reason:
    is_small = profile.events < SMALL_DATA_EVENTS
    return Reason(
        "encoder.dropout",
        0.3 if is_small else 0.2,
        f"{profile.events:,} events are {'few' if is_small else 'enough'}: "
        f"{'more' if is_small else 'the usual'} regularisation",
    )


def _choose_max_history(profile: DataProfile, *, has_repeats: bool) -> Reason:
    needed = profile.user_events.p90
    lengths = (*HISTORY_LENGTHS, HISTORY_LENGTH_OF_REPEATS) if has_repeats else HISTORY_LENGTHS
    length = next((it for it in lengths if it >= needed), lengths[-1])
    reason = f"nine of ten users have at most {needed:,.0f} events"
    if length < needed:
        reason += "; longer histories cost more than they bring"
    return Reason("encoder.max_history", length, reason)


def _choose_calendar_periods() -> Reason:
    return Reason(
        "encoder.calendar", True, "intervals at the exact periods of day, week and year cost little"
    )


def _choose_time_encoding() -> list[Reason]:
    reason = "learned periods from an hour to two years"
    return [
        Reason("encoder.time_encoding.kind", "mercer", reason),
        Reason("encoder.time_encoding.form", "concat", reason),
        Reason("encoder.time_encoding.periods", 8, reason),
        Reason("encoder.time_encoding.degree", 4, reason),
    ]


def _choose_epochs(profile: DataProfile) -> list[Reason]:
    least, most = EPOCHS
    epochs = min(max(round(EVENTS_READ / profile.events), least), most)
    return [
        Reason("fit.epochs", epochs, f"at most, for {profile.events:,} events: a few minutes"),
        Reason("fit.patience", 4, "epochs without an improvement on the validation questions"),
    ]


def _choose_tokens(profile: DataProfile) -> Reason:
    tokens = _count_tokens(profile)
    return Reason("fit.tokens", tokens, f"about {profile.events / tokens:,.0f} batches per epoch")


def _choose_warmup(profile: DataProfile) -> Reason:
    batches = profile.events // _count_tokens(profile)
    return Reason(
        "fit.warmup_steps", min(batches, WARMUP_STEPS), "at most one epoch at a rising rate"
    )


def _count_tokens(profile: DataProfile) -> int:
    least, most = TOKENS
    return min(max(round(profile.events / BATCHES_PER_EPOCH / 100) * 100, least), most)


def _choose_loss(profile: DataProfile, *, predicts_baskets: bool) -> list[Reason]:
    """Sample the softmax where a full one would take most of the time."""
    queries = profile.events
    if predicts_baskets:
        queries = round(queries * (1 - profile.baskets.tied_steps))
    if queries * profile.items <= LOGITS:
        return []
    reason = f"{queries:,} predictions over {profile.items:,} items are too many to score them all"
    return [
        Reason("fit.loss.kind", "softmax", reason),
        Reason("fit.loss.sample_above", 0, reason),
        Reason("fit.loss.negatives", NEGATIVES, reason),
    ]


def _choose_learning_rates() -> list[Reason]:
    reason = "rates decay to zero in the end; scalars, such as biases and gates, have farther to go"
    return [
        Reason("fit.learning_rate", 2e-3, reason),
        Reason("fit.scalar_learning_rate", 1e-2, reason),
    ]


def _choose_item_vectors() -> Reason:
    return Reason(
        "fit.item_vectors",
        "co_occurrence",
        "items that are chosen together start close to each other, which saves the first epochs",
    )


def _choose_session_weight(profile: DataProfile, split: SplitConfig | None) -> list[Reason]:
    """Weigh the steps of sessions less where the questions are of users who return."""
    is_by_time = split is None or split.kind == "by_time"
    if not (is_by_time and _has_sessions(profile)):
        return []
    return [
        Reason(
            "fit.session_weight",
            SESSION_WEIGHT,
            "questions of a split by time are asked when users return, and most events follow the "
            "user's last one within an hour; 1 is better for recommendations within a session",
        )
    ]


def _has_sessions(profile: DataProfile) -> bool:
    """Return whether half of the events are of one session with the user's last one."""
    return profile.gaps is not None and profile.gaps.median < SESSION_SECONDS


def _choose_refits() -> list[Reason]:
    return [
        Reason("fit.refit_before_test", True, "the test then measures a model without a gap"),
        Reason("fit.refit", True, "the bundle has learned from all events"),
        Reason("fit.refit_from", "fitted", "later events change little, so half the epochs do"),
    ]


def _keep_settings(table: str, settings: dict[str, Value]) -> list[Reason]:
    return [Reason(f"{table}.{name}", value, "as given") for name, value in settings.items()]


def _set(settings: dict[str, object], path: list[str], value: Value) -> None:
    """Set a value in nested tables."""
    for name in path[:-1]:
        inner = settings.setdefault(name, {})
        assert isinstance(inner, dict)
        settings = inner
    settings[path[-1]] = value
