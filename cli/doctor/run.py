"""All checks, in the order of their dependencies."""

from app.db.clock import read_time
from app.health.repository import HealthRepository
from app.keys.repository import KeyRepository
from app.models.repository import ClickRepository
from app.settings import Settings
from app.training_runs.repository import TrainingRunRepository
from cli.doctor.activity import check_clicks, check_events, check_retraining
from cli.doctor.bundles import check_bundles, check_mirror
from cli.doctor.check import Checks, catch_errors
from cli.doctor.clocks import check_clocks
from cli.doctor.database import check_database, open_session
from cli.doctor.integrity import check_integrity, is_sqlite_file
from cli.doctor.keys import check_keys
from cli.doctor.orphans import check_orphans
from cli.doctor.settings import check_settings
from model.clock import now
from model.store.mirrored import MirroredStore

_REQUIRED_TO_READ = frozenset({"database", "database.schema"})
_REPORT_IT = "see the message; if it does not help, report it"


def run_checks(settings: Settings, integrity_seconds: float | None) -> Checks:
    """Run every check, without changing anything.

    Args:
        integrity_seconds: the time limit of reading the whole database; None for none.
    """
    yield from check_settings(settings)
    is_readable = True
    for check in catch_errors(
        lambda: check_database(settings.database_url), name="database", remedy=_REPORT_IT
    ):
        is_readable &= check.verdict != "failure" or check.name not in _REQUIRED_TO_READ
        yield check
    if is_readable or is_sqlite_file(settings.database_url):
        yield from catch_errors(
            lambda: check_integrity(settings.database_url, integrity_seconds),
            name="database.integrity",
            remedy=_REPORT_IT,
        )
    if is_readable:
        yield from catch_errors(
            lambda: _check_contents(settings), name="database", remedy=_REPORT_IT
        )
    yield from catch_errors(
        lambda: check_bundles(settings.bundle_directory, now(), settings.load_bundle_keys()),
        name="bundles",
        remedy=_REPORT_IT,
    )
    yield from catch_errors(
        lambda: _check_mirror(settings), name="bundles.mirror", remedy=_REPORT_IT
    )


def _check_mirror(settings: Settings) -> Checks:
    """Check the local copy of a store in an object store, if there is one."""
    store = settings.open_bundle_store()
    if isinstance(store, MirroredStore):
        yield from check_mirror(store)


def _check_contents(settings: Settings) -> Checks:
    """Run the checks that read the database's tables."""
    with open_session(settings.database_url) as session:
        at = read_time(session)
        yield from check_keys(settings, KeyRepository(session).list_all(), at)
        newest = HealthRepository(session).read_newest_arrival()
        yield check_events(newest, at)
        yield check_clicks(ClickRepository(session).compare_counts())
        yield check_retraining([*TrainingRunRepository(session).list_newest(1)], at)
        yield from check_clocks(session, settings.bundle_directory, newest)
        yield from check_orphans(session, settings.open_bundle_store())
