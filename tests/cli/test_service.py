"""What goes into the service, and what comes out of it."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from app.settings import Settings
from cli.main import app
from model.clock import to_datetime
from model.store.store import BundleStore
from tests.app.client import running
from tests.cli.conftest import World, kairos
from training.config import RunConfig
from training.data.dataset import Dataset
from training.data.sources import read_events
from training.data.split import Questions
from training.evaluation.scoring import score_questions
from training.run import build_dataset

COMMANDS = [str(command.name) for command in app.registered_commands]


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'kairos.db'}"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_what_it_does(command: str) -> None:
    assert "Usage: " in kairos(command, "--help").output


def test_importing_events_twice_adds_nothing(world: World, database: str) -> None:
    first = kairos("import-events", world.events, "--database", database).stdout
    again = kairos("import-events", world.events, "--database", database).stdout
    assert first == "240 events stored, 0 known already\n"
    assert again == "0 events stored, 240 known already\n"


def test_items_are_imported(world: World, database: str) -> None:
    assert kairos("import-items", world.items, "--database", database).stdout == "24 items stored\n"


@pytest.mark.parametrize("url", ["mysql://host/name", "kairos.db"])
def test_a_database_kairos_does_not_run_on_is_refused(world: World, url: str) -> None:
    refusal = kairos("import-events", world.events, "--database", url, exit_code=1).output
    assert "sqlite:///path/to/file or postgresql://" in refusal


def test_a_setting_that_does_not_fit_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAIROS_PORT", "http")
    refusal = kairos("serve", exit_code=1).output
    assert "KAIROS_PORT: input should be a valid integer" in refusal
    assert len(refusal.splitlines()) == 1


def test_the_description_is_the_snapshot() -> None:
    printed = kairos("openapi").stdout
    assert json.loads(printed) == json.loads(Path("docs/openapi.json").read_text())


def test_a_history_is_scored_alike_in_training_and_over_http(
    world: World, store: Path, database: str
) -> None:
    config = RunConfig.read(world.recipe)
    predictor = BundleStore(store).open()
    split = config.split.split(build_dataset(config, read_events(world.events), None), "next_event")
    split = split.reindex(predictor.catalog, predictor.bundle.manifest.recommender.actions)
    expected = np.empty((len(split.test), len(predictor.catalog) + 1))
    for block in score_questions(
        predictor.bundle.recommender, split.dataset, split.test, max_history=6
    ):
        expected[block.questions] = block.scores.numpy()
    lengths = set()
    with running(Settings(database_url=database, bundle_store=store)) as client:
        for number, query_time in enumerate(split.test.query_times.tolist()):
            history = known_history(split.dataset, split.test, number)
            asked = {
                "history": history,
                "query_time": to_datetime(query_time).isoformat(),
                "exclude_seen": False,
                "n": len(predictor.catalog),
            }
            items = client.post("/v1/recommendations", asked).json()["items"]
            rows = [predictor.catalog.row(item["item_id"]) for item in items]
            assert {*rows} == {*range(1, len(predictor.catalog) + 1)}
            assert [item["score"] for item in items] == pytest.approx(
                expected[number, rows].tolist(), abs=1e-5
            )
            lengths.add(len(history))
    assert len(split.test) >= 10
    assert max(lengths) > 6  # longer than what the model reads


def known_history(dataset: Dataset, questions: Questions, number: int) -> list[dict[str, str]]:
    """The events before a question that the catalogue knows, as a request sends them."""
    first = int(dataset.offsets[questions.users[number]])
    return [
        {
            "item_id": dataset.catalog.item_id(int(dataset.rows[event])),
            "timestamp": to_datetime(int(dataset.times[event])).isoformat(),
            "action": "event",
        }
        for event in range(first, int(questions.ends[number]))
        if dataset.rows[event]
    ]


def test_the_demo_fills_trains_and_publishes(world: World, tmp_path: Path) -> None:
    demo = [
        *("demo", "--no-serve", "--directory", tmp_path, "--recipe", world.recipe),
        *("--events", world.events, "--items", world.items),
    ]
    kairos(*demo)
    current = BundleStore(tmp_path / "bundles").current()
    assert current is not None
    stored = read_events(f"sqlite:///{tmp_path / 'kairos.db'}")
    assert stored.equals(pl.read_parquet(world.events))
    again = kairos(*demo).output
    assert "train" not in again
    assert BundleStore(tmp_path / "bundles").current() == current
