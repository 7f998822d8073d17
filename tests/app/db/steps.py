"""The cost of work on an SQLite database, which does not depend on the speed of the machine."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.orm import Session


def count_steps(engine: Engine, work: Callable[[Session], Any]) -> int:
    """Count the steps of SQLite's virtual machine for a transaction, in tens; closes the engine."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    # After those of the engine itself.
    event.listen(
        engine, "connect", lambda connection, _: connection.set_progress_handler(count, 10)
    )
    with Session(engine) as session, session.begin():
        work(session)
    engine.dispose()
    return steps
