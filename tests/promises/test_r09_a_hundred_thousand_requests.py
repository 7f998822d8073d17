"""R9: use costs no memory, no files and no threads that stay."""

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
    "wrong": {422},
    "unknown version": {404},
    "nowhere": {404},
}
SHED = {429, 503}
EVERY = 10_000


@dataclass(frozen=True)
class Reading:
    """What a process holds."""

    requests: int
    resident: int
    files: int
    threads: int


@pytest.mark.timeout(1500)
def test_memory_files_and_threads_stay_what_they_were(
    tmp_path: Path, bundle_store: Path, strength: Strength, figures: Figures
) -> None:
    total = strength.of(short=1_000, full=100_000)
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

        async def story() -> None:
            # In parts: the sender must not remember every answer, either.
            for _ in range(0, total, every):
                await load.closed_loop(server.port, MIXTURE, clients=8, most=every, seen=count)

        load.run(story())
        log = server.log.read_text()
    settled = readings[len(readings) // 5 :]
    slope = _slope_per(EVERY, settled)
    figures.keep(
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
    # Pools start a thread when there is work for one more, and a few of them late.
    threads = [reading.threads for reading in settled]
    assert max(threads) - min(threads) <= strength.of(short=8, full=1)
    # The connections of the eight clients come and go between readings, and nothing else does.
    assert max(r.files for r in settled) - min(r.files for r in settled) <= 8 + 2
    assert settled[-1].files <= settled[0].files + 8
    if strength.is_full:
        assert slope < 0.01


MIXTURE = mixture.everything()


def _slope_per(requests: int, readings: list[Reading]) -> float:
    """Growth of memory over so many requests, as a share of what it is on average."""
    resident = np.array([reading.resident for reading in readings], dtype=float)
    asked = np.array([reading.requests for reading in readings], dtype=float)
    return float(np.polyfit(asked, resident, 1)[0] * requests / resident.mean())
