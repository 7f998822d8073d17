"""R17: many expensive reads of a large database delay neither ingestion nor recommendations."""

import asyncio
from collections.abc import Iterable
from itertools import cycle
from pathlib import Path
from statistics import median

import pytest
from sqlalchemy import text

from app.db.engine import WRITES, open_engine
from migrations.run import upgrade
from model.clock import now
from model.store.store import BundleStore
from tests.processes import processes
from tests.promises import load, mixture
from tests.promises.figures import Figures
from tests.promises.load import Load, Request, build_request
from tests.promises.strength import Strength

READERS = 8
SHED = (429, 503)


def fill(database_url: str, version: str, impressions: int) -> None:
    """Store impressions of a version, two fifths of them clicked, and as many other events."""
    upgrade(database_url)
    numbers = (
        "(WITH RECURSIVE count(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM count "
        f"WHERE n < {impressions - 1}) SELECT n FROM count)"
    )
    at = now() - 1_000_000 * impressions
    user = "'v' || (n % 1000)"
    engine = open_engine(database_url)
    with engine.execution_options(**WRITES).begin() as connection:
        for statement in (
            "INSERT INTO recommendations (recommendation_id, user_id, model_version, at, item_ids)"
            f" SELECT 'r' || n, {user}, '{version}', {at} + n, '[\"i1\"]' FROM {numbers}",
            "INSERT INTO events (event_id, user_id, item_id, action, at, received_at, "
            f"recommendation_id) SELECT 'c' || n, {user}, 'i1', 'click', {at} + n, "
            f"{at} + n, CASE WHEN n % 5 < 2 THEN 'r' || n END FROM {numbers}",
        ):
            connection.execute(text(statement))
    engine.dispose()


def run_beside(
    port: int, foreground: Iterable[Request], background: list[Request], seconds: float
) -> tuple[Load, Load]:
    """Run two clients of the foreground, beside the readers of the background if it has any."""

    async def run_both() -> tuple[Load, Load]:
        loops = [load.closed_loop(port, foreground, clients=2, seconds=seconds)]
        if background:
            loops.append(load.closed_loop(port, background, clients=READERS, seconds=seconds))
        found = await asyncio.gather(*loops)
        return found[0], found[1] if background else Load()

    return load.run(run_both())


@pytest.mark.timeout(900)
def test_model_pages_and_lists_of_users_delay_no_other_request(
    tmp_path: Path, bundle_store: Path, strength: Strength, figures: Figures
) -> None:
    impressions = strength.select(short=5_000, full=1_000_000)
    seconds = strength.select(short=1.5, full=15.0)
    version = BundleStore(bundle_store).read_current() or ""
    url = f"sqlite:///{tmp_path / 'kairos.db'}"
    fill(url, version, impressions)
    reads = [
        build_request("GET", f"/v1/models/{version}", name="model page"),
        build_request("GET", "/v1/users?limit=500", name="users"),
    ]
    numbers = cycle(range(100_000))
    foreground = (
        build(next(numbers)) for build in cycle((mixture.build_ingest, mixture.build_inline))
    )
    ratios, idle, busy, readers = [], Load(), Load(), Load()
    with processes(tmp_path, bundle_store) as start:
        server = start(KAIROS_DATABASE_URL=url, KAIROS_REQUESTS_PER_SECOND="100000")
        run_beside(server.port, foreground, [], seconds)
        for _ in range(strength.select(short=1, full=3)):
            steady, _ = run_beside(server.port, foreground, [], seconds)
            beside, sent = run_beside(server.port, foreground, reads, seconds)
            ratios.append(beside.quantile(0.99) / steady.quantile(0.99))
            idle.add(steady)
            busy.add(beside)
            readers.add(sent)
        crashes = server.log.read_text().count("request_failed")
    failed = len(busy.answers) - len(busy.select(200))
    figures.record(
        "R17",
        f"{READERS} clients on model pages and lists of users, {impressions:,} impressions",
        p99_idle_seconds=idle.quantile(0.99),
        p99_beside_seconds=busy.quantile(0.99),
        p99_ratio=median(ratios),
        failed=failed,
        pages_per_second=readers.rate(),
        pages_shed=len(readers.select(*SHED)),
        page_p99_seconds=readers.quantile(0.99),
    )
    assert {*idle.statuses} == {200}
    assert {*readers.statuses} <= {200, *SHED}
    assert readers.select(200, name="model page")
    assert readers.select(200, name="users")
    assert (failed, crashes) == (0, 0)
    if strength.is_full:
        assert median(ratios) <= 3
