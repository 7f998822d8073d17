"""The service against the command line: settings, OpenAPI, scores; help of every command."""

import inspect
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cli.main
from app.settings import Settings
from model.clock import to_datetime
from model.store.store import BundleStore
from tests.app.client import running
from tests.cli.world import World, kairos
from training.config import RunConfig
from training.data.dataset import Dataset
from training.data.sources import read_events
from training.data.split import Questions
from training.evaluation.scoring import score_questions
from training.run import build_dataset, split_dataset

COMMANDS = [name for name, _, _ in cli.main.COMMANDS]


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'kairos.db'}"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help_text(command: str) -> None:
    assert "Usage: " in kairos(command, "--help").output


@pytest.mark.parametrize(("command", "summary"), [(one[0], one[2]) for one in cli.main.COMMANDS])
def test_the_list_of_commands_states_the_summary_of_each(command: str, summary: str) -> None:
    first, *_ = inspect.cleandoc(cli.main.import_command(command).help).split("\n\n")
    assert first.replace("\n", " ") == summary


def test_the_help_imports_no_subcommand_and_nothing_slow() -> None:
    listing = (
        "import sys, cli.main\ntry: cli.main.app(['--help'])\nexcept SystemExit: pass\n"
        "print('IMPORTED', *sys.modules)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", listing], capture_output=True, text=True, check=True
    ).stdout
    help_text, _, modules = printed.partition("IMPORTED")
    assert all(command in help_text for command in COMMANDS)
    slow = {"torch", "numpy", "pydantic", "sqlalchemy", "rich", "app", "model"}
    assert not slow & set(modules.split())


def test_one_machine_imports_nothing_that_several_need() -> None:
    listing = (
        "import sys, app.main, app.server, kairos, cli.main\n"
        "kairos.fit, kairos.load, kairos.Model\n"
        "for name, *_ in cli.main.COMMANDS: cli.main.import_command(name)\n"
        "print(*sys.modules)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", listing], capture_output=True, text=True, check=True
    ).stdout
    imported = set(printed.split())
    assert "training.run" in imported
    assert not {"ray", "s3fs", "fsspec", "aiobotocore", "botocore", "boto3"} & imported


def test_an_invalid_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAIROS_PORT", "http")
    output = kairos("serve", exit_code=1).output
    assert "KAIROS_PORT: input should be a valid integer" in output
    assert len(output.splitlines()) == 1


def test_openapi_prints_the_snapshot() -> None:
    printed = kairos("openapi").stdout
    assert json.loads(printed) == json.loads(Path("docs/openapi.json").read_text())


@pytest.mark.slow
def test_training_and_http_compute_the_same_scores(
    world: World, store: Path, database: str
) -> None:
    config = RunConfig.read(world.recipe)
    predictor = BundleStore(store).open()
    whole = build_dataset(config, read_events(world.events), None)
    actions = predictor.bundle.manifest.recommender.actions
    split = split_dataset(config, whole)
    split = split.reindex(whole, "next_event", predictor.catalog, actions)
    expected = np.empty((len(split.test), len(predictor.catalog) + 1))
    for block in score_questions(
        predictor.bundle.recommender, split.dataset, split.test, max_history=6
    ):
        expected[block.questions] = block.scores.numpy()
    lengths = set()
    with running(Settings(database_url=database, bundle_store=store)) as client:
        for number, query_time in enumerate(split.test.query_times.tolist()):
            history = known_history(split.dataset, split.test, number)
            request = {
                "history": history,
                "query_time": to_datetime(query_time).isoformat(),
                "exclude_seen": False,
                "n": len(predictor.catalog),
            }
            items = client.post("/v1/recommendations", request).json()["items"]
            rows = [predictor.catalog.row(item["item_id"]) for item in items]
            assert {*rows} == {*range(1, len(predictor.catalog) + 1)}
            assert [item["score"] for item in items] == pytest.approx(
                expected[number, rows].tolist(), abs=1e-5
            )
            lengths.add(len(history))
    assert len(split.test) >= 10
    assert max(lengths) > 6  # longer than the model's max_history


def known_history(dataset: Dataset, questions: Questions, number: int) -> list[dict[str, str]]:
    """Returns the events before a test question, without unknown items, as request fields."""
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
