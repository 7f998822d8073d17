"""Everything that is looked at, in the order in which it depends on one another."""

from app.health.repository import HealthRepository
from app.keys.repository import KeyRepository
from app.settings import Settings
from app.training_runs.repository import TrainingRunRepository
from cli.doctor_checks.activity import check_of_events, check_of_retraining
from cli.doctor_checks.bundles import checks_of_bundles
from cli.doctor_checks.check import Checks, surviving
from cli.doctor_checks.database import checks_of_database, reading
from cli.doctor_checks.keys import checks_of_keys
from cli.doctor_checks.settings import checks_of_settings
from model.clock import now

_FOUNDATIONS = frozenset({"database", "database.schema"})
_REPORT_IT = "see the message; where it does not help, report it"


def examine(settings: Settings) -> Checks:
    """Look at everything, and change nothing."""
    yield from checks_of_settings(settings)
    is_usable = True
    for check in surviving(
        lambda: checks_of_database(settings.database_url), name="database", remedy=_REPORT_IT
    ):
        # Without its tables there is nothing in it to look at.
        is_usable &= check.verdict != "failure" or check.name not in _FOUNDATIONS
        yield check
    if is_usable:
        yield from surviving(lambda: _contents(settings), name="database", remedy=_REPORT_IT)
    yield from surviving(
        lambda: checks_of_bundles(settings.bundle_store, now()), name="bundles", remedy=_REPORT_IT
    )


def _contents(settings: Settings) -> Checks:
    at = now()
    with reading(settings.database_url) as session:
        yield from checks_of_keys(settings, KeyRepository(session).all(), at)
        yield check_of_events(HealthRepository(session).newest_event(), at)
        yield check_of_retraining([*TrainingRunRepository(session).newest(1)], at)
