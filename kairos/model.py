"""A trained model in a notebook: what it recommends, what it attends to, and how good it is."""

import shutil
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, SupportsIndex, final

import polars as pl

from kairos.card import Card
from kairos.frames import Frame, Source, to_events
from kairos.histories import (
    Histories,
    UnknownUserError,
    UserId,
    list_users,
    read_history,
    to_user_id,
)
from kairos.instants import Instant, space_instants, to_instant
from kairos.tables import (
    build_attention_table,
    build_item_table,
    build_metric_table,
    build_recommendation_table,
    sum_baskets,
)
from model.bundle.atomic import write_directory
from model.errors import KairosError, ProvenanceError
from model.history import Event, Query
from model.inference.answers import Constraints, Recommendation, Sweep
from model.inference.predictor import Predictor
from model.store.location import open_bundle_store
from training.bundle_evaluation import evaluate_bundle, read_recipe_of
from training.config import RunConfig
from training.evaluation.report import Report

if TYPE_CHECKING:
    from kairos.figures import AttentionFigure

REPORT = "report.json"

_WARNINGS = {
    "beyond_training_window": "the query time is far after the training events, so what the model "
    "knows of popularity and habits is old; pass at= an earlier one",
}


class NoAttentionError(KairosError):
    """Attention was requested of a model that does not attend."""

    code = "no_attention"


class NoReportError(KairosError):
    """The report of the run that trained a model is not at hand."""

    code = "no_report"


