"""The suites with their records, read once for all pages and plots."""

from dataclasses import dataclass
from pathlib import Path

from benchmarks.papers.harness.comparison import Comparison
from benchmarks.papers.harness.measured_rows import (
    MeasuredRow,
    list_rows_of_other_data,
    read_measured,
)
from benchmarks.papers.harness.row import Row
from benchmarks.papers.harness.suite import Suite, list_suite_names


@dataclass(frozen=True)
class MeasuredSuite:
    """A suite with its rows that have records."""

    suite: Suite
    measured: list[MeasuredRow]
    comparison: Comparison | None
    """Of these rows; None if no record has ranks."""
    of_other_data: list[Row]
    """Rows with records that are left out, as they are of other data than the leading record."""

    @classmethod
    def read(cls, folder: Path, suite: Suite) -> "MeasuredSuite":
        """Read the records of a suite.

        Args:
            folder: of results/.
        """
        measured = read_measured(folder, suite)
        return cls(
            suite,
            measured,
            Comparison.read(folder, suite, measured),
            list_rows_of_other_data(folder, suite, measured),
        )


def read_measured_suites(folder: Path) -> list[MeasuredSuite]:
    """Read all suites, also those without a record.

    Args:
        folder: of suites/ and results/.

    Raises:
        TrainingError: if there are no suites, or a suite or a record is broken.
    """
    names = list_suite_names(folder)
    return [
        MeasuredSuite.read(folder, Suite.read(folder / "suites" / f"{name}.toml")) for name in names
    ]
