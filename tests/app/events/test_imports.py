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
from training.data.columns import ITEM_SCHEMA
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


def test_an_import_of_clicks_has_short_transactions(database_url: str) -> None:
    """Each transaction that counts clicks keeps those of requests waiting."""
    run.upgrade(database_url)
    table = events([("u", "i", AT + number) for number in range(1_500)])
    named = table.with_columns(
        recommendation_id=pl.when(pl.int_range(pl.len()) == 7).then(pl.lit("r"))
    )
    plain, with_clicks = list[int](), list[int]()
    import_events(database_url, table, on_chunk=plain.append)
    import_events(database_url, named, on_chunk=with_clicks.append)
    assert (plain, with_clicks) == ([1_500], [1_000, 500])


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


def items(**columns: Any) -> pl.DataFrame:
    rows: dict[str, Any] = {
        "item_id": ["i1", "i2"],
        "title": ["Old", None],
        "categories": [["a"], None],
    }
    return pl.DataFrame(rows | columns, ITEM_SCHEMA)


@pytest.mark.parametrize(
    ("column", "value", "shown"),
    [
        ("item_id", "i" * 257, "257 characters"),
        ("item_id", "", "''"),
        ("title", "t" * 1025, "1025 characters"),
        ("title", "nul\0", "nul"),
        ("categories", ["c"] * 101, "a list of 101"),
        ("categories", ["a", None], "null"),
        ("categories", [""], "''"),
        ("categories", ["nul\0"], "nul"),
    ],
)
def test_items_that_a_request_would_refuse_are_not_imported(
    database_url: str, column: str, value: object, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.upgrade(database_url)
    # The first row is in a transaction of its own.
    monkeypatch.setattr("app.imports.ITEM_CHUNK", 1)
    table = items(**{column: [items()[column][0], value]})
    with pytest.raises(EventSourceError, match=rf"row 2 .*column '{column}': .*but got .*{shown}"):
        import_items(database_url, table)
    assert read_items(database_url).is_empty()


def test_a_category_that_an_item_has_twice_is_stored_once(database_url: str) -> None:
    run.upgrade(database_url)
    import_items(database_url, items(categories=[["b", "a", "b"], []]))
    assert read_items(database_url)["categories"].to_list() == [["b", "a"], []]
