"""One model, trained by several processes that torchrun or Ray Train starts."""

import json
import signal
from pathlib import Path

import pytest
import safetensors
from typer.testing import CliRunner

from cli.main import app
from tests.processes import eventually
from tests.scale.launching import command, read_epochs, read_metrics, torchrun, write_inputs
from training.fitting.checkpoint import CHECKPOINT

pytestmark = pytest.mark.timeout(1200)
"""Processes that start others take minutes on a busy machine."""

STARTED_WITHIN_SECONDS = 500
"""Until the first epoch: Ray starts a dozen processes; beside other work that took over 200 s."""


def train_alone(options: tuple[str, ...], output: Path) -> Path:
    result = CliRunner().invoke(app, ["train", *options, "--output", str(output)])
    assert result.exit_code == 0, result.output
    return Path(result.stdout.splitlines()[-1])


def test_two_processes_have_the_loss_curve_of_one(tmp_path: Path) -> None:
    options = write_inputs(tmp_path)
    with torchrun(tmp_path / "two", *options, processes=2) as launched:
        alone = train_alone(options, tmp_path / "one")
        together = launched.finish()
    losses = [[epoch.loss for epoch in read_epochs(bundle)] for bundle in (alone, together)]
    assert len(losses[0]) == 4
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    assert read_metrics(together) == pytest.approx(read_metrics(alone), abs=0.02)


def read_finished_epochs(checkpoint: Path) -> int:
    with safetensors.safe_open(checkpoint, framework="pt") as opened:
        return int(json.loads(opened.metadata()["state"])["epoch"])


@pytest.mark.parametrize("rank", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_killed_process_is_replaced_and_changes_nothing(tmp_path: Path, rank: int) -> None:
    options = write_inputs(tmp_path, epochs=8, users=300)
    with torchrun(tmp_path / "undisturbed", *options, processes=2) as launched:
        alone = train_alone(options, tmp_path / "one")
        undisturbed = launched.finish()
    checkpoint = tmp_path / "two" / CHECKPOINT
    with torchrun(tmp_path / "two", *options, processes=2, restarts=1) as launched:
        eventually(checkpoint.exists, within_seconds=STARTED_WITHIN_SECONDS)
        workers = launched.find_workers()
        workers[rank].send_signal(signal.SIGKILL)
        assert read_finished_epochs(checkpoint) < 7
        # It would fail without a restart.
        restarted = launched.finish()
    losses = [
        [epoch.loss for epoch in read_epochs(bundle)] for bundle in (alone, restarted, undisturbed)
    ]
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    assert read_metrics(restarted) == pytest.approx(read_metrics(alone), abs=0.02)
    assert losses[1] == pytest.approx(losses[2], rel=1e-6)
    assert read_metrics(restarted) == pytest.approx(read_metrics(undisturbed), abs=1e-6)


def test_ray_replaces_a_killed_process_and_changes_nothing(tmp_path: Path) -> None:
    options = write_inputs(tmp_path, epochs=8, users=300)
    alone = train_alone(options, tmp_path / "one")
    checkpoint = tmp_path / "ray" / CHECKPOINT
    with command(tmp_path / "ray", *options, "--engine", "ray", "--workers", "2") as launched:
        eventually(checkpoint.exists, within_seconds=STARTED_WITHIN_SECONDS)
        first, _ = launched.find_workers_of_ray()
        first.send_signal(signal.SIGKILL)
        assert read_finished_epochs(checkpoint) < 7
        by_ray = launched.finish()
    losses = [[epoch.loss for epoch in read_epochs(bundle)] for bundle in (alone, by_ray)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    assert read_metrics(by_ray) == pytest.approx(read_metrics(alone), abs=0.02)
    assert not (tmp_path / "ray" / "ray").exists()  # its records
