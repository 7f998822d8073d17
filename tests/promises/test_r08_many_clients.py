"""R8: five hundred concurrent clients get answers, or 429 and 503 with `Retry-After`."""

import time
from collections import Counter
from pathlib import Path

import numpy as np
import psutil
import pytest

from tests.processes import eventually, processes
from tests.promises import load, mixture
from tests.promises.figures import Figures
from tests.promises.strength import Strength
from tests.promises.writers import read_event_ids

CLIENTS = 500
SHED = (429, 503)


@pytest.mark.timeout(900)
def test_five_hundred_clients_meet_no_errors(
    tmp_path: Path, bundle_store: Path, database_url: str, strength: Strength, figures: Figures
) -> None:
    seconds = strength.select(short=5.0, full=300.0)
    resident: list[tuple[float, int]] = []
    undeclared: Counter[str] = Counter()

    with processes(tmp_path, bundle_store) as start:
        server = start(KAIROS_LOG_LEVEL="warning", KAIROS_DATABASE_URL=database_url)
        process = psutil.Process(server.process.pid)

        def record_answer(answer: load.Answer) -> None:
            if not resident or time.monotonic() - resident[-1][0] > 1:
                resident.append((time.monotonic(), process.memory_info().rss))
            if answer.status in SHED and answer.header("Retry-After") is None:
                undeclared[f"{answer.name}: {answer.status} without Retry-After"] += 1
            elif answer.status not in {200, *SHED}:
                undeclared[f"{answer.name}: {answer.status} {answer.head[:80]!r}"] += 1

        result = load.run(
            load.closed_loop(
                server.port,
                mixture.build_reads_and_writes(),
                clients=CLIENTS,
                seconds=seconds,
                on_answer=record_answer,
                backs_off=True,
            )
        )
        # A backlog of requests may delay the probe.
        eventually(server.is_ready)
        log = server.log.read_text()
    events = read_event_ids(database_url)
    figures.record(
        "R8",
        f"{CLIENTS} clients, {database_url.partition(':')[0]}",
        seconds=result.wall,
        answered=len(result.select(200)),
        answered_per_second=result.rate(),
        shed_share=len(result.select(*SHED)) / len(result.answers),
        undeclared=undeclared.total(),
        p50_seconds=result.quantile(0.5),
        p99_seconds=result.quantile(0.99),
        rss_growth_share=_compute_growth(resident),
        events_kept=len(events),
    )
    assert not undeclared
    assert result.select(200, name="ingest")
    assert result.select(200, name="stored")
    assert result.select(200, name="inline, explain attention")
    assert "request_failed" not in log
    assert len(events) == len({*events})
    if strength.is_full:
        assert _compute_growth(resident) < 0.05


def _compute_growth(resident: list[tuple[float, int]]) -> float:
    """Compute the growth of memory from the second fifth of the readings to the last."""
    held = np.array([held for _, held in resident], dtype=float)
    fifth = max(len(held) // 5, 1)
    return (
        float(held[-fifth:].mean() / held[fifth : 2 * fifth].mean() - 1) if len(held) > 1 else 0.0
    )
