"""Metrics of several workers: each counts in files of its own, and any of them reports the sum.

The files are those of prometheus-client's multiprocess mode, so no count is lost with a worker that
is killed. They are named by the number of the worker instead of its process id: a replacement goes
on counting where its predecessor ended, and their number does not grow with each replacement.
"""

import math
import os
import secrets
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import final

from prometheus_client import CollectorRegistry, Metric, values
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from model.clock import now
from model.errors import KairosError

_DIRECTORY_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Where the library looks for the directory."""


@final
@dataclass(frozen=True, slots=True)
class MetricsShare:
    """Where one of several workers counts.

    Attributes:
        directory: of the files of all workers, on this machine.
        worker: the number of this worker, from 1.
        instance: a random name of all workers together.
        started_at: the instant since which they count, epoch microseconds.
    """

    directory: Path
    worker: int
    instance: str
    started_at: int

    @classmethod
    def of_first_worker(cls, directory: Path) -> "MetricsShare":
        """Return the share of the first worker of a new service."""
        return cls(directory, 1, secrets.token_hex(8), now())


class MetricsDirectoryError(KairosError):
    """The directory in which workers count cannot be created."""

    code = "metrics_directory"


def create_metrics_directory() -> Path:
    """Create an empty directory for the files of all workers.

    Raises:
        MetricsDirectoryError: if there is no directory for temporary files.
    """
    try:
        return Path(tempfile.mkdtemp(prefix="kairos-metrics-"))
    except OSError as error:
        raise MetricsDirectoryError(
            "several workers count in a directory of temporary files, but none can be created: "
            f"{error.strerror}; set TMPDIR to a directory that this user can write, or "
            "KAIROS_WORKERS to 1"
        ) from error


def open_share(share: MetricsShare) -> CollectorRegistry:
    """Count in the files of a worker from now on; return a registry with the sum over all workers.

    Metrics that were created earlier do not change.
    """
    os.environ[_DIRECTORY_VARIABLE] = str(share.directory)
    values.ValueClass = values.MultiProcessValue(lambda: share.worker)  # type: ignore[no-untyped-call]
    registry = CollectorRegistry()
    registry.register(_SharedCollector(share.directory))
    return registry


def remove_gauges(share: MetricsShare) -> None:
    """Remove the gauges of a worker that has ended; what it counted stays."""
    mark_process_dead(share.worker, str(share.directory))  # type: ignore[no-untyped-call]


@final
class _SharedCollector:
    """Collects the metrics of all workers.

    Gauges with labels have no NaN: it stands for labels that were removed.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def collect(self) -> Iterable[Metric]:
        """Read the files of all workers."""
        families: Iterable[Metric] = MultiProcessCollector.merge(self._list_files())  # type: ignore[no-untyped-call]
        for family in families:
            if family.type == "gauge":
                family.samples = [
                    each for each in family.samples if not (each.labels and math.isnan(each.value))
                ]
            yield family

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the names are known once a worker counts."""
        return ()

    def _list_files(self) -> list[str]:
        """Return the files that have values.

        The library cannot read an empty file, which that of a worker that is starting is for as
        long as the machine lets the worker wait there.
        """
        paths = []
        for path in self._directory.glob("*.db"):
            with suppress(FileNotFoundError):  # the gauges of a worker that has ended
                if path.stat().st_size:
                    paths.append(str(path))
        return paths
