"""Compares the rows of an ablation with the whole recipe, on runs of the same seeds and lengths."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.ablations.harness.ablations import get_epochs
from benchmarks.papers.harness.comparison import Comparison
from benchmarks.papers.harness.measured_rows import MeasuredRow, find_leading_record
from benchmarks.papers.harness.record import Record
from benchmarks.papers.harness.suite import Suite


def compare_with_whole(
    folder: Path, suite: Suite, measured: Sequence[MeasuredRow]
) -> dict[str, Comparison]:
    """Compare each row with the whole recipe, on their runs of equal seed, epochs and data.

    Args:
        folder: of results/.
        measured: the whole recipe first; of all records, those of its newest questions count.

    Returns:
        By row, the whole recipe first; rows with no such runs are left out.
    """
    leading = find_leading_record(measured[:1])
    if leading is None:
        return {}
    kept = [_keep_questions(each, leading.questions_sha256) for each in measured]
    every = Comparison.read(folder, suite, [each for each in kept if each.records])
    if every is None:
        return {}
    whole = every.measured[0]
    found = {}
    for each in every.measured:
        if runs := _identify_runs(whole) & _identify_runs(each):
            pair = (_keep_runs(whole, runs), _keep_runs(each, runs))
            found[each.row.name] = replace(every, measured=pair)
    return found


def _keep_questions(measured: MeasuredRow, digest: str | None) -> MeasuredRow:
    kept = tuple(one for one in measured.records if one.questions_sha256 == digest)
    return MeasuredRow(measured.row, kept)


def _keep_runs(measured: MeasuredRow, runs: set[Hashable]) -> MeasuredRow:
    kept = tuple(one for one in measured.records if _identify_run(one) in runs)
    return MeasuredRow(measured.row, kept)


def _identify_runs(measured: MeasuredRow) -> set[Hashable]:
    return {_identify_run(record) for record in measured.records}


def _identify_run(record: Record) -> Hashable:
    return record.seed, get_epochs(record), tuple(sorted(record.data.items()))
