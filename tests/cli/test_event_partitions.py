"""The `kairos partition-events` and `kairos prune-events` commands."""

import json

import pytest

from app.db.partitions import Month
from app.imports import count_events, import_events
from model.clock import now
from tests import tiny
from tests.app.conftest import (  # noqa: F401 - fixtures
    migrated_postgresql_url,
    postgresql_server,
    postgresql_template,
)
from tests.cli.world import kairos


@pytest.fixture
def url(migrated_postgresql_url: str) -> str:  # noqa: F811
    """A database with an event at the beginning of each of the last eight months."""
    first = [(f"u{ago}", "i1", Month.of(now()).add(-ago).begins_at) for ago in range(8)]
    assert import_events(migrated_postgresql_url, tiny.event_log(first)).stored == 8
    return migrated_postgresql_url


def test_old_months_are_dropped_on_request(url: str) -> None:
    refused = kairos(*("prune-events", "--keep-months", 5, "--yes", "--database", url), exit_code=1)
    assert "run kairos partition-events" in refused.output
    assert "8 events moved" in kairos("partition-events", "--yes", "--database", url).output
    assert "0 events moved" in kairos("partition-events", "--yes", "--database", url).output
    assert "in partitions already" in kairos("partition-events", "--database", url).output
    planned = kairos("prune-events", "--keep-months", 5, "--dry-run", "--database", url)
    assert "3 events from before" in planned.output
    assert count_events(url) == 8
    kairos("prune-events", "--keep-months", 5, "--yes", "--database", url)
    assert count_events(url) == 5
    shown = json.loads(kairos("audit", "--json", "--database", url).stdout)
    assert [entry["act"] for entry in shown] == ["prune_events"]


def test_events_stay_for_longer_than_impressions(url: str) -> None:
    kairos("partition-events", "--yes", "--database", url)
    refused = kairos(*("prune-events", "--keep-months", 3, "--yes", "--database", url), exit_code=1)
    assert "KAIROS_RECOMMENDATION_DAYS" in refused.output
    assert count_events(url) == 8


def test_sqlite_has_no_partitions() -> None:
    assert "need PostgreSQL" in kairos("partition-events", "--yes", exit_code=1).output
    # Nobody is asked before.
    assert "need PostgreSQL" in kairos("partition-events", exit_code=1).output
    refused = kairos("prune-events", "--keep-months", 12, "--yes", exit_code=1)
    assert "need PostgreSQL" in refused.output
