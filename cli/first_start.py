"""The first start on a file of events: serves counts within seconds, and trains meanwhile.

The database, the bundles and the runs are in one directory. What is there already is used: events
are imported once, a trained model is served at once, and an interrupted training is resumed.
"""

import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, final
from urllib.parse import urlencode

import polars as pl
from rich.markup import escape

from cli.activation import make_current
from cli.background_training import BackgroundTraining, TrainingTask, choose_threads, run_task
from cli.console import print_dashboard_link, print_message
from cli.database_creation import DATABASE_NAME, create_beside
from cli.inspect import describe_source
from cli.options import load_bundle_keys, open_store
from model.bundle.atomic import replace_file
from model.clock import MICROSECONDS_PER_DAY, to_datetime
from model.encoders.counting import CountingConfig
from model.errors import EventSourceError, KairosError, OutdatedBundleError
from model.store.store import BundleStore
from training.config import RunConfig
from training.counting_model import write_counting_bundle
from training.data.sources import format_location, is_database, read_events, read_items
from training.inspection.profile import profile_events
from training.inspection.recipe_text import format_recipe
from training.inspection.recommendation import recommend_recipe
from training.retraining.job import RetrainingJob
from training.retraining.report import RunReport

CUSTOMER_PAGE = "customers.html"
"""The dashboard's page of one customer; its fragment holds `user` and `query_time`."""

_DIGITS = 8
_MOST_EVENTS = 200
_REPEATS = (0.3, 0.6)
_DAYS_LATER = 7


@final
@dataclass(frozen=True)
class FirstStart:
    """A directory with everything that serving a file of events needs.

    Attributes:
        events_file: as for `training.data.sources.read_events`; not a database.
        items_file: as for `training.data.sources.read_items`.
        events: the read events.
        items: the read items.
        recipe: name of the recipe, for the record of the training.
    """

    directory: Path
    events_file: str
    items_file: str | None
    events: pl.DataFrame = field(repr=False)
    items: pl.DataFrame | None = field(repr=False)
    config: RunConfig
    recipe: str

    @classmethod
    def of_file(cls, parent: Path, events_file: str, items_file: str | None) -> Self:
        """Read a file of events, and choose the recipe that `kairos inspect` recommends.

        The directory in `parent` is named by the file and a digest of the events. So no other
        events are ever in its database; a file that has changed gets another directory.

        Raises:
            KairosError: if the location is a database, or the events or items cannot be read.
        """
        if is_database(events_file):
            raise KairosError(
                f"--events is a file, a directory or a glob, but got {format_location(events_file)}"
                "; set KAIROS_DATABASE_URL to serve a database"
            )
        events = read_events(events_file)
        if events.is_empty():
            raise EventSourceError(
                f"serving needs events, but {events_file} holds none; bring at least one"
            )
        items = None if items_file is None else read_items(items_file)
        name = re.sub(r"[^A-Za-z0-9-]+", "-", Path(events_file).stem).strip("-") or "events"
        digest = hashlib.sha256(events.write_csv().encode()).hexdigest()[:_DIGITS]
        directory = parent / f"{name}-{digest}"
        print_message(f"[bold]directory[/] {escape(str(directory))}: database, bundles and runs")
        config = _recommend_recipe(events, events_file, directory / "recipe.toml")
        return cls(directory, events_file, items_file, events, items, config, "recommended")

    @property
    def database_file(self) -> Path:
        """The SQLite database of this directory."""
        return self.directory / DATABASE_NAME

    @property
    def database_url(self) -> str:
        """Its URL."""
        return f"sqlite:///{self.database_file.resolve()}"

    @property
    def task(self) -> TrainingTask:
        """The training of the recipe on the events."""
        last = int(self.events["timestamp"].cast(pl.Int64).max() or 0)  # type: ignore[arg-type]
        job = RetrainingJob(
            config=self.config,
            recipe=self.recipe,
            events=str(Path(self.events_file).absolute()),
            items=None if self.items_file is None else str(Path(self.items_file).absolute()),
            database=self.database_url,
            # Of the data, not of the clock: so every start has the same run, and resumes it.
            until=last,
            known_by=last,
        )
        return TrainingTask(job, self.directory / "bundles", self.directory / "runs")

    def open_store(self) -> BundleStore:
        """Open the store of this directory."""
        return open_store(self.directory / "bundles")

    def prepare(self, wait_for_creation: Callable[[], None] | None = None) -> None:
        """Import what is not stored yet, and publish a counted model if there is no usable one.

        Both run side by side where both have to be done.

        Args:
            wait_for_creation: waits for a database that is being created already.
        """
        store = self.open_store()
        is_counted = _has_usable_model(store)
        if not is_counted:
            # The checkpoint and the decision of its run are of that format, too.
            shutil.rmtree(self.task.directory, ignore_errors=True)
        with (
            _import_beside(self, wait_for_creation) as wait_for_import,
            tempfile.TemporaryDirectory() as output,
        ):
            if not is_counted:
                with _measure_seconds("counted the events into a first model"):
                    bundle = write_counting_bundle(
                        self.config.data,
                        self.events,
                        self.items,
                        Path(output),
                        keys=load_bundle_keys(),
                    )
                version = store.add_copy(bundle, activate=False)
            # The other process has the longer way to go.
            from app import main  # noqa: F401, PLC0415 - the service's modules load slowly

            wait_for_import()
            if not is_counted:
                make_current(
                    store,
                    version,
                    change="publish",
                    reason="counted at the first start",
                    database=self.database_url,
                )
        print_message(f"[bold]serving[/] {store.read_current()}")

    def needs_training(self) -> bool:
        """Return whether the counted model serves and the recipe was not decided on yet."""
        store = self.open_store()
        current = store.read_current()
        if current is None:
            return True
        if not isinstance(store.read_manifest(current).recommender.encoder, CountingConfig):
            return False
        before = RunReport.read(self.task.directory)
        if before is not None and before.result in {"promoted", "kept"}:
            print_message(
                f"[bold]training[/] {before.result} before: {escape(before.reason or '')}"
            )
            return False
        return True

    def train(self) -> None:
        """Train in this process, unless that is done."""
        if self.needs_training():
            run_task(self.task, choose_threads())

    def serve(self, settings: Mapping[str, object], *, is_demo: bool) -> None:
        """Run the service until a signal stops it, and the training beside it.

        Args:
            settings: replace those of the environment, except database and store.
        """
        from app import server  # noqa: PLC0415 - the service's modules load slowly
        from app.settings import Settings  # noqa: PLC0415

        chosen = Settings(
            database_url=self.database_url, bundle_store=(self.directory / "bundles").resolve()
        ).model_copy(update=dict(settings))
        training: list[BackgroundTraining] = []
        view = describe_customer(self.events)

        def handle_start(link: str) -> None:
            print_dashboard_link(add_view(link, view))
            if self.needs_training():
                print_message(
                    "[bold]training[/] the recipe learns in the background; its model replaces the "
                    "counted one when it is better"
                )
                training.append(BackgroundTraining(self.task))

        try:
            server.run(chosen, is_demo=is_demo, announce_link=handle_start)
        finally:
            for process in training:
                process.stop()


