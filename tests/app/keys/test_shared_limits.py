"""The limit of a key holds for all processes together."""

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from sqlalchemy import Engine, event
from sqlalchemy.orm import Session

from app.auth.shared_limiter import Level, SharedLimiter, Usage
from app.db.database import Database
from app.keys.repository import BudgetRepository
from migrations.run import check

RATE = 10.0


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


class Budgets:
    """The database's part, on the tests' clock: the statements are tested below."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._levels: dict[str, tuple[float, float]] = {}
        self._wanted: dict[str, dict[str, int]] = {}

    def settle(self, process: str, usages: list[Usage]) -> dict[str, Level]:
        settled = {}
        for name, rate, used, arrived in usages:
            most, at = max(rate * 2, 1.0), self._clock()
            level, since = self._levels.get(name, (most, at))
            level = min(most, level + (at - since) * rate) - used
            self._levels[name] = (level, at)
            shares = self._wanted.setdefault(name, {})
            shares[process] = arrived
            settled[name] = Level(level, arrived / sum(shares.values()))
        return settled


def simulate(
    arrivals: list[float],
    *,
    seconds: int,
    settles: bool = True,
    seed: int = 0,
    rate: float = RATE,
) -> list[list[int]]:
    """Let requests arrive at processes for a while; return the admitted ones by second.

    Args:
        arrivals: requests a second at each process.
    """
    clock, chance = Clock(), random.Random(seed)
    budgets = Budgets(clock)
    processes = [SharedLimiter(most=10, clock=clock, draw=chance.random) for _ in arrivals]
    admitted = [[0] * len(arrivals) for _ in range(seconds)]
    for tick in range(seconds * 100):
        clock.at = tick / 100
        for number, (process, per_second) in enumerate(zip(processes, arrivals, strict=True)):
            for _ in range(int(per_second / 100) + (chance.random() < per_second / 100 % 1)):
                admitted[tick // 100][number] += process.take("key", rate) == 0
            # Each at a moment of its own.
            if settles and tick % 100 == 17 * number % 100:
                process.apply(budgets.settle(process.process, process.collect()))
    return admitted


@pytest.mark.parametrize("arrivals", [[40.0], [20.0, 20.0], [40.0, 40.0, 40.0, 40.0], [60.0, 1.0]])
def test_all_processes_together_admit_the_rate(arrivals: list[float]) -> None:
    admitted = simulate(arrivals, seconds=60)
    total = sum(map(sum, admitted))
    # A burst of two seconds, once, besides the rate.
    assert RATE * 58 <= total <= RATE * 62 + RATE * 2
    # Smoothly: no second admits nothing, or what several processes would by themselves.
    later = [sum(second) for second in admitted[20:]]
    assert min(later) > 0
    assert max(later) < RATE * 2.5


@pytest.mark.parametrize(
    ("rate", "processes"), [(1.0, 1), (1.0, 4), (1.0, 8), (0.1, 2), (0.1, 4), (2.0, 16), (5.0, 16)]
)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_low_limit_admits_its_rate(rate: float, processes: int, seed: int) -> None:
    admitted = simulate([20.0] * processes, seconds=150, rate=rate, seed=seed)
    # After the bursts of all processes were waited out.
    later = sum(map(sum, admitted[50:]))
    assert rate * 100 * 0.8 <= later <= rate * 100 * 1.05 + 1


def test_processes_admit_by_what_comes_to_them() -> None:
    admitted = simulate([90.0, 30.0], seconds=60)
    busy, quiet = (sum(second[number] for second in admitted[20:]) for number in (0, 1))
    assert 0.6 < busy / (busy + quiet) < 0.9


def test_a_quiet_key_is_never_refused() -> None:
    assert sum(map(sum, simulate([4.0, 4.0], seconds=60))) > 400


def test_a_process_by_itself_limits_as_before() -> None:
    total = sum(map(sum, simulate([40.0, 40.0], seconds=60, settles=False)))
    assert 2 * RATE * 60 <= total <= 2 * RATE * 62 + 4


def test_what_is_admitted_during_a_settlement_counts() -> None:
    limiter = SharedLimiter(most=10, clock=Clock())
    assert [limiter.take("key", 1.0) for _ in range(3)] == [0.0, 0.0, 1.0]
    assert limiter.collect() == [Usage("key", 1.0, 2, 3)]
    limiter.restore([Usage("key", 1.0, 2, 3)])
    assert limiter.collect() == [Usage("key", 1.0, 2, 3)]
    limiter.apply({"key": Level(2.0, 1.0), "unknown": Level(1.0, 1.0)})
    assert limiter.take("key", 1.0) == 0.0
    assert limiter.collect() == [Usage("key", 1.0, 1, 1)]
    assert limiter.collect() == []


@contextmanager
def open_database(url: str) -> Iterator[Database]:
    database = Database(url, threads=1, queue=0)
    try:
        yield database
    finally:
        database.close()


def settle(database: Database, process: str, *usages: Usage) -> dict[str, Level]:
    def work(session: Session) -> dict[str, Level]:
        return BudgetRepository(session).settle(process, usages)

    return database.write_blocking(work)


def test_the_database_holds_one_budget(migrated_postgresql_url: str) -> None:
    check(migrated_postgresql_url)
    with open_database(migrated_postgresql_url) as database:
        (level,) = settle(database, "a", Usage("key", 0.001, 1, 3)).values()
        assert level == Level(pytest.approx(0.0, abs=1e-3), 1.0)
        (level,) = settle(database, "b", Usage("key", 0.001, 1, 1)).values()
        assert level == Level(pytest.approx(-1.0, abs=1e-3), 0.25)
        levels = settle(database, "a", Usage("key", 0.001, 0, 1), Usage("other", 10.0, 5, 5))
        assert levels["key"] == Level(pytest.approx(-1.0, abs=1e-3), 0.5)
        assert levels["other"] == Level(pytest.approx(15.0, abs=0.5), 1.0)
        (level,) = settle(database, "b", Usage("other", 1e6, 0, 5)).values()
        assert level.tokens <= 2e6
        database.write_blocking(lambda session: BudgetRepository(session).delete_old())
        (level,) = settle(database, "a", Usage("other", 10.0, 0, 5)).values()
        assert level.share == 0.5


def test_many_keys_cost_as_many_statements_as_one(migrated_postgresql_url: str) -> None:
    statements: list[str] = []

    def note(_: object, __: object, statement: str, *___: object) -> None:
        statements.append(statement)

    costs = []
    with open_database(migrated_postgresql_url) as database:
        settle(database, "a", Usage("before", 10.0, 1, 1))
        event.listen(Engine, "before_cursor_execute", note)
        try:
            for keys in (1, 300):
                statements.clear()
                settle(database, "a", *(Usage(f"{key:03}", 10.0, key, 1) for key in range(keys)))
                costs.append(len(statements))
            levels = settle(database, "b", Usage("299", 10.0, 0, 1), Usage("before", 10.0, 0, 1))
        finally:
            event.remove(Engine, "before_cursor_execute", note)
    assert costs[0] == costs[1]
    assert levels["299"].tokens == pytest.approx(20 - 299, abs=20)
    assert levels["before"].tokens > 18


def test_settlements_at_once_take_turns(migrated_postgresql_url: str) -> None:
    usages = [Usage(f"key {number}", 0.001, 1, 1) for number in range(5)]

    def run(process: str) -> None:
        with open_database(migrated_postgresql_url) as database:
            for _ in range(10):
                settle(database, process, *usages)

    with ThreadPoolExecutor(4) as pool:
        [*pool.map(run, "abcd")]
    with open_database(migrated_postgresql_url) as database:
        levels = settle(database, "e", *usages)
    assert {round(level.tokens) for level in levels.values()} == {1 - 40 - 1}
