"""Metrics that several workers count, with the processes of the workers."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import values

from app.observability.metrics import Metrics
from app.observability.shared_metrics import (
    MetricsDirectoryError,
    MetricsShare,
    create_metrics_directory,
    remove_gauges,
)

WORKER = """
import sys
from pathlib import Path
from app.observability.metrics import Metrics
from app.observability.shared_metrics import MetricsShare

directory, worker, steps = sys.argv[1:]
metrics = Metrics(MetricsShare(Path(directory), int(worker), "name", 0))
exec(steps)
"""


@pytest.fixture(autouse=True)
def own_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the tests that follow count alone."""
    monkeypatch.setattr(values, "ValueClass", values.ValueClass)
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "replaced")


@pytest.fixture
def share(tmp_path: Path) -> MetricsShare:
    return MetricsShare.of_first_worker(tmp_path)


def run_worker(share: MetricsShare, worker: int, *steps: str) -> None:
    """Run a worker that counts, and is killed."""
    subprocess.run(
        [
            *(sys.executable, "-c", WORKER, str(share.directory), str(worker)),
            "; ".join([*steps, "import os", "os._exit(9)"]),
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )


def read(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.reported.get_sample_value(name, labels)


def test_a_worker_reports_the_counts_of_all(share: MetricsShare) -> None:
    for worker in (1, 2):
        run_worker(
            share,
            worker,
            "metrics.shed_requests.labels('share').inc(5)",
            "metrics.history_length.observe(3)",
            "metrics.inference_in_progress.inc()",
        )
    metrics = Metrics(replace(share, worker=3))
    assert read(metrics, "kairos_shed_requests_total", reason="share") == 10
    assert read(metrics, "kairos_history_length_count") == 2
    assert read(metrics, "kairos_history_length_bucket", le="2.0") == 0
    assert read(metrics, "kairos_history_length_bucket", le="5.0") == 2
    assert read(metrics, "kairos_inference_in_progress") == 2
    assert b'kairos_shed_requests_total{reason="share"} 10.0' in metrics.render()


def test_a_replacement_goes_on_counting(share: MetricsShare) -> None:
    count = "metrics.shed_requests.labels('share').inc(5)"
    run_worker(share, 1, count, "metrics.inference_in_progress.inc()")
    remove_gauges(share)
    files = {path.name for path in share.directory.iterdir()}
    run_worker(share, 1, count)
    metrics = Metrics(replace(share, worker=2))
    assert read(metrics, "kairos_shed_requests_total", reason="share") == 10
    assert read(metrics, "kairos_inference_in_progress") == 0
    assert files <= {path.name for path in share.directory.iterdir()}


def test_files_of_a_worker_that_is_starting_are_empty(share: MetricsShare) -> None:
    metrics = Metrics(share)
    metrics.shed_requests.labels("share").inc(5)
    for name in ("counter_2.db", "histogram_2.db", "gauge_livesum_2.db"):
        (share.directory / name).touch()
    assert read(metrics, "kairos_shed_requests_total", reason="share") == 5


def test_gauges_may_be_removed_while_they_are_read(
    share: MetricsShare, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_worker(share, 1, "metrics.inference_in_progress.inc()")
    metrics = Metrics(replace(share, worker=2))
    stat = Path.stat

    def remove_first(path: Path) -> os.stat_result:
        remove_gauges(share)
        return stat(path)

    monkeypatch.setattr(Path, "stat", remove_first)
    assert read(metrics, "kairos_inference_in_progress") == 0


def test_labels_that_are_removed_are_not_reported(share: MetricsShare) -> None:
    metrics = Metrics(share)
    metrics.model_info.labels("v1").set(1)
    metrics.clear(metrics.model_info)
    metrics.model_info.labels("v2").set(1)
    assert read(metrics, "kairos_model_info", version="v1") is None
    assert read(metrics, "kairos_model_info", version="v2") == 1
    metrics.clear(metrics.model_info)
    metrics.model_info.labels("v1").set(1)
    assert read(metrics, "kairos_model_info", version="v1") == 1


def describe(metrics: Metrics) -> set[tuple[str, str, str]]:
    return {(each.name, each.type, each.documentation) for each in metrics.reported.collect()}


def test_workers_report_metrics_as_one_process_does(share: MetricsShare) -> None:
    alone, shared = describe(Metrics()), describe(Metrics(share))
    assert shared < alone
    # What has labels is reported with the first of them.
    assert "kairos_recommendations" in {name for name, _, _ in shared}


def test_a_worker_without_a_directory_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(MetricsDirectoryError, match="No such file or directory; set TMPDIR"):
        create_metrics_directory()
