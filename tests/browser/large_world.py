"""A service with many items, many versions and a user with a long history."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.app import tiny_bundle
from tests.processes import Server

USER, EVENTS = "heavy", 10_000
_MINUTES_APART = 14
_AT_ONCE = 1000
"""Items or events of one request."""


@dataclass(frozen=True)
class Large:
    """What a large service holds.

    Attributes:
        items: how many items the model has; all of them are stored, too.
        versions: how many versions are published, of which the last one serves.
    """

    server: Server
    items: int
    versions: int


def publish(root: Path, *, items: int, versions: int) -> None:
    """Publish small versions, and then one with many items."""
    for seed in range(versions - 1):
        tiny_bundle.publish(root, seed, activate=False)
    tiny_bundle.publish(root, versions, items=items)


def store_items(server: Server, items: int) -> None:
    """Store every item of the last version."""
    for first in range(0, items, _AT_ONCE):
        numbers = range(first, min(items, first + _AT_ONCE))
        stored = [{"item_id": f"i{number}", "title": f"Item {number}"} for number in numbers]
        server.http.put("/v1/items", json={"items": stored}, timeout=60).raise_for_status()


def store_events(server: Server, items: int) -> None:
    """Store the events of the user, of which no two have the same instant."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for first in range(0, EVENTS, _AT_ONCE):
        events = [
            {
                "user_id": USER,
                "item_id": f"i{7 * number % items}",
                "action": "purchase",
                "timestamp": (start + timedelta(minutes=_MINUTES_APART * number)).isoformat(),
            }
            for number in range(first, first + _AT_ONCE)
        ]
        server.http.post("/v1/events", json={"events": events}, timeout=60).raise_for_status()
