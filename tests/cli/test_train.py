"""The `kairos train` command: runs, resumption, and errors in recipes and events."""

import dataclasses
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from model.bundle.manifest import WEIGHTS
from model.bundle.reading import find_bundle
from model.errors import BundleError
from model.store.opening import open_predictor
from tests.cli.world import World, kairos
from training.config import RunConfig
from training.fitting.checkpoint import CHECKPOINT


def test_a_run_writes_a_report_and_a_bundle(run: Path) -> None:
    report = json.loads((run / "report.json").read_text())
    predictor = open_predictor(find_bundle(run))
    assert predictor.bundle.manifest.metrics["ndcg@10"] == report["rows"]["model"]["ndcg@10"]
    assert predictor.catalog.title(1) == f"Title of {predictor.catalog.item_id(1)}"


@pytest.mark.slow
def test_an_option_replaces_the_seed(world: World, tmp_path: Path) -> None:
    kairos(*world.train_arguments(tmp_path), "--seed", "7")
    recipe = open_predictor(find_bundle(tmp_path)).bundle.manifest.provenance["recipe"]
    assert RunConfig.model_validate(recipe).fit.seed == 7


@pytest.mark.slow
def test_a_killed_run_resumes_with_the_same_result(world: World, run: Path, tmp_path: Path) -> None:
    kill_after(["epoch 3/"], world.train_arguments(tmp_path))
    assert not (tmp_path / "report.json").exists()
    output = kairos(*world.train_arguments(tmp_path)).output
    assert "epoch 3/" not in output
    assert "epoch 30/" in output
    assert result_of(tmp_path) == result_of(run)


@pytest.mark.slow
def test_a_run_killed_in_the_refit_resumes_with_the_same_result(
    world: World, tmp_path: Path
) -> None:
    recipe = tmp_path / "refit.toml"
    recipe.write_text(world.recipe.read_text() + "refit = true\n")
    refitting = dataclasses.replace(world, recipe=recipe)
    uninterrupted, killed = tmp_path / "uninterrupted", tmp_path / "killed"
    kairos(*refitting.train_arguments(uninterrupted))
    kill_after(["epoch 30/", "epoch 1/"], refitting.train_arguments(killed))
    with pytest.raises(BundleError):
        find_bundle(killed)
    kairos(*refitting.train_arguments(killed))
    assert result_of(killed) == result_of(uninterrupted)


def kill_after(lines: list[str], arguments: list[str]) -> None:
    """Runs a command in a process, and kills it after it printed lines with these prefixes."""
    command = [sys.executable, "-c", "from cli.main import app; app()", *arguments]
    remaining = iter(lines)
    expected = next(remaining, None)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if expected is not None and line.startswith(expected):
                expected = next(remaining, None)
            if expected is None:
                process.send_signal(signal.SIGKILL)
                break
        output = process.stderr.read()
    assert process.returncode == -signal.SIGKILL, output


def result_of(output: Path) -> tuple[bytes, bytes]:
    """Returns the weights and the report of a run."""
    return (find_bundle(output) / WEIGHTS).read_bytes(), (output / "report.json").read_bytes()


def test_a_checkpoint_of_another_recipe_is_rejected(world: World, run: Path) -> None:
    output = kairos(*world.train_arguments(run), "--seed", "8", exit_code=1).output
    assert "a run resumes only with the recipe and events it began with" in output
    assert "choose another output directory" in output


def test_a_damaged_checkpoint_is_rejected(world: World, tmp_path: Path) -> None:
    (tmp_path / CHECKPOINT).write_bytes(b"half")
    output = kairos(*world.train_arguments(tmp_path), exit_code=1).output
    assert "delete it to begin anew" in output


@pytest.mark.parametrize("device", ["cuda:99", "nonsense"])
def test_an_unavailable_device_is_rejected(world: World, tmp_path: Path, device: str) -> None:
    output = kairos(*world.train_arguments(tmp_path), "--device", device, exit_code=1).output
    assert f"{device!r} is not" in output


def test_several_workers_need_a_launcher(world: World, tmp_path: Path) -> None:
    output = kairos(*world.train_arguments(tmp_path), "--workers", "2", exit_code=1).output
    assert "add --engine ray, or run torchrun --nproc-per-node 2" in output


def test_an_unknown_recipe_lists_the_shipped_ones(world: World, tmp_path: Path) -> None:
    output = kairos(
        "train", "--events", world.events, "--recipe", "dmeo", "--output", tmp_path, exit_code=1
    ).output
    assert "'demo'" in output
    assert "dmeo" in output


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "[fit]\nepohcs = 3",
            "fit.epohcs: there is no such setting here (did you mean 'epochs'?); correct it",
        ),
        ("[fit]\nepochs = 0", "fit.epochs: input should be greater than 0, but got 0"),
        ("[fit", "must be TOML"),
    ],
)
def test_an_invalid_recipe_is_described_on_one_line(
    world: World, tmp_path: Path, line: str, message: str
) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text(line)
    output = kairos(
        "train", "--events", world.events, "--recipe", recipe, "--output", tmp_path, exit_code=1
    ).output
    assert message in output
    assert len(output.splitlines()) == 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("u,i,2026-01-31T12:00:00\n", "line 2, column 'timestamp': an instant needs an offset"),
        ("u,i,1769860800\nu,,1769860800\n", "line 3, column 'item_id': an id must not be empty"),
    ],
)
@pytest.mark.parametrize("command", ["train", "import-events"])
def test_unreadable_events_are_described_on_one_line(
    world: World, tmp_path: Path, rows: str, message: str, command: str
) -> None:
    file = tmp_path / "broken.csv"
    file.write_text("user_id,item_id,timestamp\n" + rows)
    arguments: list[str | Path] = {
        "train": ["--events", file, "--recipe", world.recipe, "--output", tmp_path],
        "import-events": [file, "--database", f"sqlite:///{tmp_path / 'kairos.db'}"],
    }[command]
    output = kairos(command, *arguments, exit_code=1).output
    (line,) = output.splitlines()
    assert f"{file}, {message}" in line
