"""Publishes into one store per stage, in child processes that kill themselves at the stage.

Run by `test_store`; each child ends by SIGKILL, which no handler can catch.
"""

import os
import signal
import sys
from pathlib import Path

from model.store import store as store_module
from model.store.store import BundleStore
from tests import tiny

STAGES = ("half_written", "before_rename", "after_rename", "before_pointer", "after_pointer")


def die(*arguments: object, **named: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def publish_until(stage: str, root: Path) -> None:
    config = tiny.recommender_config()
    write_whole = tiny.writer(config, tiny.recommender(config, seed=7))

    def write(directory: Path) -> str:
        if stage == "half_written":
            (directory / "weights.safetensors").write_bytes(b"half")
            die()
        return write_whole(directory)

    if stage == "before_rename":
        Path.rename = die  # type: ignore[assignment]
    elif stage == "after_rename":
        store_module.open_predictor = die  # type: ignore[assignment]
    elif stage == "before_pointer":
        Path.replace = die  # type: ignore[assignment]
    BundleStore(root).publish(write)
    die()


if __name__ == "__main__":
    for stage in STAGES:
        if child := os.fork():
            _, status = os.waitpid(child, 0)
            assert os.WTERMSIG(status) == signal.SIGKILL, (stage, status)
        else:
            publish_until(stage, Path(sys.argv[1]) / stage)
            os._exit(0)
