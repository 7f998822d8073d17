"""Commands that learn, and ask what was learned: train, evaluate, recommend."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import polars as pl
import torch
import typer

from cli.console import TrainingProgress, console, counting, print_report, reporting_errors
from cli.models import Store
from cli.published import newest_bundle
from model.clock import from_datetime, now
from model.errors import KairosError
from model.history import Query
from model.inference.answers import Constraints
from model.store.opening import open_predictor
from model.store.store import BundleStore
from training.config import RunConfig, shipped_recipes
from training.data.database_source import read_erasures
from training.data.dataset import Dataset
from training.data.erasures import Erasures
from training.data.sources import read_events, read_items
from training.evaluation.report import build_report
from training.run import Outcome, build_dataset, train

Events = Annotated[
    str,
    typer.Option(
        help="Events: a Parquet, CSV, TSV or JSONL file, a directory or glob of them, or the "
        "service's database URL."
    ),
]
Items = Annotated[
    str | None, typer.Option(help="Titles and categories: a file or the database URL.")
]
Erased = Annotated[
    str | None,
    typer.Option(
        help="Leave out users erased from this database URL, where the events come from files. "
        "Events from a database are without its erased users anyway."
    ),
]
Recipe = Annotated[
    str, typer.Option(help=f"A TOML file, or a shipped recipe: {', '.join(shipped_recipes())}.")
]
Threads = Annotated[int, typer.Option(help="Threads for tensor arithmetic.", min=1)]

_ANSWERS = pl.Schema(
    {
        "user_id": pl.String(),
        "rank": pl.Int64(),
        "item_id": pl.String(),
        "title": pl.String(),
        "score": pl.Float64(),
        "reason": pl.String(),
    }
)


def train_command(
    events: Events,
    recipe: Recipe,
    output: Annotated[Path, typer.Option(help="Where checkpoint, report and bundle go.")],
    items: Items = None,
    erased: Erased = None,
    seed: Annotated[int | None, typer.Option(help="Instead of the recipe's seed.")] = None,
    threads: Threads = 2,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
) -> None:
    """Fit a recipe on events, measure it, and write a bundle. Run again to resume."""
    with reporting_errors():
        config = RunConfig.read(recipe)
        if seed is not None:
            config = config.model_copy(update={"fit": config.fit.model_copy(update={"seed": seed})})
        outcome = run_training(
            config,
            events,
            items,
            output,
            threads=threads,
            erasures=_erasures(erased),
            device=device_named(device),
        )
        print_report(outcome.report)
        console.print(
            f"best epoch {outcome.best_epoch}, {outcome.seconds:.0f} s; the bundle is below, "
            "publish it with kairos publish",
            highlight=False,
        )
        typer.echo(outcome.bundle)


def run_training(
    config: RunConfig,
    events: str,
    items: str | None,
    output: Path,
    *,
    threads: int,
    erasures: Erasures | None = None,
    device: torch.device | None = None,
) -> Outcome:
    """Train with a progress bar."""
    torch.set_num_threads(threads)
    table = read_events(events, erasures=erasures)
    titles = None if items is None else read_items(items)
    with TrainingProgress(config.fit.monitor) as progress:
        return train(config, table, titles, output, progress=progress, device=device)


def evaluate_command(
    events: Events,
    recipe: Recipe,
    bundle: Annotated[Path, typer.Option(help="A bundle, or the output directory of train.")],
    erased: Erased = None,
    threads: Threads = 2,
) -> None:
    """Measure a bundle on a recipe's test questions, beside the references."""
    with reporting_errors():
        torch.set_num_threads(threads)
        config = RunConfig.read(recipe)
        opened = open_predictor(newest_bundle(bundle))
        if opened.bundle.manifest.provenance.get("refitted_after_measuring"):
            console.print(
                "[yellow]this bundle was refitted on all events, the test's among them; "
                "its honest figures are those in its manifest[/]"
            )
        described = opened.bundle.manifest.recommender
        table = read_events(events, erasures=_erasures(erased))
        split = config.split.split(build_dataset(config, table, None), config.data.predict)
        report = build_report(
            opened.bundle.recommender,
            split.reindex(opened.catalog, described.actions),
            config.data,
            max_history=opened.bundle.manifest.max_history,
        )
        print_report(report)


def recommend_command(
    events: Events,
    output: Annotated[Path, typer.Option(help="The Parquet file to write.")],
    store: Store = Path("var/bundles"),
    n: Annotated[int, typer.Option(help="Items per user.", min=1, max=500)] = 10,
    query_time: Annotated[
        str | None, typer.Option(help="RFC 3339 instant with an offset; now by default.")
    ] = None,
    exclude_seen: Annotated[bool, typer.Option(help="Leave out what the user has met.")] = True,
    erased: Erased = None,
) -> None:
    """Recommend to every user of an event log at one instant, into a Parquet file.

    One row per item: user_id, rank (1 is best), item_id, title, score, reason ("model" or
    "popular"), model_version, query_time.
    """
    with reporting_errors():
        torch.set_num_threads(1)
        output.parent.mkdir(parents=True, exist_ok=True)  # now, not after hours of work
        instant = now() if query_time is None else _instant(query_time)
        opened = BundleStore(store).open()
        dataset = Dataset.of(read_events(events, erasures=_erasures(erased)))
        constraints = Constraints(n=n, exclude_seen=exclude_seen)
        rows: list[tuple[str, int, str, str | None, float, str]] = []
        with counting("recommend", len(dataset.user_ids)) as count:
            for user, user_id in enumerate(dataset.user_ids):
                query = Query.as_of(dataset.history(user), instant, user_id=user_id)
                answer = opened.recommend(query, constraints)
                rows += [
                    (
                        user_id,
                        rank,
                        item.item_id,
                        opened.catalog.title(item.row),
                        item.score,
                        item.reason,
                    )
                    for rank, item in enumerate(answer.items, start=1)
                ]
                count(1)
        pl.DataFrame(rows, schema=_ANSWERS, orient="row").with_columns(
            model_version=pl.lit(opened.version),
            query_time=pl.lit(instant).cast(pl.Datetime("us", "UTC")),
        ).write_parquet(output)
        console.print(f"{len(dataset.user_ids)} users, {len(rows)} rows", highlight=False)
        typer.echo(output)


def device_named(name: str) -> torch.device:
    """The device of a name.

    Raises:
        KairosError: if torch cannot reach it here.
    """
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise KairosError(
            f"a device is one that torch can reach here, but {name!r} is not; use cpu, or cuda "
            "where a GPU and a torch built for it are there"
        ) from error
    return device


def _erasures(address: str | None) -> Erasures | None:
    return None if address is None else read_erasures(address)


def _instant(text: str) -> int:
    try:
        return from_datetime(datetime.fromisoformat(text))
    except ValueError as error:
        raise KairosError(
            f"a query time is an RFC 3339 instant with an offset, but got {text!r}; "
            "write it like 2011-11-01T09:00:00Z"
        ) from error
