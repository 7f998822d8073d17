"""Checks of what belongs together: impressions and versions, stored items and the catalog."""

from collections.abc import Iterator

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.db.tables import ModelChange, StoredItem, StoredRecommendation
from cli.doctor.check import Check, Checks, ok, warning
from model.errors import BundleError
from model.store.store import BundleStore

_LEAST_KNOWN_SHARE = 0.5
_SHOWN = 3


def check_orphans(session: Session, store: BundleStore) -> Checks:
    """Compare the contents of the database with those of the store."""
    yield _check_impressions(session, store)
    yield from _check_items(session, store)


def _check_impressions(session: Session, store: BundleStore) -> Check:
    changes = session.execute(select(ModelChange.version, ModelChange.previous_version).distinct())
    known = {version for row in changes for version in row} | {*store.list_versions()}
    shown = [*_list_shown_versions(session)]
    unknown = [version for version in shown if version not in known]
    if not unknown:
        return ok("impressions", f"of {len(shown)} versions, all published or once activated")
    return warning(
        "impressions",
        f"impressions name {len(unknown)} versions that are not in the store and were never "
        f"activated ({', '.join(unknown[:_SHOWN])}): their clicks say nothing about any model",
        "check that KAIROS_DATABASE_URL and KAIROS_BUNDLE_STORE are of the same service",
    )


def _list_shown_versions(session: Session) -> Iterator[str]:
    """List the versions of all impressions, by one look at the index for each."""
    column = StoredRecommendation.model_version
    version = session.scalar(select(func.min(column)))
    while version is not None:
        yield version
        version = session.scalar(select(func.min(column)).where(column > version))


def _check_items(session: Session, store: BundleStore) -> Checks:
    try:
        catalog = store.open().catalog
    except (BundleError, OSError):
        return  # the check of the bundles reports it
    stored = {*session.scalars(select(StoredItem.item_id).where(StoredItem.deleted_at.is_(None)))}
    known = len(stored.intersection(catalog.item_ids))
    finding = (
        f"the current version knows {known} of {len(stored)} stored items; "
        f"{len(catalog) - known} of its {len(catalog)} are not stored"
    )
    if stored and known < _LEAST_KNOWN_SHARE * len(stored):
        yield warning(
            "items",
            f"{finding}: the others cannot be recommended",
            "run kairos retrain; if that does not help, compare the ids of items and events",
        )
    else:
        yield ok("items", finding)
