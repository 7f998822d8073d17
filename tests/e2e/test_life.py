"""The whole life of a recommendation, across every part of the system."""

from pathlib import Path

import polars as pl
import pytest

from app.settings import Settings
from model.clock import to_datetime
from model.store.store import BundleStore
from tests import tiny
from tests.app.client import Client, running
from tests.processes import eventually
from tests.training.progress import SilentProgress
from training.config import FitConfig, RunConfig
from training.data.sources import read_events, read_items
from training.data.split import ByTimeConfig
from training.run import train

RECIPE = RunConfig(
    split=ByTimeConfig(test=0.15, validation=0.15),
    encoder=tiny.ENCODER,
    fit=FitConfig(epochs=3, tokens=300, warmup_steps=2, refit=True),
)


def test_events_become_recommendations_with_their_attention(tmp_path: Path) -> None:
    database_url = f"sqlite:///{tmp_path / 'kairos.db'}"
    store = BundleStore(tmp_path / "bundles")
    happened = tiny.gap_world(users=30, length=8)
    settings = Settings(
        database_url=database_url, bundle_store=store.root, poll_interval_seconds=0.02
    )
    with running(settings) as client:
        assert client.get("/health/ready").status_code == 503
        assert send(client, happened) == len(happened)

        events = read_events(database_url)
        assert events.sort("user_id", "timestamp").equals(happened.sort("user_id", "timestamp"))
        outcome = train(
            RECIPE, events, read_items(database_url), tmp_path / "run", progress=SilentProgress()
        )
        version = store.add_copy(outcome.bundle)

        eventually(lambda: client.get("/health/ready").status_code == 200)
        own = happened.filter(user_id="u7")
        soon, later = (
            client.post(
                "/v1/recommendations",
                {
                    "user_id": "u7",
                    "query_time": to_datetime(
                        own["timestamp"].to_physical()[-1] + wait
                    ).isoformat(),
                    "explain": "heads",
                },
            ).json()
            for wait in (tiny.DAY // 48, 14 * tiny.DAY)
        )
    assert soon["model_version"] == version
    assert (soon["fallback"], soon["history_used"]) == (None, RECIPE.encoder.max_history)
    assert {item["reason"] for item in soon["items"]} == {"model"}
    assert not {item["item_id"] for item in soon["items"]} & {*own["item_id"]}
    read = soon["attention"]["events"]
    assert [event["item_id"] for event in read] == own["item_id"].to_list()[-len(read) :]
    assert {event["title"] for event in read} == {f"Title of {event['item_id']}" for event in read}
    assert sum(event["weight"] for event in read) == pytest.approx(1, abs=1e-5)
    moved = [event["weight"] for event in later["attention"]["events"]]
    assert moved != pytest.approx([event["weight"] for event in read], abs=1e-6)


def send(client: Client, happened: pl.DataFrame) -> int:
    """Send events and items to the service; answers how many events it took."""
    items = [{"item_id": item_id, "title": f"Title of {item_id}"} for item_id in tiny.ITEM_IDS]
    assert client.put("/v1/items", {"items": items}).json()["stored"] == len(items)
    sent = happened.select(
        "user_id", "item_id", "action", timestamp=pl.col("timestamp").dt.to_string("iso:strict")
    )
    return int(client.post("/v1/events", {"events": sent.to_dicts()}).json()["accepted"])
