"""R21: after a week of everything at once, the database holds what was acknowledged, no more."""

import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from app.db.engine import open_engine, parse_url
from tests.app import tiny_bundle
from tests.processes import processes
from tests.promises import load
from tests.promises.figures import Figures
from tests.promises.strength import Strength
from tests.promises.week import BATCH, Plan, Reading, Week

WEEK_SECONDS = 7 * 86_400
LONGEST_LIFE_SHARE = 0.2
"""Share of the run from which a process lived long enough to tell whether it grew."""
RECIPE = """
[split]
kind = "by_time"
test = 0.1
validation = 0.1

[encoder]
kind = "markov"

[gate]
questions = 10
may_lose = 1.0
popularity_lead = -1.0
p95_seconds = 30.0
"""
PAUSES = {
    "swap": 10.0,
    "erasure": 5.0,
    "restart": 60.0,
    "backup": 450.0,
    "retraining": 600.0,
}


@pytest.mark.timeout(3 * 3600)
def test_a_week_loses_no_event_and_keeps_no_erased_user(
    tmp_path: Path, bundle_store: Path, database_url: str, strength: Strength, figures: Figures
) -> None:
    # At short strength everything happens a few times in half a minute.
    pace = strength.select(short=1 / 100, full=1.0)
    versions = [tiny_bundle.publish(bundle_store, seed=seed) for seed in (2, 3, 4)]
    (tmp_path / "counting.toml").write_text(RECIPE)
    plan = Plan(
        events=strength.select(short=40_000, full=10_000_000),
        began_at=time.time() - WEEK_SECONDS - 3600,
        pauses={name: max(seconds * pace, 1.0) for name, seconds in PAUSES.items()},
        events_per_second=strength.select(short=2_000, full=3_500),
    )
    with processes(tmp_path, bundle_store) as start:
        week = Week(
            plan=plan,
            start=start,
            environment={
                "KAIROS_DATABASE_URL": database_url,
                "KAIROS_BUNDLE_STORE": str(bundle_store),
                "KAIROS_LOG_LEVEL": "warning",
                "KAIROS_POPULARITY_INTERVAL_SECONDS": "10",
            },
            store=bundle_store,
            versions=versions,
            recipe=tmp_path / "counting.toml",
            directory=tmp_path,
        )
        began = time.monotonic()
        load.run(week.run())
        wall = time.monotonic() - began
        log = (tmp_path / "log").read_text()
    stored, doubled, of_erased, unknown = count_stored(database_url, week)
    growth = [grow for life in week.lives if (grow := measure_growth(life, wall)) is not None]
    figures.record(
        "R21",
        f"a week, {parse_url(database_url).get_backend_name()}",
        minutes=round(wall / 60),
        acknowledged=sum(week.acknowledged) * BATCH,
        lost=week.count_lasting_events() - stored,
        twice=doubled,
        of_erased_users=of_erased,
        never_sent=unknown,
        erased_users=len(week.erased),
        happened=", ".join(f"{name} {count}" for name, count in sorted(week.happened.items())),
        recommendations=sum(n for (name, _), n in week.answers.items() if name == "recommend"),
        unexpected_answers=len(week.unexpected),
        ingest_p99_seconds=quantile(week.seconds["ingest"], 0.99),
        recommend_p99_seconds=quantile(week.seconds["recommend"], 0.99),
        memory_growth=max((memory for memory, _, _ in growth), default=None),
        file_growth=max((files for _, files, _ in growth), default=None),
        thread_growth=max((threads for _, _, threads in growth), default=None),
    )
    assert [(answer.name, answer.status, answer.body) for answer in week.unexpected] == []
    assert all(week.acknowledged)
    assert (stored, doubled, of_erased, unknown) == (week.count_lasting_events(), 0, 0, 0)
    assert "request_failed" not in log
    assert {"swap", "erasure", "restart"} <= week.happened.keys()
    if strength.is_full:
        assert week.happened.keys() >= PAUSES.keys()
        assert growth
        assert all(
            memory < 0.15 and files <= 16 and threads <= 2 for memory, files, threads in growth
        )


def count_stored(database_url: str, week: Week) -> tuple[int, int, int, int]:
    """Count the stored events: all, those there twice, those of erased users, those never sent."""
    seen = bytearray(week.plan.batches * BATCH)
    doubled = of_erased = unknown = 0
    for event_id, user_id in stream_events(database_url):
        batch, _, index = event_id.removeprefix("e").partition("-")
        place = int(batch) * BATCH + int(index)
        if not event_id.startswith("e") or place >= len(seen):
            unknown += 1
            continue
        doubled += seen[place]
        seen[place] = 1
        of_erased += user_id in week.erased
    return sum(seen), doubled, of_erased, unknown


def stream_events(database_url: str) -> Iterator[tuple[str, str]]:
    """Read the ids and users of all events, without holding all of them in memory."""
    engine = open_engine(database_url)
    try:
        with engine.connect().execution_options(yield_per=50_000) as connection:
            rows = connection.execute(text("SELECT event_id, user_id FROM events"))
            for event_id, user_id in rows:
                yield str(event_id), str(user_id)
    finally:
        engine.dispose()


def measure_growth(life: list[Reading], wall: float) -> tuple[float, int, int] | None:
    """Compare the last third of a life with its second; None for a short life.

    Returns:
        The growth of resident memory as a share, of open files and of threads.
    """
    if not life or life[-1].second - life[0].second < LONGEST_LIFE_SHARE * wall:
        return None
    third = len(life) // 3
    middle, last = life[third : 2 * third], life[2 * third :]

    def compare(read: str) -> float:
        before = statistics.median(getattr(one, read) for one in middle)
        return statistics.median(getattr(one, read) for one in last) - before

    resident = statistics.median(one.resident for one in middle)
    return compare("resident") / resident, round(compare("files")), round(compare("threads"))


def quantile(seconds: list[float], share: float) -> float:
    """Select a quantile of measured seconds."""
    return sorted(seconds)[int(share * (len(seconds) - 1))]
