"""Runs commands in this process; the files of a tiny data set."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from click.testing import Result
from typer.testing import CliRunner

from cli.main import app

RECIPE = """
export_encoder = false

[data]
read_actions = true

[split]
kind = "by_time"
test = 0.15
validation = 0.15

[encoder]
kind = "self_attention"
dim = 8
heads = 2
layers = 2
feed_forward = 8
max_history = 6
repeats = true

[encoder.time_encoding]
kind = "mercer"
periods = 3

[fit]
epochs = 30
patience = 30
tokens = 300
warmup_steps = 2
"""


Kairos = Callable[..., Result]


@dataclass(frozen=True)
class World:
    """The files of a tiny data set."""

    events: Path
    items: Path
    recipe: Path

    def train_arguments(self, output: Path) -> list[str]:
        """Returns the arguments of `kairos train` on this data."""
        return [
            *("train", "--events", str(self.events), "--items", str(self.items)),
            *("--recipe", str(self.recipe), "--output", str(output), "--threads", "1"),
        ]


def kairos(*arguments: str | Path, exit_code: int = 0) -> Result:
    """Runs a command in this process, and asserts its exit code."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == exit_code, result.output + str(result.exception)
    return result
