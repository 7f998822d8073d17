"""R17: no class of requests starves another."""

import asyncio
from pathlib import Path
from statistics import median

import pytest

from tests.app.tiny_bundle import ITEM_IDS
from tests.processes import Server, processes
from tests.promises import load, mixture
from tests.promises.figures import Figures
from tests.promises.load import Load, Request, build_request
from tests.promises.strength import Strength

TIMES = 10
PER_SECOND = 30
SHED = (429, 503)
FOREGROUND = [
    request
    for number in range(30)
    for request in (
        mixture.build_inline(number, explain="attention"),
        mixture.build_ingest(number),
        mixture.build_stored(number),
    )
]


def build_sweep(name: str, events: int, instants: int, n: int) -> Request:
    """Build a sweep over instants that each read other events."""
    history = [
        {"item_id": ITEM_IDS[index % 20], "timestamp": mixture.FIRST_AT + index * 3600}
        for index in range(events)
    ]
    span = events * 3600
    query_times = [
        mixture.FIRST_AT + span * (number + 1) // instants + 60 for number in range(instants)
    ]
    body = {"history": history, "query_times": query_times, "n": n}
    return build_request("POST", "/v1/attention", body, name=name)


SWEEP = build_sweep("sweep", 1_000, 500, 100)
"""A sweep of the largest size that the limits admit."""

PAGE = build_sweep("small sweep", 100, 100, 5)
"""A sweep as the dashboard requests it."""


def run_foreground(server: Server, seconds: float) -> Load:
    """Send recommendations and batches of events at a rate that leaves the service mostly idle."""
    return load.run(load.open_loop(server.port, FOREGROUND, per_second=PER_SECOND, seconds=seconds))


def run_beside(
    server: Server, background: list[Request], per_second: float, seconds: float
) -> tuple[Load, Load]:
    """Send the same beside other requests at a rate of their own."""

    async def run_both() -> tuple[Load, Load]:
        sending = asyncio.create_task(
            load.open_loop(server.port, background, per_second=per_second, seconds=seconds, seed=1)
        )
        foreground = await load.open_loop(
            server.port, FOREGROUND, per_second=PER_SECOND, seconds=seconds
        )
        return foreground, await sending

    return load.run(run_both())


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_sweeps_starve_neither_recommendations_nor_ingestion(
    tmp_path: Path, bundle_store: Path, strength: Strength, figures: Figures
) -> None:
    seconds = strength.select(short=3.0, full=20.0)
    idle, during, sweeps, ratios = Load(), Load(), Load(), []
    with processes(tmp_path, bundle_store) as start:
        server = start()
        run_foreground(server, strength.select(short=1.0, full=5.0))
        alone = load.run(load.closed_loop(server.port, [SWEEP], clients=1, most=1))
        page_alone = load.run(load.closed_loop(server.port, [PAGE], clients=1, most=5))
        for _ in range(strength.select(short=1, full=3)):
            steady = run_foreground(server, seconds)
            rate = TIMES / alone.quantile(0.5)
            beside, sent = run_beside(server, [SWEEP, SWEEP, PAGE, SWEEP], rate * 4 / 3, seconds)
            ratios.append(beside.quantile(0.99) / steady.quantile(0.99))
            idle.add(steady)
            during.add(beside)
            sweeps.add(sent)
        after = run_foreground(server, seconds)
    figures.record(
        "R17",
        "sweeps of the largest size",
        sweep_alone_seconds=alone.quantile(0.5),
        offered_times_capacity=TIMES,
        p99_idle_seconds=idle.quantile(0.99),
        p99_beside_seconds=during.quantile(0.99),
        p99_ratio=median(ratios),
        p50_beside_seconds=during.quantile(0.5),
        failed=len(during.answers) - len(during.select(200)),
        sweeps_answered=len(sweeps.select(200, name=SWEEP.name)),
        sweeps_refused=len(sweeps.select(*SHED, name=SWEEP.name)),
        small_sweep_alone_seconds=page_alone.quantile(0.5),
        small_sweeps_answered=len(sweeps.select(200, name=PAGE.name)),
        small_sweeps_refused=len(sweeps.select(*SHED, name=PAGE.name)),
    )
    assert idle.statuses.keys() == during.statuses.keys() == after.statuses.keys() == {200}
    assert sweeps.statuses.keys() <= {200, *SHED}
    assert sweeps.select(200)
    assert all(int(answer.header("Retry-After") or 0) >= 1 for answer in sweeps.select(*SHED))
    if strength.is_full:
        assert median(ratios) <= 3
