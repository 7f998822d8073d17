"""The first start on a file: counts serve at once, a trained model later; real processes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import polars as pl
import pytest

from model.store.store import BundleStore
from tests.processes import ROOT, eventually, free_port
from tests.training.ring import ring_world, write_events
from training.data.sources import read_events
from training.retraining.report import RunReport

STARTING_SECONDS = 240.0
"""A start imports the service twice, beside whatever else the machine does."""

RECIPE = """
profile_histories = 0
export_encoder = false
[split]
kind = "by_time"
test = 0.15
validation = 0.15
[encoder]
kind = "self_attention"
dim = 16
heads = 2
layers = 1
feed_forward = 16
max_history = 8
[encoder.time_encoding]
kind = "mercer"
periods = 2
[fit]
epochs = {epochs}
patience = {epochs}
tokens = 400
warmup_steps = 2
learning_rate = 0.02
refit = true
[gate]
questions = 20
p95_seconds = 5.0
may_lose = 1.0
popularity_lead = -1.0
"""


@contextmanager
def running(directory: Path, *command: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A command that serves, and its address; stopped as by Ctrl-C at the end."""
    port = free_port()
    log = directory / f"log-{port}"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "from cli.main import app; app()",
                *command,
                "--port",
                str(port),
            ],
            cwd=ROOT,
            env={**os.environ, "KAIROS_RUNTIME_DIRECTORY": str(directory / "runtime")},
            stderr=stream,
            stdout=stream,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        eventually(lambda: is_ready(process, url, log), within_seconds=STARTING_SECONDS)
        yield process, url
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(30) in {0, -signal.SIGKILL}, log.read_text()


def is_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    try:
        return httpx.get(f"{url}/health/ready", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def serving(url: str, directory: Path) -> str:
    """The kind of the encoder that answers."""
    (token,) = (directory / "runtime").glob("*")
    headers = {"Authorization": f"Bearer {token.read_text()}"}
    answer = httpx.post(
        f"{url}/v1/recommendations",
        json={"user_id": "u1", "n": 3},
        headers=headers,
        trust_env=False,
    ).raise_for_status()
    assert answer.json()["history_used"] > 0
    found = BundleStore(next(directory.glob("**/bundles")))
    return found.read_manifest(answer.json()["model_version"]).recommender.encoder.kind


def list_results(directory: Path) -> list[str]:
    reports = [RunReport.read(file.parent) for file in directory.glob("runs/*/retraining.json")]
    return [report.result for report in reports if report is not None]


@pytest.fixture
def demo(tmp_path: Path) -> list[str]:
    """The command of a demo on tiny events, whose training takes a few seconds."""
    items = tmp_path / "items.jsonl"
    items.write_text(
        "".join(json.dumps({"item_id": f"i{n}", "title": f"{n}"}) + "\n" for n in range(12))
    )
    recipe = tmp_path / "ring.toml"
    recipe.write_text(RECIPE.format(epochs=25))
    return [
        *("demo", "--directory", str(tmp_path / "var"), "--recipe", str(recipe)),
        *("--events", write_events(ring_world(), tmp_path / "events.parquet")),
        *("--items", str(items)),
    ]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_demo_serves_counts_then_the_trained_model(demo: list[str], tmp_path: Path) -> None:
    var = tmp_path / "var"
    checkpoint = "runs/*/checkpoint*"
    with running(tmp_path, *demo) as (process, url):
        assert serving(url, tmp_path) == "counting"
        eventually(lambda: any(var.glob(checkpoint)), within_seconds=STARTING_SECONDS)
        process.kill()
        process.wait()
    assert "promoted" not in list_results(var)
    with running(tmp_path, *demo) as (_, url):
        eventually(
            lambda: serving(url, tmp_path) == "self_attention", within_seconds=STARTING_SECONDS
        )
        eventually(lambda: list_results(var) == ["promoted"])
    runs = {file: file.stat().st_mtime_ns for file in var.glob("runs/*/*")}
    with running(tmp_path, *demo) as (_, url):
        assert serving(url, tmp_path) == "self_attention"
    assert {file: file.stat().st_mtime_ns for file in var.glob("runs/*/*")} == runs


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_strangers_file_gets_a_database_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "my shop.csv"
    ring_world().with_columns(pl.col("timestamp").dt.epoch("s")).write_csv(file)
    command = ("serve", "--events", str(file), "--directory", str(tmp_path / "var"))
    with running(tmp_path, *command) as (_, url):
        assert serving(url, tmp_path) == "counting"
    (directory,) = (tmp_path / "var").iterdir()
    assert directory.name.startswith("my-shop-")
    stored = read_events(f"sqlite:///{directory / 'kairos.db'}")
    assert len(stored) == len(ring_world())
    assert (directory / "recipe.toml").exists()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_five_events_are_served_though_they_are_too_few_to_train(tmp_path: Path) -> None:
    file = tmp_path / "few.csv"
    ring_world(users=1, length=5).with_columns(pl.col("timestamp").dt.epoch("s")).write_csv(file)
    command = ("serve", "--events", str(file), "--directory", str(tmp_path / "var"))
    with running(tmp_path, *command) as (_, url):
        (token,) = (tmp_path / "runtime").glob("*")
        headers = {"Authorization": f"Bearer {token.read_text()}"}
        answer = httpx.post(
            f"{url}/v1/recommendations",
            json={"user_id": "u0", "exclude_seen": False},
            headers=headers,
            trust_env=False,
        ).raise_for_status()
        assert answer.json()["items"]
        with httpx.Client(base_url=url, headers=headers, trust_env=False) as runs:
            eventually(
                lambda: (
                    [one["result"] for one in runs.get("/v1/training-runs").json()["runs"]]
                    in (["failed"], ["kept"])
                )
            )
