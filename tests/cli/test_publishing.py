"""What is published: publish, recommend."""

from pathlib import Path

import polars as pl
import pytest

from cli.published import newest_bundle
from model.bundle.manifest import MANIFEST
from model.clock import from_datetime
from model.history import Event, Query
from model.inference.answers import Constraints
from model.store.store import BundleStore
from tests.cli.conftest import World, kairos

QUERY_TIME = "2024-02-01T00:00:00Z"


def test_publishing_makes_the_runs_bundle_current(run: Path, store: Path) -> None:
    assert BundleStore(store).current() == newest_bundle(run).name


def test_publishing_again_changes_nothing(run: Path, store: Path) -> None:
    assert kairos("publish", run, "--store", store).output.strip() == newest_bundle(run).name
    assert BundleStore(store).versions() == [newest_bundle(run).name]


def test_a_version_can_be_published_first_and_activated_later(run: Path, tmp_path: Path) -> None:
    version = kairos("publish", run, "--store", tmp_path, "--no-activate").output.strip()
    assert BundleStore(tmp_path).current() is None
    kairos("models", "activate", version, "--store", tmp_path)
    assert BundleStore(tmp_path).current() == version


def test_what_a_killed_run_left_half_written_is_not_published(tmp_path: Path) -> None:
    unfinished = tmp_path / ".bundle"
    unfinished.mkdir()
    (unfinished / MANIFEST).touch()
    refusal = kairos("publish", tmp_path, "--store", tmp_path / "store", exit_code=1).output
    assert "run kairos train first" in refusal


def test_recommending_before_publishing_says_what_to_do(world: World, tmp_path: Path) -> None:
    refusal = kairos(
        *("recommend", "--events", world.events, "--store", tmp_path / "none"),
        *("--output", tmp_path / "top.parquet"),
        exit_code=1,
    ).output
    assert "run kairos train and kairos publish" in refusal


def test_a_batch_answers_what_the_bundle_answers(world: World, store: Path, tmp_path: Path) -> None:
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
        happened = own.select("item_id", pl.col("timestamp").to_physical(), "action").rows()
        answer = predictor.recommend(
            Query.as_of([Event(*event) for event in happened], instant), Constraints(n=4)
        )
        assert rows["rank"].to_list() == [1, 2, 3, 4]
        assert rows["item_id"].to_list() == [item.item_id for item in answer.items]
        assert rows["title"].to_list() == [
            predictor.catalog.title(item.row) for item in answer.items
        ]
        assert rows["score"].to_list() == pytest.approx([item.score for item in answer.items])
    assert table["user_id"].n_unique() == events["user_id"].n_unique()


def test_titles_may_be_missing_for_as_long_as_they_like(
    world: World, tmp_path: Path, run: Path
) -> None:
    titled = tmp_path / "one.csv"
    titled.write_text("item_id,title\ni19,The only title\n")
    output = tmp_path / "run"
    command = world.training(output)
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
    refusal = kairos(
        *("recommend", "--events", world.events, "--store", store),
        *("--output", tmp_path / "top.parquet", "--query-time", "2024-02-01T00:00:00"),
        exit_code=1,
    ).output
    assert "an RFC 3339 instant with an offset" in refusal
