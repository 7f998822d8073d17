"""R9: memory, open files and threads do not grow with the number of requests."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest

from tests.processes import processes
from tests.promises import load, mixture
from tests.promises.figures import Figures
from tests.promises.strength import Strength

STATUSES = {
    "invalid": {422},
    "unknown version": {404},
    "unknown path": {404},
}
SHED = {429, 503}
EVERY = 10_000


@dataclass(frozen=True)
class Reading:
    """Resources of a process after a number of requests."""

    requests: int
    resident: int
    files: int
    threads: int


@pytest.mark.timeout(1500)
def test_memory_files_and_threads_do_not_grow(
    tmp_path: Path, bundle_store: Path, strength: Strength, figures: Figures
) -> None:
    total = strength.select(short=1_000, full=100_000)
    every = total // 50
    readings: list[Reading] = []
    statuses: Counter[tuple[str, int]] = Counter()

    with processes(tmp_path, bundle_store) as start:
        server = start(KAIROS_LOG_LEVEL="warning", KAIROS_INFERENCE_PATIENCE_SECONDS="60")
        process = psutil.Process(server.process.pid)

        def count(answer: load.Answer) -> None:
            statuses[answer.name, answer.status] += 1
            answered = statuses.total()
            if answered % every == 0:
                readings.append(
                    Reading(
                        answered,
                        process.memory_info().rss,
                        process.num_fds(),
                        process.num_threads(),
                    )
                )

        async def send_all() -> None:
            # In batches, as a load keeps every answer in memory.
            for _ in range(0, total, every):
                await load.closed_loop(server.port, MIXTURE, clients=8, most=every, on_answer=count)

        load.run(send_all())
        log = server.log.read_text()
    settled = readings[len(readings) // 5 :]
    slope = _fit_growth(EVERY, settled)
    figures.record(
        "R9",
        "requests of every kind",
        requests=statuses.total(),
        rss_at_first_mib=readings[0].resident / 2**20,
        rss_at_last_mib=readings[-1].resident / 2**20,
        rss_growth_share_per_10k=slope,
        files=f"{min(r.files for r in settled)} to {max(r.files for r in settled)}",
        threads=f"{min(r.threads for r in settled)} to {max(r.threads for r in settled)}",
        shed=sum(n for (_, status), n in statuses.items() if status in SHED),
        answers_5xx_beside=sum(n for (_, s), n in statuses.items() if s >= 500 and s not in SHED),
    )
    for (name, status), _ in statuses.items():
        assert status in STATUSES.get(name, {200}) | SHED, (name, status)
    assert "request_failed" not in log
    # Thread pools start threads on demand, some of them late.
    threads = [reading.threads for reading in settled]
    assert max(threads) - min(threads) <= strength.select(short=8, full=1)
    # Only the connections of the eight clients may change between readings.
    assert max(r.files for r in settled) - min(r.files for r in settled) <= 8 + 2
    assert settled[-1].files <= settled[0].files + 8
    if strength.is_full:
        assert slope < 0.01


MIXTURE = mixture.build_every_kind()


def _fit_growth(requests: int, readings: list[Reading]) -> float:
    """Fit the growth of memory over a number of requests, as a share of its mean."""
    resident = np.array([reading.resident for reading in readings], dtype=float)
    counts = np.array([reading.requests for reading in readings], dtype=float)
    return float(np.polyfit(counts, resident, 1)[0] * requests / resident.mean())
