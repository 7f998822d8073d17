"""The Ray that tasks and trainings run on: a cluster, or one that is started on this machine."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from model.errors import MissingPackageError


@contextmanager
def connect_to_ray(*, shows_logs: bool = False) -> Iterator[Any]:
    """Connect to the cluster of this process or of RAY_ADDRESS, or start one on this machine.

    Args:
        shows_logs: whether what the processes print is printed here, too.

    Raises:
        MissingPackageError: if Ray is not installed.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        raise MissingPackageError(
            "the engine 'ray' needs Ray, but it is not installed; install it with "
            "pip install 'kairos[scale]', or take --engine local"
        ) from error
    is_mine = not ray.is_initialized()
    if is_mine:
        # Without "local" Ray would join any cluster that happens to run on this machine.
        own = {"address": "local", "include_dashboard": False}
        ray.init(log_to_driver=shows_logs, **({} if os.environ.get("RAY_ADDRESS") else own))
    try:
        yield ray
    finally:
        if is_mine:
            ray.shutdown()
