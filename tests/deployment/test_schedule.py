"""docker/schedule.sh: runs a command repeatedly."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.processes import ROOT, eventually

SCRIPT = ROOT / "docker" / "schedule.sh"


@contextmanager
def run_schedule(
    log: Path, seconds: int, jitter: int, *command: str
) -> Iterator["subprocess.Popen[bytes]"]:
    with log.open("wb") as stream:
        process = subprocess.Popen(
            ["sh", str(SCRIPT), str(seconds), str(jitter), *command], stdout=stream, stderr=stream
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)


def read_events(log: Path, event: str) -> list[dict[str, object]]:
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return [line for line in lines if line["event"] == event]


def test_a_failed_run_is_logged_and_repeated(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with run_schedule(log, 0, 0, "sh", "-c", "exit 3"):
        eventually(lambda: len(read_events(log, "run_ended")) >= 3)
    assert {line["status"] for line in read_events(log, "run_ended")} == {3}


def test_runs_wait_for_the_interval_and_a_random_delay(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with run_schedule(log, 3600, 60, "true"):
        eventually(lambda: read_events(log, "next_run_in") != [])
    (first,) = read_events(log, "next_run_in")
    assert 0 <= int(str(first["seconds"])) <= 60
    with run_schedule(log, 3600, 0, "true"):
        eventually(lambda: len(read_events(log, "next_run_in")) == 2)
    assert [line["seconds"] for line in read_events(log, "next_run_in")] == [0, 3600]


def test_a_waiting_schedule_stops_at_once(tmp_path: Path) -> None:
    # Repeatedly, because the signal may arrive while the schedule starts a process.
    for turn in range(10):
        stop_waiting_schedule(tmp_path / f"{turn}.log")


def stop_waiting_schedule(log: Path) -> None:
    with run_schedule(log, 3600, 0, "true") as process:
        eventually(lambda: len(read_events(log, "next_run_in")) == 2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 0
    assert read_events(log, "schedule_ended")


def test_a_run_in_progress_is_stopped_and_awaited(tmp_path: Path) -> None:
    log, stopped = tmp_path / "log", tmp_path / "stopped"
    on_exit = f"sleep 0.3; touch {stopped}; exit 0"
    run = f"trap '{on_exit}' TERM; touch {tmp_path}/begun; while :; do sleep 0.05; done"
    with run_schedule(log, 3600, 0, "sh", "-c", run) as process:
        eventually((tmp_path / "begun").exists)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        assert stopped.exists()
        assert time.monotonic() - began < 5
