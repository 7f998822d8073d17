"""Compares a row of an ablation with the whole recipe, on runs of the same seeds and lengths."""

from collections.abc import Hashable
from pathlib import Path

from benchmarks.ablations.harness.ablations import get_epochs
from benchmarks.papers.harness.comparison import Comparison
from benchmarks.papers.harness.measured_rows import MeasuredRow
from benchmarks.papers.harness.record import Record
from benchmarks.papers.harness.suite import Suite


def compare_with_whole(
    folder: Path, suite: Suite, whole: MeasuredRow, row: MeasuredRow
) -> Comparison | None:
    """Compare the runs of both that have the same seed, number of epochs, data and questions.

    Args:
        folder: of results/.

    Returns:
        None if there are no such runs.
    """
    runs = {_identify_run(one) for one in whole.records} & {
        _identify_run(one) for one in row.records
    }
    pair = [_keep_runs(whole, runs), _keep_runs(row, runs)]
    if not runs:
        return None
    comparison = Comparison.read(folder, suite, pair)
    if comparison is None or not all(comparison.has(each.row.name) for each in pair):
        return None
    return comparison


def _keep_runs(measured: MeasuredRow, runs: set[Hashable]) -> MeasuredRow:
    kept = tuple(one for one in measured.records if _identify_run(one) in runs)
    return MeasuredRow(measured.row, kept)


def _identify_run(record: Record) -> Hashable:
    return (
        record.seed,
        get_epochs(record),
        tuple(sorted(record.data.items())),
        record.questions_sha256,
    )