@final
class Model:
    """A trained model, and the events of the users that it can look up.

    `kairos.fit` and `kairos.load` return it. Users are given by their id among these events, a text
    or an integer, or as the `history` of someone else: a frame with `item_id` and `timestamp`.
    Query times are `kairos.instants.Instant`; the default is the instant of the last event.
    """

    def __init__(
        self,
        predictor: Predictor,
        directory: Path,
        *,
        histories: Histories | None = None,
        report: Report | None = None,
    ) -> None:
        """Wrap an open bundle.

        Args:
            directory: of the bundle.
            histories: of the users; None where only a `history` can be given.
            report: of the run that trained it, if it is at hand.
        """
        self.predictor = predictor
        self._directory, self._histories, self._report = directory, histories, report

    @property
    def version(self) -> str:
        """The version of the bundle, which a service names with each answer."""
        return self.predictor.version

    @property
    def recipe(self) -> RunConfig:
        """The recipe that the model was trained with.

        Raises:
            ProvenanceError: if the bundle records none that this release can read.
        """
        return read_recipe_of(self.predictor.bundle.manifest)

    @property
    def metrics(self) -> pl.DataFrame:
        """The metrics of the training run: the model and the references on the test questions.

        One row per ranker: the model, also without the query time and with live popularity, then
        popularity, last-item Markov, personal frequency and others; and the model's lead.

        Raises:
            NoReportError: if the model was loaded without its report.
        """
        if self._report is None:
            raise NoReportError(
                f"the metrics of a run are in its {REPORT}, but {self.version} was loaded without "
                "one; load the run's output directory, or measure with evaluate(events)"
            )
        return build_metric_table(self._report)

    def evaluate(self, events: Source) -> pl.DataFrame:
        """Measure the model and the references on the test questions of events, as `metrics` does.

        The recipe's split chooses the questions. Warns if the model has learned from all events of
        its training: on these, it knows the answers.

        Raises:
            EventSourceError: if an event is invalid.
            TrainingError: if the events leave no question.
        """
        bundle = self.predictor.bundle
        table = to_events(events)
        seen_until = bundle.manifest.data_window.last_at
        is_refitted = bool(bundle.manifest.provenance.get("refitted_after_measuring"))
        if is_refitted and table["timestamp"].to_physical().max() == seen_until:
            warnings.warn(
                "the model was refitted on these events, so it knows the answers; `metrics` has "
                "what was measured before",
                stacklevel=2,
            )
        return build_metric_table(evaluate_bundle(bundle, self.recipe, table))

    def recommend(
        self,
        users: UserId | Iterable[UserId] | None = None,
        *,
        history: Frame | None = None,
        at: Instant | None = None,
        n: int = 10,
        exclude_seen: bool | None = None,
        explain: bool = False,
    ) -> pl.DataFrame:
        """Recommend items to one user or to several, best first.

        Args:
            users: an id, or several; None with a `history`.
            exclude_seen: leave out the items of the history; by default as the recipe measures.
            explain: add a column with the parts of each score, as in the API.

        Returns:
            A row per item: user_id, rank, item_id, title, score, and reason, which is "popular"
            where popular items fill up.

        Raises:
            UnknownUserError: if a user has no events.
            EventSourceError: if the history is invalid.
        """
        constraints = self._constrain(n, exclude_seen)
        _require_one(users, history)
        queries = (
            [self._build_query(None, history, at)]
            if users is None
            else [self._build_query(user, None, at) for user in list_users(users)]
        )
        answers = [
            (query.user_id, self.predictor.recommend(query, constraints, explain=explain))
            for query in queries
        ]
        if at is not None:
            _warn_once(answer for _, answer in answers)
        return build_recommendation_table(self.predictor.catalog, answers, explain=explain)

    def similar(self, item_id: str, n: int = 10) -> pl.DataFrame:
        """Find the items most similar to one; the score is the cosine of their vectors.

        Raises:
            UnknownItemError: if the model does not know the item.
            NoItemSpaceError: if the model learns no item vectors.
        """
        return build_item_table(self.predictor.catalog, self.predictor.find_similar(item_id, n))

    def attention(
        self,
        user: UserId | None = None,
        *,
        history: Frame | None = None,
        query_times: Sequence[Instant] | None = None,
        by: Literal["event", "basket"] = "event",
    ) -> pl.DataFrame:
        """Return the attention weights of a user's events at many query times, in long form.

        Args:
            query_times: at most 80 by default, from the user's first event to the last event, and
                whole days or weeks apart where that is far.
            by: "basket" sums over the events of one instant, and adds their number and the lift:
                the weight over that of as many events if all had the same.

        Returns:
            A row per query time and event before it: query_time, timestamp, item_id, title, action,
            and weight, which is null where the model no longer reads the event. Events that it
            reads at none of the query times are left out.

        Raises:
            UnknownUserError: if the user has no events.
            NoAttentionError: if the model does not attend.
        """
        if by not in {"event", "basket"}:
            raise KairosError(
                f"attention is summed by 'event' or 'basket', but got {by!r}; pass one of these"
            )
        sweep = self._sweep(user, history, query_times, n=0, exclude_seen=False)
        table = build_attention_table(self.predictor.catalog, sweep)
        return sum_baskets(table) if by == "basket" else table

    def plot_attention(
        self,
        user: UserId | None = None,
        *,
        history: Frame | None = None,
        at: Instant | None = None,
        query_times: Sequence[Instant] | None = None,
        n: int = 5,
        exclude_seen: bool | None = None,
    ) -> "AttentionFigure":
        """Plot the lift of each basket's attention over the query time, and the ranks of items.

        Args:
            at: marks this instant by a line.
            n: the ranks that are drawn.

        Returns:
            A figure of Matplotlib.

        Raises:
            KairosError: if Matplotlib is not installed.
            UnknownUserError: if the user has no events.
            NoAttentionError: if the model does not attend.
        """
        try:
            from kairos.figures import AttentionFigure  # noqa: PLC0415 - an optional package
        except ModuleNotFoundError as error:
            raise KairosError(
                "a figure is drawn by Matplotlib, but it is not installed; pip install matplotlib"
            ) from error
        sweep = self._sweep(user, history, query_times, n=n, exclude_seen=exclude_seen)
        baskets = sum_baskets(build_attention_table(self.predictor.catalog, sweep))
        return AttentionFigure(
            baskets,
            sweep,
            self.predictor.catalog,
            n=n,
            at=None if at is None else to_instant(at),
            title=f"{_to_optional_id(user) or 'history'}: attention by basket",
        )

    def card(
        self,
        user: UserId | None = None,
        *,
        history: Frame | None = None,
        at: Instant | None = None,
        n: int = 10,
        exclude_seen: bool | None = None,
    ) -> Card:
        """Show a user at an instant: the recommended items with reasons, and the attention.

        Raises:
            UnknownUserError: if the user has no events.
        """
        query = self._build_query(user, history, at)
        constraints = self._constrain(n, exclude_seen)
        answer = self.predictor.recommend(query, constraints, explain=True, reasons=True)
        return Card(query, answer, self.predictor.catalog, self.version)

    def save(self, directory: str | Path) -> Path:
        """Write the bundle and its report into a directory, as `kairos train` does.

        `kairos.load` and `kairos publish` read it. The events are not in it.

        Returns:
            The directory of the bundle.
        """
        root = Path(directory)
        bundle = root / self.version
        if not bundle.exists():

            def copy(into: Path) -> str:
                shutil.copytree(self._directory, into, dirs_exist_ok=True)
                return self.version

            shutil.rmtree(root / ".bundle", ignore_errors=True)  # left by a killed process
            write_directory(root / ".bundle", copy)
        if self._report is not None:
            self._report.write(root / REPORT)
        return bundle

    def publish(self, store: str | Path = "var/bundles", *, activate: bool = False) -> str:
        """Copy the bundle into a store; services that follow the store can serve it at once.

        Args:
            store: a directory, or `s3://bucket/prefix`.
            activate: make it the current version. The service's record of changes does not show
                it, so `kairos models rollback` does not return to the version before; `kairos
                models activate` and the dashboard record what they do.

        Returns:
            The version.

        Raises:
            BundleError: if the store has the version, but damaged.
        """
        return open_bundle_store(store).add_copy(self._directory, activate=activate)

    def __repr__(self) -> str:
        counts = self.predictor.bundle.manifest.counts
        kind = self.predictor.bundle.manifest.recommender.encoder.kind
        found = self.predictor.bundle.manifest.metrics.get("ndcg@10")
        measured = "" if found is None else f", ndcg@10 {found:.3f}"
        return (
            f"Model({self.version}: {kind}, {counts.items:,} items, {counts.events:,} events of "
            f"{counts.users:,} users{measured})"
        )

    def _constrain(self, n: int, exclude_seen: bool | None) -> Constraints:
        if isinstance(n, bool) or not isinstance(n, SupportsIndex) or n.__index__() < 0:
            raise KairosError(
                f"a number of items is an integer from 0 on, but got {n!r}; pass n=10"
            )
        if exclude_seen is None:
            try:
                exclude_seen = self.recipe.data.exclude_seen
            except ProvenanceError:
                exclude_seen = True
        return Constraints(n=n.__index__(), exclude_seen=exclude_seen)

    def _find_events(self, user: UserId | None, history: Frame | None) -> tuple[Event, ...]:
        _require_one(user, history)
        if history is not None:
            return read_history(history)
        assert user is not None
        if self._histories is None:
            raise UnknownUserError(
                f"users are looked up in events, but the model has none to find {user!r} in; pass "
                "events= to kairos.load, or history="
            )
        return self._histories.find(to_user_id(user))

    def _build_query(self, user: UserId | None, history: Frame | None, at: Instant | None) -> Query:
        events = self._find_events(user, history)
        query_time = self._find_last(events) if at is None else to_instant(at)
        return Query.as_of(events, query_time, user_id=_to_optional_id(user))

    def _find_last(self, events: tuple[Event, ...]) -> int:
        """Return the instant of the last event that is known: of these, or of all."""
        known = self.predictor.bundle.manifest.data_window.last_at
        if self._histories is not None:
            known = self._histories.last_at
        return max([known, *(event.at for event in events[-1:])])

    def _sweep(
        self,
        user: UserId | None,
        history: Frame | None,
        query_times: Sequence[Instant] | None,
        *,
        n: int,
        exclude_seen: bool | None,
    ) -> Sweep:
        events = self._find_events(user, history)
        if query_times is None:
            last = self._find_last(events)
            first = min([last, *(event.at for event in events[:1])])
            instants = space_instants(first, last)
        else:
            instants = [to_instant(one) for one in query_times]
        instants = sorted({*instants})
        if not instants:
            raise KairosError("a sweep has query times, but got none; pass at least one")
        sweep = self.predictor.sweep(
            Query.as_of(events, instants[-1], user_id=_to_optional_id(user)),
            instants,
            self._constrain(n, exclude_seen),
        )
        if sweep.events and all(instant.weights is None for instant in sweep.instants):
            raise NoAttentionError(
                "attention weights are those of a model that attends, but "
                f"{self.predictor.bundle.manifest.recommender.encoder.kind!r} does not; fit a "
                "recipe with another encoder"
            )
        return sweep


def _require_one(users: object, history: object) -> None:
    if (users is None) == (history is None):
        raise KairosError(
            "a query is for a user or for a history, but got "
            f"{'neither' if users is None else 'both'}; pass one of them"
        )


def _to_optional_id(user: UserId | None) -> str | None:
    return None if user is None else to_user_id(user)


def _warn_once(answers: Iterator[Recommendation]) -> None:
    """Warn of each code that any of the answers has."""
    for code in dict.fromkeys(code for answer in answers for code in answer.warnings):
        if code in _WARNINGS:
            warnings.warn(f"{code}: {_WARNINGS[code]}", stacklevel=3)
