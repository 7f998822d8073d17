"""The records of an ablation that can be compared with those of the whole recipe."""

from collections.abc import Hashable, Sequence

from benchmarks.ablations.harness.ablations import get_epochs
from benchmarks.papers.harness.measured_rows import MeasuredRow
from benchmarks.papers.harness.record import Record


def keep_comparable(measured: Sequence[MeasuredRow]) -> list[MeasuredRow]:
    """Keep the records that have a seed, a number of epochs and data of the whole recipe's.

    Args:
        measured: the whole recipe first; rows with no such record are left out.
    """
    of_whole = {_identify_run(record) for record in measured[0].records}
    kept = (
        MeasuredRow(each.row, tuple(one for one in each.records if _identify_run(one) in of_whole))
        for each in measured
    )
    return [each for each in kept if each.records]


def _identify_run(record: Record) -> Hashable:
    return record.seed, get_epochs(record), tuple(sorted(record.data.items()))
