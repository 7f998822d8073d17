"""Runs `kairos retrain` in children that die on the way: run by `test_r15_retraining_killed`.

Every child is a process of its own that kills itself, with the signal nobody can catch, when it
comes to a named point. The libraries are loaded once, in the parent, which is told what to start:
a line of JSON per round, a list of pairs of point and arguments. It answers how each ended.
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
"""In the order they are passed."""

SURVIVES = "no point at all"


def die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_at(point: str) -> None:
    """Prepare this process to die at a point."""
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

    def entering(self: RetrainingLog, entered: Phase) -> None:
        enter(self, entered)
        if entered == phase:
            prepare()

    RetrainingLog.start_phase = entering  # type: ignore[method-assign]


def _die_after(move: str) -> None:
    moving = getattr(Path, move)

    def moved(self: Path, target: Path) -> None:
        moving(self, target)
        die()

    setattr(Path, move, moved)


def begin(point: str, arguments: list[str]) -> int:
    """Start a run that dies at a point; answers the number of its process."""
    child = os.fork()
    if not child:
        os.dup2(2, 1)  # its words are not the parent's
        if point != SURVIVES:
            die_at(point)
        kairos(arguments)
    return child


def end(child: int) -> int:
    """Wait for a run; answers how it ended, the number of a signal below zero."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    torch.set_num_threads(1)
    # Loads what torch loads only when it is first asked.
    torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))])
    for line in sys.stdin:
        children = [begin(point, arguments) for point, arguments in json.loads(line)]
        print(json.dumps([end(child) for child in children]), flush=True)  # noqa: T201
