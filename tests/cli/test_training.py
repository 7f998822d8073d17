"""What learns: train, resume, evaluate."""

import dataclasses
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.published import newest_bundle
from model.bundle.manifest import WEIGHTS
from model.errors import BundleError
from model.store.opening import open_predictor
from tests.cli.conftest import World, kairos
from training.config import RunConfig
from training.fitting.checkpoint import CHECKPOINT


def test_a_run_leaves_a_report_and_a_bundle_that_opens(run: Path) -> None:
    report = json.loads((run / "report.json").read_text())
    predictor = open_predictor(newest_bundle(run))
    assert predictor.bundle.manifest.metrics["ndcg@10"] == report["rows"]["model"]["ndcg@10"]
    assert predictor.catalog.title(1) == f"Title of {predictor.catalog.item_id(1)}"


def test_the_seed_can_be_given(world: World, tmp_path: Path) -> None:
    kairos(*world.training(tmp_path), "--seed", "7")
    recipe = open_predictor(newest_bundle(tmp_path)).bundle.manifest.provenance["recipe"]
    assert RunConfig.model_validate(recipe).fit.seed == 7


def test_a_run_killed_and_begun_again_ends_as_if_it_had_not_been(
    world: World, run: Path, tmp_path: Path
) -> None:
    kill_after(["epoch 3/"], world.training(tmp_path))
    assert not (tmp_path / "report.json").exists()
    said = kairos(*world.training(tmp_path)).output
    assert "epoch 3/" not in said
    assert "epoch 30/" in said
    assert outcome(tmp_path) == outcome(run)


def test_a_run_killed_while_it_refits_ends_as_if_it_had_not_been(
    world: World, tmp_path: Path
) -> None:
    recipe = tmp_path / "refit.toml"
    recipe.write_text(world.recipe.read_text() + "refit = true\n")
    refitting = dataclasses.replace(world, recipe=recipe)
    unbroken, killed = tmp_path / "unbroken", tmp_path / "killed"
    kairos(*refitting.training(unbroken))
    kill_after(["epoch 30/", "epoch 1/"], refitting.training(killed))
    with pytest.raises(BundleError):
        newest_bundle(killed)
    kairos(*refitting.training(killed))
    assert outcome(killed) == outcome(unbroken)


def kill_after(lines: list[str], arguments: list[str]) -> None:
    """Run a command as a process of its own, and kill it once it has said all this, in order."""
    command = [sys.executable, "-c", "from cli.main import app; app()", *arguments]
    awaited = iter(lines)
    wanted = next(awaited, None)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if wanted is not None and line.startswith(wanted):
                wanted = next(awaited, None)
            if wanted is None:
                process.send_signal(signal.SIGKILL)
                break
        said = process.stderr.read()
    assert process.returncode == -signal.SIGKILL, said


def outcome(output: Path) -> tuple[bytes, bytes]:
    """The weights and the report that a run ended with."""
    return (newest_bundle(output) / WEIGHTS).read_bytes(), (output / "report.json").read_bytes()


def test_a_checkpoint_of_another_recipe_is_refused(world: World, run: Path) -> None:
    refusal = kairos(*world.training(run), "--seed", "8", exit_code=1).output
    assert "a run resumes only with the recipe and events it began with" in refusal
    assert "choose another output directory" in refusal


def test_a_damaged_checkpoint_is_refused(world: World, tmp_path: Path) -> None:
    (tmp_path / CHECKPOINT).write_bytes(b"half")
    refusal = kairos(*world.training(tmp_path), exit_code=1).output
    assert "delete it to begin anew" in refusal


@pytest.mark.parametrize("device", ["cuda:99", "nonsense"])
def test_a_device_that_is_not_there_is_refused(world: World, tmp_path: Path, device: str) -> None:
    refusal = kairos(*world.training(tmp_path), "--device", device, exit_code=1).output
    assert f"{device!r} is not" in refusal


def test_evaluating_the_bundle_prints_what_the_report_says(world: World, run: Path) -> None:
    printed = kairos(
        *("evaluate", "--events", world.events, "--recipe", world.recipe),
        *("--bundle", run, "--threads", "1"),
    ).output
    for name, row in json.loads((run / "report.json").read_text())["rows"].items():
        (line,) = [line for line in printed.splitlines() if line.split()[1:2] == [name]]
        expected = [f"{row[column]:.4f}" for column in ("hit_rate@10", "ndcg@10", "recall@10")]
        assert [cell.strip() for cell in line.strip("│").split("│")][1:4] == expected


def test_an_unknown_recipe_names_those_that_ship(world: World, tmp_path: Path) -> None:
    refusal = kairos(
        "train", "--events", world.events, "--recipe", "dmeo", "--output", tmp_path, exit_code=1
    ).output
    assert "'demo'" in refusal
    assert "dmeo" in refusal


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("[fit]\nepohcs = 3", "fit.epohcs: extra inputs are not permitted (got 3)"),
        ("[fit]\nepochs = 0", "fit.epochs: input should be greater than 0 (got 0)"),
        ("[fit", "must be TOML"),
    ],
)
def test_a_recipe_that_does_not_fit_is_told_on_one_line(
    world: World, tmp_path: Path, line: str, told: str
) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text(line)
    refusal = kairos(
        "train", "--events", world.events, "--recipe", recipe, "--output", tmp_path, exit_code=1
    ).output
    assert told in refusal
    assert len(refusal.splitlines()) == 1


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ("u,i,2026-01-31T12:00:00\n", "line 2, column 'timestamp': an instant needs an offset"),
        ("u,i,1769860800\nu,,1769860800\n", "line 3, column 'item_id': an id must not be empty"),
    ],
)
@pytest.mark.parametrize("command", ["train", "import-events"])
def test_events_that_cannot_be_read_are_named_on_one_line(
    world: World, tmp_path: Path, rows: str, told: str, command: str
) -> None:
    file = tmp_path / "broken.csv"
    file.write_text("user_id,item_id,timestamp\n" + rows)
    arguments: list[str | Path] = {
        "train": ["--events", file, "--recipe", world.recipe, "--output", tmp_path],
        "import-events": [file, "--database", f"sqlite:///{tmp_path / 'kairos.db'}"],
    }[command]
    refusal = kairos(command, *arguments, exit_code=1).output
    (line,) = refusal.splitlines()
    assert f"{file}, {told}" in line
