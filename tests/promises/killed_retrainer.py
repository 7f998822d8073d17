"""Runs `kairos retrain` in children that are killed on the way, for test_r15_retraining_killed.

Each child is a process that sends itself SIGKILL when it reaches a named point. The parent imports
the libraries once. It reads one line of JSON per round, a list of pairs of point and arguments,
and writes the exit codes.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import torch

import app.training_runs.journal
import app.training_runs.lock  # noqa: F401
import migrations.run  # noqa: F401
from cli.main import app as kairos
from cli.progress import RetrainingLog
from training import export
from training.fitting.fit import EpochReport
from training.retraining.job import Phase
from training.retraining.report import RunReport

POINTS = (
    *("read", "fit", "within_fit", "evaluate", "write", "within_write", "gate", "publish"),
    *("before_rename", "after_rename", "activate", "before_pointer", "after_pointer", "record"),
)
"""In the order in which a run reaches them."""

SURVIVES = "never"


def die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_at(point: str) -> None:
    """Patch this process to kill itself at a point."""
    if point == "within_write":
        export.write_bundle = die  # type: ignore[assignment]
    elif point == "record":
        write = RunReport.write
        RunReport.write = lambda report, directory: (  # type: ignore[method-assign]
            die() if report.result == "promoted" else write(report, directory)
        )
    elif point == "within_fit":

        def after_an_epoch(self: RetrainingLog, report: EpochReport) -> None:
            die()

        RetrainingLog.finish_epoch = after_an_epoch  # type: ignore[method-assign]
    else:
        _die_in_a_phase(point)


def _die_in_a_phase(point: str) -> None:
    phases: dict[str, tuple[Phase, Callable[[], None]]] = {
        "before_rename": ("publish", lambda: setattr(Path, "rename", die)),
        "after_rename": ("publish", lambda: _die_after("rename")),
        "before_pointer": ("activate", lambda: setattr(Path, "replace", die)),
        "after_pointer": ("activate", lambda: _die_after("replace")),
    }
    phase, prepare = phases.get(point, (point, die))
    enter = RetrainingLog.start_phase

    def start_phase(self: RetrainingLog, entered: Phase) -> None:
        enter(self, entered)
        if entered == phase:
            prepare()

    RetrainingLog.start_phase = start_phase  # type: ignore[method-assign]


def _die_after(move: str) -> None:
    original = getattr(Path, move)

    def move_and_die(self: Path, target: Path) -> None:
        original(self, target)
        die()

    setattr(Path, move, move_and_die)


def start(point: str, arguments: list[str]) -> int:
    """Fork a run that is killed at a point; returns its process id."""
    child = os.fork()
    if not child:
        os.dup2(2, 1)  # keep stdout for the parent's results
        if point != SURVIVES:
            die_at(point)
        kairos(arguments)
    return child


def wait(child: int) -> int:
    """Wait for a run; returns its exit code, or minus the number of its signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    torch.set_num_threads(1)
    # Imports the modules that torch loads lazily.
    torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))])
    for line in sys.stdin:
        children = [start(point, arguments) for point, arguments in json.loads(line)]
        print(json.dumps([wait(child) for child in children]), flush=True)  # noqa: T201
