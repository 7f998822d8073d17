"""The `kairos recommend` command."""

import os
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from model.clock import from_datetime
from model.history import Event, Query
from model.inference.answers import Constraints
from model.store.store import BundleStore
from model.wide import WideConfig
from tests.app import tiny_bundle
from tests.cli.world import World, kairos

QUERY_TIME = "2024-02-01T00:00:00Z"


def test_an_empty_store_names_the_commands_to_run(world: World, tmp_path: Path) -> None:
    output = kairos(
        *("recommend", "--events", world.events, "--store", tmp_path / "none"),
        *("--output", tmp_path / "top.parquet"),
        exit_code=1,
    ).output
    assert "run kairos train and kairos publish" in output


def test_the_default_query_time_is_that_of_the_database(
    world: World, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "top.parquet"
    instant = datetime(2031, 2, 3, tzinfo=UTC)
    monkeypatch.setattr("app.db.clock.read_database_time", lambda _: from_datetime(instant))
    kairos(
        *("recommend", "--events", world.events, "--erased", os.environ["KAIROS_DATABASE_URL"]),
        *("--store", store, "--output", output),
    )
    assert pl.read_parquet(output)["query_time"].unique().to_list() == [instant]


def test_batch_recommendations_equal_those_of_the_bundle(
    world: World, store: Path, tmp_path: Path
) -> None:
    output = tmp_path / "top.parquet"
    kairos(
        *("recommend", "--events", world.events, "--store", store, "--output", output),
        *("--n", "4", "--query-time", QUERY_TIME),
    )
    table = pl.read_parquet(output)
    assert dict(table.schema) == {
        "user_id": pl.String(),
        "rank": pl.Int64(),
        "item_id": pl.String(),
        "title": pl.String(),
        "score": pl.Float64(),
        "reason": pl.String(),
        "model_version": pl.String(),
        "query_time": pl.Datetime("us", "UTC"),
    }
    predictor = BundleStore(store).open()
    assert table["model_version"].unique().to_list() == [predictor.version]
    events = pl.read_parquet(world.events)
    instant = from_datetime(table["query_time"][0])
    for (user_id,), rows in table.group_by("user_id", maintain_order=True):
        own = events.filter(pl.col("user_id") == user_id)
        history = own.select("item_id", pl.col("timestamp").to_physical(), "action").rows()
        answer = predictor.recommend(
            Query.as_of([Event(*event) for event in history], instant), Constraints(n=4)
        )
        assert rows["rank"].to_list() == [1, 2, 3, 4]
        assert rows["item_id"].to_list() == [item.item_id for item in answer.items]
        assert rows["title"].to_list() == [
            predictor.catalog.title(item.row) for item in answer.items
        ]
        assert rows["score"].to_list() == pytest.approx([item.score for item in answer.items])
    assert table["user_id"].n_unique() == events["user_id"].n_unique()


def test_a_table_names_the_parts_of_scores_on_request(world: World, tmp_path: Path) -> None:
    version = tiny_bundle.publish(tmp_path / "store", seed=0, wide=WideConfig())
    output = tmp_path / "top.parquet"
    kairos(
        *("recommend", "--events", world.events, "--store", tmp_path / "store"),
        *("--output", output, "--n", "2", "--query-time", QUERY_TIME, "--explain"),
    )
    table = pl.read_parquet(output).filter(pl.col("reason") == "model")
    assert table["model_version"].unique().to_list() == [version]
    assert table.height
    for parts in table["parts"].to_list():
        assert {part["name"] for part in parts} == {"base", "repeats", "followers"}
        assert sum(part["share"] for part in parts) == pytest.approx(1)
        names = {term["name"] for part in parts for term in part["terms"]}
        assert names == {"encoder", "popularity", "calendar"}


@pytest.mark.slow
def test_titles_may_be_missing(world: World, tmp_path: Path, run: Path) -> None:
    titled = tmp_path / "one.csv"
    titled.write_text("item_id,title\ni19,The only title\n")
    output = tmp_path / "run"
    command = world.train_arguments(output)
    command[command.index(str(world.items))] = str(titled)
    kairos(*command)
    kairos("publish", output, "--store", tmp_path / "store")
    kairos(
        *("recommend", "--events", world.events, "--store", tmp_path / "store", "--n", "19"),
        *("--no-exclude-seen", "--output", tmp_path / "top.parquet"),
    )
    titles = pl.read_parquet(tmp_path / "top.parquet")["title"]
    assert set(titles.unique()) <= {None, "The only title"}


def test_a_query_time_needs_an_offset(world: World, store: Path, tmp_path: Path) -> None:
    output = kairos(
        *("recommend", "--events", world.events, "--store", store),
        *("--output", tmp_path / "top.parquet", "--query-time", "2024-02-01T00:00:00"),
        exit_code=1,
    ).output
    assert "an RFC 3339 instant with an offset" in output
