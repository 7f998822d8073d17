"""Checks of clocks: of this machine, the database's, and that of the store's file system."""

import os
import time
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.orm import Session

from cli.doctor.check import Check, Checks, failure, ok, warning

_WARNING_SECONDS, _FAILURE_SECONDS = 2.0, 60.0
_SYNCHRONISE = "synchronise the clocks with NTP (timedatectl, chronyc tracking)"


def check_clocks(session: Session, root: Path, newest_arrival: int | None) -> Checks:
    """Compare the clock of this machine with the others that Kairos reads.

    Args:
        root: the bundle store.
        newest_arrival: of an event, epoch microseconds.
    """
    if session.get_bind().dialect.name == "postgresql":
        began = time.time()
        at = float(session.scalar(text("SELECT extract(epoch FROM clock_timestamp())")) or 0)
        yield judge_clock("clock.database", "the database's", at - (began + time.time()) / 2)
    offset = _measure_file_clock(root)
    if offset is not None:
        yield judge_clock("clock.files", "that of the store's file system", offset)
    if newest_arrival is not None:
        ahead = newest_arrival / 1e6 - time.time()
        if ahead > _WARNING_SECONDS:
            yield warning(
                "clock.events",
                f"the newest event arrived {ahead:.0f} seconds in the future: the clock of a "
                "machine was or is ahead, and incremental reads may miss what arrives meanwhile",
                _SYNCHRONISE,
            )


def judge_clock(name: str, clock: str, offset: float) -> Check:
    """Judge a clock by its offset: seconds by which it is ahead of this machine's."""
    finding = f"{clock} clock is {abs(offset):.1f} s {'ahead of' if offset > 0 else 'behind'} ours"
    if abs(offset) < _WARNING_SECONDS:
        return ok(name, finding)
    create = failure if abs(offset) >= _FAILURE_SECONDS else warning
    consequence = "default query times, expiry of keys and availability of items differ by as much"
    return create(name, f"{finding}: {consequence}", _SYNCHRONISE)


def _measure_file_clock(root: Path) -> float | None:
    """Measure how far the file system's clock is ahead, in seconds; None if it takes no file."""
    probe = root / f".incoming-doctor-{os.getpid()}"
    try:
        began = time.time()
        probe.touch()
        written = probe.stat().st_mtime
        probe.unlink()
    except OSError:
        return None
    return written - (began + time.time()) / 2
