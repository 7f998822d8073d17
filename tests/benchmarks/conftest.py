from pathlib import Path

import pytest

from benchmarks.papers.harness.measured_rows import MeasuredRow
from benchmarks.papers.harness.suite import Suite
from tests.benchmarks.tiny_suite import record_of, suite_in


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return suite_in(tmp_path)


@pytest.fixture
def measured(suite: Suite) -> list[MeasuredRow]:
    reached = {"mercer": {0: 0.4, 3: 0.5}, "positional": {0: 0.3}, "degree_2": {0: 0.41}}
    return [
        MeasuredRow(
            suite.row(name),
            tuple(record_of(suite, suite.row(name), seed, value) for seed, value in seeds.items()),
        )
        for name, seeds in reached.items()
    ]
