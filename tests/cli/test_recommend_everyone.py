"""`kairos prepare`, and `kairos recommend --engine` over its shards."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from app.settings import Settings
from model.clock import from_datetime, now, to_datetime
from model.history import Event, Query
from model.inference.answers import Constraints
from model.store.store import BundleStore
from tests.app.client import running
from tests.cli.world import World, kairos
from training.preparation.events import PreparedEvents
from training.recommendations import MANIFEST

QUERY_TIME = "2024-02-01T00:00:00Z"


@pytest.fixture(scope="module")
def prepared(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("prepared")
    kairos("prepare", world.events, directory, "--shards", "7")
    return directory


def recommend(events: Path | str, store: Path, output: Path, *options: str) -> pl.DataFrame:
    kairos(
        *("recommend", "--events", events, "--store", store, "--output", output),
        *("--engine", "local", "--n", "6", *options),
    )
    return pl.read_parquet(output / "*.parquet")


def stamps(output: Path) -> dict[str, int]:
    return {file.name: file.stat().st_mtime_ns for file in output.glob("*.parquet")}


def test_each_user_has_one_row_with_the_answer_of_the_bundle(
    world: World, store: Path, prepared: Path, tmp_path: Path
) -> None:
    table = recommend(prepared, store, tmp_path, "--query-time", QUERY_TIME)
    events = pl.read_parquet(world.events)
    assert sorted(table["user_id"]) == sorted(events["user_id"].unique())
    predictor = BundleStore(store).open()
    assert table["model_version"].unique().to_list() == [predictor.version]
    instant = from_datetime(table["query_time"][0])
    for user_id, item_ids, scores, reasons, *_ in table.iter_rows():
        own = events.filter(pl.col("user_id") == user_id)
        history = own.select("item_id", pl.col("timestamp").to_physical(), "action").rows()
        query = Query.as_of([Event(*event) for event in history], instant, user_id=user_id)
        items = predictor.recommend(query, Constraints(n=6)).items
        assert item_ids == [item.item_id for item in items]
        assert scores == [item.score for item in items]  # to the last bit
        assert reasons == [item.reason for item in items]


def test_answers_are_those_of_the_single_file(
    world: World, store: Path, prepared: Path, tmp_path: Path
) -> None:
    file = tmp_path / "top.parquet"
    kairos(
        *("recommend", "--events", world.events, "--store", store, "--output", file),
        *("--n", "6", "--query-time", QUERY_TIME),
    )
    by_user = (
        pl.read_parquet(file)
        .group_by("user_id", "model_version", "query_time")
        .agg(item_ids="item_id", scores=pl.col("score").cast(pl.Float32), reasons="reason")
    )
    table = recommend(prepared, store, tmp_path / "shards", "--query-time", QUERY_TIME)
    assert table.sort("user_id").equals(by_user.select(table.columns).sort("user_id"))


def test_answers_are_those_of_the_service(store: Path, world: World, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'kairos.db'}"
    kairos("migrate", "--database", url)
    kairos("import-events", world.events, "--database", url)
    table = recommend(url, store, tmp_path / "top", "--query-time", QUERY_TIME)
    settings = Settings(database_url=url, bundle_store=store)
    with running(settings) as client:
        for user_id, item_ids, scores, reasons, *_ in table.iter_rows():
            request = {"user_id": user_id, "n": 6, "query_time": QUERY_TIME, "exclude_seen": True}
            items = client.post("/v1/recommendations", request).json()["items"]
            assert [item["item_id"] for item in items] == item_ids
            assert [item["score"] for item in items] == scores  # to the last bit
            assert [item["reason"] for item in items] == reasons
    assert len(table) == 30


def test_a_second_run_keeps_what_is_the_same(store: Path, prepared: Path, tmp_path: Path) -> None:
    first = recommend(prepared, store, tmp_path, "--query-time", QUERY_TIME)
    before = stamps(tmp_path)
    assert recommend(prepared, store, tmp_path, "--query-time", QUERY_TIME).equals(first)
    assert stamps(tmp_path) == before
    (tmp_path / "00003.parquet").unlink()
    assert recommend(prepared, store, tmp_path, "--query-time", QUERY_TIME).equals(first)
    changed = {name for name, at in stamps(tmp_path).items() if before[name] != at}
    assert changed == {"00003.parquet"}


def test_another_request_replaces_every_file(store: Path, prepared: Path, tmp_path: Path) -> None:
    first = recommend(prepared, store, tmp_path, "--query-time", QUERY_TIME)
    later = recommend(prepared, store, tmp_path, "--query-time", "2024-03-01T00:00:00Z")
    assert later["query_time"].n_unique() == 1
    assert not later["scores"].equals(first["scores"])
    assert len(later) == len(first)


def test_a_killed_run_goes_on_at_its_query_time(
    store: Path, prepared: Path, tmp_path: Path
) -> None:
    arguments = [
        *("recommend", "--events", prepared, "--store", store, "--output", tmp_path),
        *("--engine", "local", "--n", "6"),
    ]
    # Killed while the fourth file is written: its content is in a file of another name.
    code = (
        "import os, pathlib, signal\n"
        "replace, calls = pathlib.Path.replace, []\n"
        "def stop(self, target):\n"
        "    calls.append(str(target).endswith('.parquet'))\n"
        "    if sum(calls) == 4: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return replace(self, target)\n"
        "pathlib.Path.replace = stop\n"
        "from cli.main import app; app()"
    )
    began = now()
    killed = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], check=False)
    ended = now()
    assert killed.returncode == -signal.SIGKILL
    written = stamps(tmp_path)
    assert len(written) == 3
    assert not (tmp_path / MANIFEST).exists()
    kairos(*arguments)
    assert written.items() <= stamps(tmp_path).items()
    table = pl.read_parquet(tmp_path / "*.parquet")
    assert table["user_id"].n_unique() == len(table) == 30
    (instant,) = table["query_time"].unique()
    assert to_datetime(began) <= instant <= to_datetime(ended)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {*(f"{number:05}.parquet" for number in range(7)), MANIFEST}


def test_prepared_events_are_trained_on(world: World, run: Path, tmp_path: Path) -> None:
    kairos("prepare", world.events, tmp_path / "prepared", "--shards", "2")
    arguments = world.train_arguments(tmp_path / "run")
    arguments[arguments.index(str(world.events))] = str(tmp_path / "prepared")
    kairos(*arguments)
    report = (tmp_path / "run" / "report.json").read_bytes()
    assert report == (run / "report.json").read_bytes()


def test_a_bundle_is_evaluated_on_prepared_events(world: World, run: Path, prepared: Path) -> None:
    reports = [
        kairos("evaluate", "--events", events, "--bundle", run).output
        for events in (prepared, world.events)
    ]
    assert "counting" in reports[0]
    assert reports[0] == reports[1]


def test_several_processes_write_no_single_file(store: Path, world: World, tmp_path: Path) -> None:
    output = kairos(
        *("recommend", "--events", world.events, "--store", store),
        *("--output", tmp_path / "top.parquet", "--workers", 2),
        exit_code=1,
    ).output
    assert "add --engine local, or leave out --workers" in output


def test_parts_of_scores_are_not_written_in_shards(
    store: Path, prepared: Path, tmp_path: Path
) -> None:
    output = kairos(
        *("recommend", "--events", prepared, "--store", store, "--output", tmp_path / "top"),
        *("--engine", "local", "--explain"),
        exit_code=1,
    ).output
    assert "leave out --engine or --explain" in output


def test_prepared_events_below_the_output_stay(
    store: Path, prepared: Path, world: World, tmp_path: Path
) -> None:
    shutil.copytree(prepared, tmp_path / "events")
    recommend(str(world.events), store, tmp_path, "--query-time", QUERY_TIME)
    assert PreparedEvents.open(str(tmp_path / "events")).manifest.users == 30
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"00000.parquet", MANIFEST, "events"}


def test_an_output_of_other_files_is_refused(store: Path, prepared: Path, world: World) -> None:
    output = kairos(
        *("recommend", "--events", prepared, "--store", store, "--output", world.events.parent),
        *("--engine", "local"),
        exit_code=1,
    ).output
    assert "name a new one" in output
    assert world.events.exists()
