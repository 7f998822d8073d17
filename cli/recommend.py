"""The `kairos recommend` command."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, final

import polars as pl
import torch
import typer

from cli.console import exit_on_error, print_message
from cli.options import (
    DEFAULT_STORE,
    EVENTS_HELP,
    Erased,
    Store,
    Workers,
    load_erasures,
    open_store,
    parse_instant,
)
from cli.progress import show_row_progress, show_stages
from kairos.tables import INSTANT, RECOMMENDATIONS, build_recommendation_table
from model.clock import now
from model.errors import KairosError
from model.history import Query
from model.inference.answers import Constraints, Recommendation
from model.inference.predictor import Predictor
from model.store.location import is_url
from training.data.dataset import Dataset
from training.data.sources import is_database, read_events
from training.engines import EngineName, open_engine
from training.preparation.events import PreparedEvents, is_prepared
from training.preparation.folder import Folder
from training.preparation.prepare import prepare
from training.recommendations import Request, read_interrupted, recommend_everyone, require_own

_PREPARED = ".events"
"""The folder of events that are prepared for one call, below its output; no user names one so."""


def recommend_command(
    events: Annotated[str, typer.Option(help=f"{EVENTS_HELP} Prepared ones need --engine.")],
    output: Annotated[
        str,
        typer.Option(help="The Parquet file to write; with --engine a directory or URL of them."),
    ],
    store: Store = DEFAULT_STORE,
    n: Annotated[int, typer.Option(help="Items per user.", min=1, max=500)] = 10,
    query_time: Annotated[
        str | None, typer.Option(help="RFC 3339 instant with an offset; now by default.")
    ] = None,
    exclude_seen: Annotated[
        bool, typer.Option(help="Leave out the items of a user's history.")
    ] = True,
    explain: Annotated[
        bool, typer.Option(help="Add a column with the parts of each score.")
    ] = False,
    erased: Erased = None,
    engine: Annotated[
        EngineName | None,
        typer.Option(
            help="Write a file per shard of the events, on this machine or by Ray, on the cluster "
            "of RAY_ADDRESS if it is set."
        ),
    ] = None,
    workers: Workers = 1,
) -> None:
    """Recommend items to every user of an event log at one query time, into a Parquet file.

    One row per item: user_id, rank (1 is best), item_id, title, score, reason ("model" or
    "popular"), model_version, query_time. With --explain also parts: why this item, as in the API;
    null without a wide part.

    With --engine, for any number of users: one row per user, with lists of item_ids, scores and
    reasons, in a directory with a file per shard. The events may be prepared ones (kairos prepare).
    Run the same command again to go on after an interruption.
    """
    with exit_on_error():
        torch.set_num_threads(1)
        if engine is None and workers > 1:
            raise KairosError(
                "a single file is written by one process, but got --workers "
                f"{workers}; add --engine local, or leave out --workers"
            )
        if engine is not None:
            if explain:
                raise KairosError(
                    "parts of scores are in a single file, but --engine writes one per shard; "
                    "leave out --engine or --explain"
                )
            recommend_in_shards(
                events,
                output,
                store,
                engine,
                n=n,
                query_time=(
                    None if query_time is None else parse_instant("--query-time", query_time)
                ),
                exclude_seen=exclude_seen,
                erased=erased,
                workers=workers,
            )
            return
        file = Path(output)
        file.parent.mkdir(parents=True, exist_ok=True)  # fails now, not after hours of work
        instant = (
            _read_time(events, erased)
            if query_time is None
            else parse_instant("--query-time", query_time)
        )
        predictor = open_store(store).open()
        dataset = Dataset.of(read_events(events, erasures=load_erasures(erased)))
        constraints = Constraints(n=n, exclude_seen=exclude_seen)

        def answer_users(advance: Callable[[int], None]) -> Iterator[tuple[str, Recommendation]]:
            for user, user_id in enumerate(dataset.user_ids):
                query = Query.as_of(dataset.history(user), instant, user_id=user_id)
                yield user_id, predictor.recommend(query, constraints, explain=explain)
                advance(1)

        with show_row_progress("recommend", len(dataset.user_ids)) as advance:
            table = build_recommendation_table(
                predictor.catalog, answer_users(advance), explain=explain
            )
        parts = table.columns[len(RECOMMENDATIONS) :]
        table = table.select(
            *RECOMMENDATIONS,
            pl.lit(predictor.version).alias("model_version"),
            pl.lit(instant).cast(INSTANT).alias("query_time"),
            *parts,
        )
        table.write_parquet(file)
        print_message(f"{len(dataset.user_ids)} users, {len(table)} rows")
        typer.echo(output)


@final
@dataclass(frozen=True)
class StoredModel:
    """A version in a store, which any process of a machine that reaches the store can open."""

    store: str
    version: str

    def __call__(self) -> Predictor:
        """Open it."""
        return open_store(self.store).open(self.version)


def recommend_in_shards(
    events: str,
    output: str,
    store: str,
    engine: EngineName,
    *,
    n: int,
    query_time: int | None,
    exclude_seen: bool,
    erased: str | None,
    workers: int,
) -> None:
    """Recommend to every user, into a directory with one file per shard."""
    folder = Folder.at(output)
    require_own(folder)  # fails now, not after hours of work
    erasures = load_erasures(erased)
    request = Request(
        model_version=open_store(store).open().version,
        query_time=_read_time(events, erased) if query_time is None else query_time,
        n=n,
        exclude_seen=exclude_seen,
        erasures="" if erasures is None else erasures.identify(),
    )
    interrupted = read_interrupted(folder)
    if query_time is None and interrupted is not None:
        at_its_time = request.model_copy(update={"query_time": interrupted.query_time})
        request = interrupted if at_its_time == interrupted else request
    with open_engine(engine, workers) as mapper, show_stages() as on_task:
        temporary = None
        if not is_prepared(events):
            temporary = Folder(f"{folder.location.rstrip('/')}/{_PREPARED}")
            prepare(events, temporary.location, mapper, on_task=on_task)
        manifest = recommend_everyone(
            StoredModel(
                store if is_url(store) else str(Path(store).absolute()), request.model_version
            ),
            request,
            PreparedEvents.open(events if temporary is None else temporary.location),
            folder,
            mapper,
            erasures=erasures,
            on_task=on_task,
        )
        if temporary is not None:
            folder.remove(_PREPARED)
    print_message(f"{manifest.users:,} users in {len(manifest.files)} files")
    typer.echo(output)


def _read_time(*sources: str | None) -> int:
    """Read the time of the first source that is a database; this machine's if none is."""
    from app.db.clock import read_database_time  # noqa: PLC0415 - the service's modules load slowly

    for source in sources:
        if source is not None and is_database(source):
            return read_database_time(source)
    return now()
