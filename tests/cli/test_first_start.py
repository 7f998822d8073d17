"""The parts of a first start: the customer of its link, its directory, and what it refuses."""

import os
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

from cli import demo
from cli.database_creation import lock_directory
from cli.first_start import CUSTOMER_PAGE, FirstStart, add_view, describe_customer
from model.errors import KairosError
from tests.cli.world import kairos
from tests.training.inspection.event_tables import DAY, draw_events, make_events
from training.data.sources import read_events


def test_the_customer_of_the_demo_has_regular_and_varied_repeats() -> None:
    events = read_events(demo.DEMO / "events.parquet")
    view = describe_customer(events)
    own = events.filter(user_id=view["user"])
    query_time = pl.Series([view["query_time"]]).str.to_datetime(time_zone="UTC")[0]
    assert own["timestamp"].dt.date().n_unique() >= 20
    assert own["item_id"].n_unique() >= 40
    assert own["timestamp"].max() <= query_time <= events["timestamp"].max()
    assert query_time - own["timestamp"].max() <= timedelta(days=7)


def test_else_the_customer_of_most_days_is_chosen() -> None:
    events = make_events([("a", "i", 0), ("b", "i", 0), ("b", "j", DAY), ("c", "j", DAY)])
    assert describe_customer(events) == {"user": "b", "query_time": "2024-01-02T00:00:00Z"}


def test_the_link_keeps_its_token_and_points_at_the_customer() -> None:
    view = {"user": "a b", "query_time": "2024-01-02T00:00:00Z"}
    fragment = "user=a+b&query_time=2024-01-02T00%3A00%3A00Z"
    base = "http://127.0.0.1:8000/dashboard/"
    assert add_view(base, view) == f"{base}{CUSTOMER_PAGE}#{fragment}"
    assert add_view(f"{base}#token=t", view) == f"{base}{CUSTOMER_PAGE}#token=t&{fragment}"


def test_other_events_of_a_file_get_another_directory(tmp_path: Path) -> None:
    file = tmp_path / "log.parquet"
    directories = set()
    for seed in (0, 0, 1):
        draw_events(events=200, seed=seed).write_parquet(file)
        directories.add(FirstStart.of_file(tmp_path / "var", str(file), None).directory)
    assert len(directories) == 2


def test_a_database_and_a_file_without_events_are_refused(tmp_path: Path) -> None:
    database = tmp_path / "kairos.db"
    database.touch()
    with pytest.raises(KairosError, match="--events is a file"):
        FirstStart.of_file(tmp_path, f"sqlite:///{database}", None)
    empty = tmp_path / "empty.csv"
    empty.write_text("user_id,item_id,timestamp\n")
    with pytest.raises(KairosError, match="events"):
        FirstStart.of_file(tmp_path, str(empty), None)


@pytest.mark.parametrize("command", ["demo", "serve"])
def test_a_second_start_in_a_directory_is_refused(command: str, tmp_path: Path) -> None:
    file, var = tmp_path / "log.parquet", tmp_path / "var"
    draw_events(events=200).write_parquet(file)
    directory = var if command == "demo" else FirstStart.of_file(var, str(file), None).directory
    before = set(directory.glob("*"))
    with lock_directory(directory):
        output = kairos(command, "--events", file, "--directory", var, exit_code=1).output
    assert "only one process may serve and train in a directory" in output
    assert f"process {os.getpid()}" in output
    assert set(directory.glob("*")) - before == {directory / ".first-start"}


def test_a_broken_file_gets_the_error_of_inspect(tmp_path: Path) -> None:
    broken = tmp_path / "broken.csv"
    broken.write_text("user_id,item_id,timestamp\nu,i,soon\n")
    served = kairos("serve", "--events", broken, "--directory", tmp_path / "var", exit_code=1)
    inspected = kairos("inspect", broken, exit_code=1)
    assert served.output == inspected.output
    assert not (tmp_path / "var").exists()
