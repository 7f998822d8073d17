"""The effect of a change of the recipe: the difference of a metric on the same questions."""

import statistics
from collections.abc import Hashable, Sequence

import numpy as np
from jaxtyping import Float64

from benchmarks.ablations.harness.ablations import get_epochs
from benchmarks.papers.harness.measured_rows import MeasuredRow
from benchmarks.papers.harness.question_values import decode_values
from benchmarks.papers.harness.record import Record
from training.evaluation.metrics import paired_bootstrap
from training.evaluation.report import MODEL, Difference

DRAWS = 1_000
"""Resamples of the questions per interval."""

Pair = tuple[Record, Record]


def pair_records(row: MeasuredRow, full: MeasuredRow) -> list[Pair]:
    """Pair the records of a row with those of the whole recipe.

    A pair has the same seed, the same number of epochs and the same data.
    """
    by_run = {_identify_run(record): record for record in full.records}
    pairs = ((record, by_run.get(_identify_run(record))) for record in row.records)
    return [(record, other) for record, other in pairs if other is not None]


def measure_effect(pairs: Sequence[Pair], ranker: str) -> Difference:
    """Measure the difference of the metric, with a 95 % interval over the questions.

    The values of a question are averaged over the seeds first, so the interval does not contain
    the spread between seeds.

    Args:
        pairs: at least one, from `pair_records`.
        ranker: a row of the report.
    """
    row, full = (
        np.mean([_read_values(record, ranker) for record in records], axis=0)
        for records in zip(*pairs, strict=True)
    )
    return Difference(*paired_bootstrap(row, full, draws=DRAWS))


def average_metric(records: Sequence[Record], ranker: str, metric: str) -> float:
    """Average a metric over records.

    A model without counts has no live row: nothing is counted, so its frozen row is its live one.
    """
    rows = (record.report.rows for record in records)
    return statistics.mean(row.get(ranker, row[MODEL])[metric] for row in rows)


def _read_values(record: Record, ranker: str) -> Float64[np.ndarray, " questions"]:
    assert record.questions is not None
    return decode_values(record.questions.get(ranker, record.questions[MODEL]))


def _identify_run(record: Record) -> Hashable:
    return record.seed, get_epochs(record), tuple(sorted(record.data.items()))
