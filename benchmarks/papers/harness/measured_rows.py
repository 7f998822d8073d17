"""The records of a suite, by row."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.papers.harness.record import Record, name_record
from benchmarks.papers.harness.row import Row
from benchmarks.papers.harness.settings import digest
from benchmarks.papers.harness.suite import Suite
from benchmarks.papers.peers.config import CLOSED_FORMS
from model.errors import TrainingError
from training.evaluation.report import LIVE, MODEL, WITHHELD

Subset = Literal["all", "after_a_gap"]
"""All questions, or those later than the last event of their history."""


@dataclass(frozen=True)
class MeasuredRow:
    """A row with its records, one per seed."""

    row: Row
    records: tuple[Record, ...]

    @property
    def label(self) -> str:
        """Its label, marked "one seed" if training is random and no second seed was run."""
        return f"{self.row.label}, one seed" if self.is_of_one_seed else self.row.label

    @property
    def is_of_one_seed(self) -> bool:
        """Whether training is random and no second seed was run."""
        return len(self.records) == 1 and self.is_random

    @property
    def is_random(self) -> bool:
        """Whether another seed gives other figures: counting and closed forms have none."""
        record = self.records[0]
        return record.epochs > 0 and record.config.get("kind") not in CLOSED_FORMS

    @property
    def reads_query_time(self) -> bool:
        """Whether the model reads the query time."""
        return self.row.time_class == "query time given"

    def list_given(self, metric: str) -> list[float]:
        """List a metric of every seed, the query time given; empty if it is not in the records."""
        return self._list_values(MODEL, metric)

    def list_withheld(self, metric: str) -> list[float]:
        """List the same metric, the query time withheld."""
        return self._list_values(WITHHELD, metric)

    def list_live(self, metric: str) -> list[float]:
        """List the same metric, popularity counted up to each query; empty without a wide part."""
        return self._list_values(LIVE, metric)

    def list_after_gap(self, ranker: str, metric: str) -> list[float]:
        """List a ranker's metric on questions later than the last event of their history."""
        gaps = (record.report.after_a_gap.get(ranker, {}) for record in self.records)
        return [gap[metric] for gap in gaps if metric in gap]

    def list_headline(self, suite: Suite, metric: str) -> list[float]:
        """List a metric of every seed on the suite's headline questions, the query time given."""
        if suite.headline == "after_a_gap":
            return self.list_after_gap(MODEL, metric)
        return self.list_given(metric)

    @property
    def is_rising_at_the_end(self) -> bool:
        """Whether the fit of any seed was best after its last epoch, on the validation questions.

        Such a row is not shown to have reached its best within its epochs or its budget.
        """
        return any(len(curve) > 1 and curve[-1] > max(curve[:-1]) for curve in self._list_curves())

    @property
    def is_cut_short(self) -> bool:
        """Whether the budget of a peer ended its fit before its patience did.

        It is not shown to have reached its best, then, either.
        """
        if self.records[0].peer is None:
            return False
        config = self.records[0].config
        patience, epochs = (config.get(name, 0) for name in ("patience", "epochs"))
        assert isinstance(patience, int)
        assert isinstance(epochs, int)
        # Patience is of evaluations, of which not every epoch need have one.
        return any(
            curve
            and record.curve[-1].epoch < epochs
            and len(curve) - curve.index(max(curve)) <= patience
            for record, curve in zip(self.records, self._list_curves(), strict=True)
        )

    def _list_curves(self) -> list[list[float]]:
        """List the metric of early stopping on the validation questions by epoch, of every seed."""
        curves = []
        for record in self.records:
            points = (point.validation for point in record.curve)
            curves.append([values[record.monitor] for values in points if record.monitor in values])
        return curves

    def _list_values(self, ranker: str, metric: str) -> list[float]:
        rankers = (record.report.rows.get(ranker, {}) for record in self.records)
        return [row[metric] for row in rankers if metric in row]


