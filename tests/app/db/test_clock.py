"""The service's clock follows the database's time, not the machine's."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.db.clock import ServiceClock, read_database_time, read_time
from app.db.engine import open_engine
from app.errors import DatabaseUnavailableError
from app.health.clock import synchronize_clock
from app.settings import Settings
from model.clock import MICROSECONDS_PER_SECOND, now
from tests.app.client import Client, running

SECOND = MICROSECONDS_PER_SECOND
HOUR = 3600 * SECOND


@dataclass
class Machine:
    """A machine whose clocks a test sets."""

    wall: int
    monotonic: int = 5

    def build_clock(self) -> ServiceClock:
        return ServiceClock(wall=lambda: self.wall, monotonic=lambda: self.monotonic)


@pytest.fixture
def engine(postgresql_url: str) -> Iterator[Engine]:
    engine = open_engine(postgresql_url)
    yield engine
    engine.dispose()


@pytest.mark.parametrize("skew", [-HOUR, 0, HOUR])
def test_the_clock_tells_the_time_of_postgresql(engine: Engine, skew: int) -> None:
    clock = ServiceClock(wall=lambda: now() + skew)
    assert not clock.is_synchronized
    assert abs(clock.now() - now() - skew) < HOUR / 2
    with Session(engine) as session:
        clock.synchronize(session)
        before = read_time(session)
        read = clock.now()
        after = read_time(session)
    # The estimate is off by less than the round trip, of which these two readings are as long.
    assert before - 10 * SECOND < read < after + 10 * SECOND
    assert clock.is_synchronized
    assert clock.offset_seconds == pytest.approx(skew / SECOND, abs=10)


def test_between_readings_steps_of_the_wall_clock_do_not_matter(engine: Engine) -> None:
    machine = Machine(wall=now())
    clock = machine.build_clock()
    with Session(engine) as session:
        clock.synchronize(session)
    first = clock.now()
    machine.wall += 24 * HOUR
    assert clock.now() == first
    machine.monotonic += 7
    assert clock.now() == first + 7


def test_with_sqlite_the_clock_is_that_of_the_machine(sqlite_url: str) -> None:
    machine = Machine(wall=HOUR)
    clock = machine.build_clock()
    engine = open_engine(sqlite_url)
    with Session(engine) as session:
        clock.synchronize(session)
    engine.dispose()
    assert (clock.now(), clock.offset_seconds, clock.is_synchronized) == (HOUR, 0.0, True)
    machine.wall = 3 * HOUR
    assert clock.now() == 3 * HOUR


@given(
    st.lists(st.tuples(st.integers(0, 5 * SECOND), st.integers(0, 5 * SECOND)), min_size=1),
    st.integers(-HOUR, HOUR),
)
def test_the_error_is_at_most_that_of_the_best_reading(
    trips: list[tuple[int, int]], ahead: int
) -> None:
    machine = Machine(wall=0)
    clock = machine.build_clock()
    best = 10 * SECOND
    for there, back in trips:
        clock._adjust(ahead - back, ahead + there)
        best = min(best, max(there, back))
        assert abs(clock.now() - machine.monotonic - ahead) <= best
    # A step of the database's clock, as at a failover, is followed at the next reading.
    clock._adjust(ahead + HOUR, ahead + HOUR)
    assert clock.now() == machine.monotonic + ahead + HOUR


def test_the_offset_is_exported_and_logged_once(
    settings: Settings, migrated_postgresql_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = {"database_url": migrated_postgresql_url, "poll_interval_seconds": 3600.0}
    with running(settings.model_copy(update=changed)) as client:
        assert abs(client.metric("kairos_clock_offset_seconds")) < 5
        skew_machine(client, HOUR)
        for _ in range(3):
            client.portal.call(synchronize_clock, client.app.state.context)
        assert client.metric("kairos_clock_offset_seconds") == pytest.approx(3600, abs=5)
    assert capsys.readouterr().out.count("clock_is_off") == 1


def test_without_a_database_the_log_says_so(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    url = "postgresql://nobody@127.0.0.1:9/none?connect_timeout=1"
    with running(settings.model_copy(update={"database_url": url})) as client:
        assert abs(client.app.state.context.clock.now() - now()) < HOUR
        assert "kairos_clock_offset_seconds NaN" in client.get("/metrics").text
        assert "clock" in client.get("/health/ready").json()["tasks"]
    assert "clock_not_synchronized" in capsys.readouterr().out


def test_a_command_reads_the_time_of_a_database(database_url: str) -> None:
    assert abs(read_database_time(database_url) - now()) < HOUR
    with pytest.raises(DatabaseUnavailableError, match="the database must answer"):
        read_database_time("postgresql://nobody@127.0.0.1:9/none")


def skew_machine(client: Client, by: int) -> None:
    client.app.state.context.clock._wall = lambda: now() + by