def _recommend_recipe(events: pl.DataFrame, location: str, file: Path) -> RunConfig:
    """Read the recipe that an earlier start recommended, or inspect the events and write it."""
    if not file.exists():
        profile = profile_events(events)
        recommendation = recommend_recipe(profile)
        file.parent.mkdir(parents=True, exist_ok=True)
        text = format_recipe(recommendation, describe_source(profile, format_location(location)))
        # At once: another start may be reading it.
        replace_file(file, file.with_name(f".{file.name}.{os.getpid()}"), text.encode())
        if profile.findings:
            titles = ", ".join(finding.title for finding in profile.findings)
            print_message(
                f"[yellow]to check[/] in the events: {titles}; kairos inspect describes each"
            )
    return RunConfig.read(file)


def _has_usable_model(store: BundleStore) -> bool:
    """Return whether the store serves a version of this bundle format; print why it does not."""
    current = store.read_current()
    if current is None:
        return False
    try:
        store.read_manifest(current)
    except OutdatedBundleError as error:
        print_message(f"[yellow]train again[/] {escape(str(error))}")
        return False
    return True


@contextmanager
def _import_beside(
    start: FirstStart, wait_for_creation: Callable[[], None] | None
) -> Iterator[Callable[[], None]]:
    """Import the events, in a process of its own where a database has to be created.

    Yields:
        A function that waits until the import has ended.
    """
    from app.imports import count_events, import_events, import_items  # noqa: PLC0415
    from migrations.run import upgrade  # noqa: PLC0415

    if wait_for_creation is not None:
        yield wait_for_creation
        return
    if not start.database_file.exists():
        with create_beside(start.database_file, start.events_file, start.items_file) as wait:
            yield wait
        return
    upgrade(start.database_url)
    if start.items is not None:
        import_items(start.database_url, start.items)
    if count_events(start.database_url) < len(start.events):
        with _measure_seconds("imported events that were missing"):
            import_events(start.database_url, start.events)
    yield lambda: None


@contextmanager
def _measure_seconds(done: str) -> Iterator[None]:
    """Print what was done, and how long it took."""
    began = time.monotonic()
    yield
    print_message(f"[bold]{done}[/] ({time.monotonic() - began:.1f} s)")


def describe_customer(events: pl.DataFrame) -> dict[str, str]:
    """Choose a customer worth looking at, and a query time shortly after their last event.

    Of those with at most 200 events, of which a third to two thirds or so are of an item chosen
    before, the one with events on most days; without such, the one with events on most days.

    Returns:
        The fragment of the dashboard's page.
    """
    users = events.group_by("user_id").agg(
        events=pl.len(),
        days=pl.col("timestamp").dt.date().n_unique(),
        repeats=1 - pl.col("item_id").n_unique() / pl.len(),
        last=pl.col("timestamp").cast(pl.Int64).max(),
    )
    regular = users.filter(
        pl.col("events") <= _MOST_EVENTS, pl.col("repeats").is_between(*_REPEATS)
    )
    chosen = (regular if len(regular) else users).sort("days", "user_id", descending=[True, False])
    user_id, last = chosen.select("user_id", "last").row(0)
    latest = int(users["last"].max())  # type: ignore[arg-type]
    query_time = to_datetime(min(last + _DAYS_LATER * MICROSECONDS_PER_DAY, latest))
    return {"user": user_id, "query_time": f"{query_time:%Y-%m-%dT%H:%M:%SZ}"}


def add_view(link: str, view: dict[str, str]) -> str:
    """Point a link to the dashboard at the page of a customer.

    Args:
        link: perhaps with a token in its fragment.
        view: what the fragment of the page holds.
    """
    base, _, fragment = link.partition("#")
    return f"{base}{CUSTOMER_PAGE}#{'&'.join(filter(None, (fragment, urlencode(view))))}"