def is_current(record: Record, suite: Suite, row: Row) -> bool:
    """Return whether a record's settings equal the suite's, for one of the seeds of the row."""
    return record.seed in row.seeds and record.settings_sha256 == digest(
        suite.merge_settings(row, record.seed)
    )


def read_measured(
    folder: Path, suite: Suite, is_valid: Callable[[Record, Suite, Row], bool] = is_current
) -> list[MeasuredRow]:
    """Read the rows that have records, in the suite's order.

    Args:
        folder: of results/.
        is_valid: whether a record counts; by default as long as its settings equal the suite's.

    Raises:
        TrainingError: if a record is broken, or of another cell than its file name.
    """
    found = []
    for row in suite.rows:
        read = (_read_record(folder, suite, row, seed) for seed in sorted(row.seeds))
        valid = [record for record in read if record and is_valid(record, suite, row)]
        if valid:
            found.append(MeasuredRow(row, tuple(valid)))
    return _select_newest_data(found)


def _read_record(folder: Path, suite: Suite, row: Row, seed: int) -> Record | None:
    """Read the record of a cell; None if there is none."""
    file = folder / "results" / suite.name / name_record(row.name, seed)
    try:
        record = Record.read(file)
    except FileNotFoundError:
        return None
    if (record.suite, record.row, record.seed) != (suite.name, row.name, seed):
        raise TrainingError(
            f"a record's file is named after its suite, row and seed, but {file} is of suite "
            f"{record.suite}, row {record.row}, seed {record.seed}; move it to its place, or "
            "delete it and run the row again"
        )
    return record


def find_leading_record(measured: Sequence[MeasuredRow]) -> Record | None:
    """Find the newest record of the default, or of all rows if it has none."""
    of_default = [
        record for each in measured if each.row.role == "default" for record in each.records
    ]
    records = of_default or [record for each in measured for record in each.records]
    return max(records, key=lambda record: record.started_at, default=None)


def _select_newest_data(measured: list[MeasuredRow]) -> list[MeasuredRow]:
    """Leave out records of other data than the leading record's, and rows with no record left."""
    leading = find_leading_record(measured)
    if leading is None:
        return []
    kept = (
        MeasuredRow(
            each.row, tuple(record for record in each.records if record.data == leading.data)
        )
        for each in measured
    )
    return [each for each in kept if each.records]


def list_rows_of_other_data(
    folder: Path, suite: Suite, measured: Sequence[MeasuredRow]
) -> list[Row]:
    """List the rows with a current record that `read_measured` left out, as it is of other data.

    Args:
        folder: of results/.
        measured: from `read_measured`.
    """
    shown = {(each.row.name, record.seed) for each in measured for record in each.records}

    def is_left_out(row: Row, seed: int) -> bool:
        if (row.name, seed) in shown:
            return False
        record = Record.find(folder / "results" / suite.name / name_record(row.name, seed))
        return record is not None and is_current(record, suite, row)

    return [row for row in suite.rows if any(is_left_out(row, seed) for seed in row.seeds)]


def collect_references(
    measured: list[MeasuredRow], subset: Subset = "all"
) -> dict[str, dict[str, float]]:
    """Collect the metrics of the references, from the newest record that has each."""
    found: dict[str, dict[str, float]] = {}
    records = [record for each in measured for record in each.records]
    for record in sorted(records, key=lambda record: record.started_at, reverse=True):
        report = record.report
        for name, row in (report.rows if subset == "all" else report.after_a_gap).items():
            if name not in (MODEL, WITHHELD, LIVE):
                found.setdefault(name, row)
    return found


def standard_deviation(values: list[float]) -> float:
    """Compute the standard deviation between seeds; 0 of a single one."""
    return statistics.stdev(values) if len(values) > 1 else 0.0


def find_default(measured: Sequence[MeasuredRow]) -> MeasuredRow | None:
    """Find our default; None if it has no record."""
    return next((each for each in measured if each.row.role == "default"), None)
