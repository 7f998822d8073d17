"""Imports of files into the database, together with requests; on both databases."""

from typing import Any

import polars as pl
import pytest

from app.imports import count_events, import_events, import_items
from app.settings import Settings
from migrations import run
from model.clock import to_datetime
from model.errors import EventSourceError
from tests.app.client import running
from tests.tiny import event_log
from training.data.sources import read_events, read_items

AT = 1_767_225_600_123_456
HAPPENED = [("ü", "i1", AT), ("ü", "i2", AT), ("v/w", "i1", AT + 1)]
TWICE = [*HAPPENED, HAPPENED[0]]


def as_request(happened: list[tuple[str, str, int]]) -> dict[str, Any]:
    return {
        "events": [
            {"user_id": u, "item_id": i, "action": "view", "timestamp": to_datetime(at).isoformat()}
            for u, i, at in happened
        ]
    }


def events(happened: list[tuple[str, str, int]]) -> pl.DataFrame:
    return event_log(happened, action="view")


def test_training_reads_the_imported_rows(database_url: str) -> None:
    run.upgrade(database_url)
    assert import_events(database_url, events(TWICE)).stored == 4
    assert read_events(database_url).equals(events(TWICE))


def test_importing_again_adds_nothing(database_url: str) -> None:
    run.upgrade(database_url)
    import_events(database_url, events(TWICE))
    assert import_events(database_url, events(TWICE)).stored == 0
    assert count_events(database_url) == 4


def test_events_sent_and_then_imported_are_stored_once(
    settings: Settings, database_url: str
) -> None:
    with running(settings.model_copy(update={"database_url": database_url})) as client:
        assert client.post("/v1/events", as_request(HAPPENED)).json()["accepted"] == 3
        assert import_events(database_url, events(HAPPENED)).stored == 0
        assert (
            import_events(database_url, events(TWICE)).stored == 1
        )  # a repeated row, which only a file can contain


def test_events_imported_and_then_sent_are_stored_once(
    settings: Settings, database_url: str
) -> None:
    with running(settings.model_copy(update={"database_url": database_url})) as client:
        assert import_events(database_url, events(HAPPENED)).stored == 3
        answer = client.post("/v1/events", as_request(HAPPENED)).json()
        assert answer == {"accepted": 0, "duplicates": 3, "rejected": []}


@pytest.mark.parametrize("item_id", ["i" * 257, "nul\0", "line\nbreak"])
def test_rows_that_a_request_would_refuse_are_not_imported(database_url: str, item_id: str) -> None:
    run.upgrade(database_url)
    with pytest.raises(EventSourceError, match=r"row 2, column 'item_id': .* at most 256"):
        import_events(database_url, events([HAPPENED[0], ("ü", item_id, AT)]))
    assert count_events(database_url) == 0


def test_imported_items_replace_stored_ones(database_url: str) -> None:
    run.upgrade(database_url)
    items = pl.DataFrame({"item_id": ["i1"], "title": ["Old"], "categories": [["a"]]})
    import_items(database_url, items)
    import_items(database_url, items.with_columns(title=pl.lit("Neü")))
    assert read_items(database_url).rows() == [("i1", "Neü", ["a"])]
