"""The answers of a model as frames."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

import polars as pl

from model.catalog import Catalog
from model.inference.answers import Recommendation, ScoredItem, Sweep
from training.data.columns import EVENT_SCHEMA
from training.evaluation.report import MODEL, Report

INSTANT = EVENT_SCHEMA["timestamp"]

RECOMMENDATIONS = pl.Schema(
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
_ATTENTION = pl.Schema(
    {
        "query_time": INSTANT,
        "timestamp": INSTANT,
        "item_id": pl.String(),
        "title": pl.String(),
        "action": pl.String(),
        "weight": pl.Float64(),
    }
)
_METRICS = ("hit_rate@10", "ndcg@10", "recall@10", "mrr", "accuracy")


def build_recommendation_table(
    catalog: Catalog, answers: Iterable[tuple[str | None, Recommendation]], *, explain: bool
) -> pl.DataFrame:
    """List the items of recommendations, one per row.

    Args:
        answers: the user of each recommendation, and the recommendation.
        explain: whether to add a column `parts` with the parts of each score; null without any.
    """
    rows: list[tuple[str | None, int, str, str | None, float, str]] = []
    parts: list[list[dict[str, Any]] | None] = []
    for user_id, answer in answers:
        rows += [(user_id, *cells) for cells in _list_cells(catalog, answer.items)]
        parts += [
            None if item.parts is None else [asdict(part) for part in item.parts]
            for item in answer.items
        ]
    table = pl.DataFrame(rows, schema=RECOMMENDATIONS, orient="row")
    return table.with_columns(pl.Series("parts", parts, dtype=_PARTS)) if explain else table


def build_item_table(catalog: Catalog, items: Iterable[ScoredItem]) -> pl.DataFrame:
    """List similar items, one per row."""
    schema = {name: RECOMMENDATIONS[name] for name in ("rank", "item_id", "title", "score")}
    rows = [cells[:-1] for cells in _list_cells(catalog, items)]
    return pl.DataFrame(rows, schema=schema, orient="row")


def _list_cells(
    catalog: Catalog, items: Iterable[ScoredItem]
) -> Iterator[tuple[int, str, str | None, float, str]]:
    for rank, item in enumerate(items, start=1):
        yield rank, item.item_id, catalog.title(item.row), item.score, item.reason


def build_attention_table(catalog: Catalog, sweep: Sweep) -> pl.DataFrame:
    """List the attention weight of every event at every query time after it.

    The weight is null where the model no longer reads the event, because it reads later ones.
    """
    rows: list[tuple[int, int, str, str | None, str | None, float | None]] = []
    for instant in sweep.instants:
        if instant.weights is None:
            continue
        end = instant.first_event + len(instant.weights)
        # What follows the events that an instant reads has not happened by then.
        weights = (None,) * instant.first_event + instant.weights
        rows += [
            (
                instant.query_time,
                event.at,
                event.item_id,
                catalog.title(row),
                event.action,
                weight,
            )
            for event, row, weight in zip(
                sweep.events[:end], sweep.rows[:end], weights, strict=True
            )
        ]
    as_integers = {**_ATTENTION, "query_time": pl.Int64(), "timestamp": pl.Int64()}
    return pl.DataFrame(rows, schema=as_integers, orient="row").cast(dict(_ATTENTION))  # type: ignore[arg-type]


def sum_baskets(attention: pl.DataFrame) -> pl.DataFrame:
    """Sum the attention weights of each basket: the events of one instant.

    `lift` compares a basket's weight with what it would have if all events that are read had the
    same: 1 is no preference, 2 twice as much.

    Args:
        attention: from `build_attention_table`.
    """
    at_query_time = pl.col("weight").sum().over("query_time")
    read = pl.col("events").sum().over("query_time")
    return (
        attention.filter(pl.col("weight").is_not_null())
        .group_by("query_time", "timestamp", maintain_order=True)
        .agg(events=pl.len().cast(pl.Int64), weight=pl.col("weight").sum())
        .with_columns(lift=pl.col("weight") / at_query_time / (pl.col("events") / read))
    )


def build_metric_table(report: Report) -> pl.DataFrame:
    """List the metrics of every ranker on the same test questions, and the model's lead.

    `lead` is in ndcg@10 over the ranker of the row, with the bounds of a 95 % interval.
    """
    rows = []
    for ranker, metrics in report.rows.items():
        ahead = None if ranker == MODEL else report.ahead.get(ranker)
        lead = (None, None, None) if ahead is None else ahead
        rows.append((ranker, *(metrics[name] for name in _METRICS), *lead))
    names = (*_METRICS, "lead", "lead_low", "lead_high")
    schema = {"ranker": pl.String(), **dict.fromkeys(names, pl.Float64())}
    return pl.DataFrame(rows, schema=schema, orient="row")
