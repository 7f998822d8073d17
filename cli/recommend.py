"""The `kairos recommend` command."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import polars as pl
import torch
import typer

from cli.console import exit_on_error, print_message
from cli.options import (
    DEFAULT_STORE,
    Erased,
    Events,
    Store,
    load_erasures,
    open_store,
    parse_instant,
)
from cli.progress import show_row_progress
from kairos.tables import INSTANT, RECOMMENDATIONS, build_recommendation_table
from model.clock import now
from model.history import Query
from model.inference.answers import Constraints, Recommendation
from training.data.dataset import Dataset
from training.data.sources import is_database, read_events


def recommend_command(
    events: Events,
    output: Annotated[Path, typer.Option(help="The Parquet file to write.")],
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
) -> None:
    """Recommend items to every user of an event log at one query time, into a Parquet file.

    One row per item: user_id, rank (1 is best), item_id, title, score, reason ("model" or
    "popular"), model_version, query_time. With --explain also parts: why this item, as in the API;
    null without a wide part.
    """
    with exit_on_error():
        torch.set_num_threads(1)
        output.parent.mkdir(parents=True, exist_ok=True)  # fails now, not after hours of work
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
        table.write_parquet(output)
        print_message(f"{len(dataset.user_ids)} users, {len(table)} rows")
        typer.echo(output)


def _read_time(*sources: str | None) -> int:
    """Read the time of the first source that is a database; this machine's if none is."""
    from app.db.clock import read_database_time  # noqa: PLC0415 - the service's modules load slowly

    for source in sources:
        if source is not None and is_database(source):
            return read_database_time(source)
    return now()
