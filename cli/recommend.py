"""The `kairos recommend` command."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

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
from model.clock import now
from model.history import Query
from model.inference.answers import Constraints
from training.data.dataset import Dataset
from training.data.sources import is_database, read_events

_SCHEMA = pl.Schema(
    {
        "user_id": pl.String(),
        "rank": pl.Int64(),
        "item_id": pl.String(),
        "title": pl.String(),
        "score": pl.Float64(),
        "reason": pl.String(),
    }
)
_PARTS = pl.List(
    pl.Struct(
        {
            "name": pl.String(),
            "share": pl.Float64(),
            "terms": pl.List(pl.Struct({"name": pl.String(), "effect": pl.Float64()})),
        }
    )
)


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
        rows: list[tuple[str, int, str, str | None, float, str]] = []
        parts: list[list[dict[str, Any]] | None] = []
        with show_row_progress("recommend", len(dataset.user_ids)) as advance:
            for user, user_id in enumerate(dataset.user_ids):
                query = Query.as_of(dataset.history(user), instant, user_id=user_id)
                answer = predictor.recommend(query, constraints, explain=explain)
                rows += [
                    (
                        user_id,
                        rank,
                        item.item_id,
                        predictor.catalog.title(item.row),
                        item.score,
                        item.reason,
                    )
                    for rank, item in enumerate(answer.items, start=1)
                ]
                parts += [
                    None if item.parts is None else [asdict(part) for part in item.parts]
                    for item in answer.items
                ]
                advance(1)
        table = pl.DataFrame(rows, schema=_SCHEMA, orient="row").with_columns(
            model_version=pl.lit(predictor.version),
            query_time=pl.lit(instant).cast(pl.Datetime("us", "UTC")),
        )
        if explain:
            table = table.with_columns(pl.Series("parts", parts, dtype=_PARTS))
        table.write_parquet(output)
        print_message(f"{len(dataset.user_ids)} users, {len(rows)} rows")
        typer.echo(output)


def _read_time(*sources: str | None) -> int:
    """Read the time of the first source that is a database; this machine's if none is."""
    from app.db.clock import read_database_time  # noqa: PLC0415 - the service's modules load slowly

    for source in sources:
        if source is not None and is_database(source):
            return read_database_time(source)
    return now()
