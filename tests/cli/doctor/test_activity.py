"""The checks of recent events and retraining runs."""

import pytest

from tests.cli.doctor.checks import execute, run_doctor, warnings


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ("DELETE FROM events", "no event is stored"),
        ("UPDATE events SET received_at = received_at - 172800000000", "arrived 2.00 days ago"),
    ],
)
def test_missing_recent_events_are_a_warning(database: str, change: str, finding: str) -> None:
    execute(database, change)
    found = run_doctor(0)
    assert warnings(found) == {"events"}
    assert finding in found["events"]["finding"]


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ("DELETE FROM training_runs", "no run is recorded"),
        ("UPDATE training_runs SET result = 'failed', reason = 'no data'", "failed (no data)"),
        (
            "UPDATE training_runs SET result = 'running', started_at = started_at - 172800000000",
            "running",
        ),
    ],
)
def test_retraining_without_a_result_is_a_warning(database: str, change: str, finding: str) -> None:
    execute(database, change)
    found = run_doctor(0)
    assert warnings(found) == {"retraining"}
    assert finding in found["retraining"]["finding"]


def test_a_recent_unfinished_run_is_ok(database: str) -> None:
    execute(database, "UPDATE training_runs SET result = 'running', finished_at = NULL")
    assert run_doctor(0)["retraining"]["verdict"] == "ok"


def test_counts_that_differ_from_the_rows_are_a_failure(database: str) -> None:
    assert run_doctor(0)["clicks"]["verdict"] == "ok"
    execute(
        database,
        "INSERT INTO impression_counts (model_version, day, shown, clicked) VALUES ('v', 1, 3, 1)",
    )
    found = run_doctor(1)["clicks"]
    assert (found["verdict"], "3 impressions and 1 clicks are counted" in found["finding"]) == (
        "failure",
        True,
    )
