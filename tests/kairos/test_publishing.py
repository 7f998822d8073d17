"""A published model is what a running service serves."""

from pathlib import Path

import polars as pl
import pytest

import kairos
from app.settings import Settings
from tests.app.client import running
from tests.processes import eventually

AT = "2024-02-01T00:00:00Z"


def test_a_running_service_answers_as_the_model_does(
    model: kairos.Model, events: pl.DataFrame, tmp_path: Path
) -> None:
    settings = Settings(
        database_url=f"sqlite:///{tmp_path / 'kairos.db'}",
        bundle_store=tmp_path / "bundles",
        poll_interval_seconds=0.02,
    )
    own = events.filter(pl.col("user_id") == "u14")
    history = own.select(
        "item_id", "action", timestamp=pl.col("timestamp").dt.to_string("iso:strict")
    )
    with running(settings) as client:
        assert model.publish(tmp_path / "bundles") == model.version
        assert client.get("/health/ready").status_code == 503  # published, not current
        model.publish(tmp_path / "bundles", activate=True)
        eventually(lambda: client.get("/health/ready").status_code == 200)
        answer = client.post(
            "/v1/recommendations",
            {
                "history": history.to_dicts(),
                "query_time": AT,
                "n": 5,
                "exclude_seen": False,
            },
        ).json()
    expected = model.recommend("u14", at=AT, n=5)
    assert answer["model_version"] == model.version
    assert [item["item_id"] for item in answer["items"]] == expected["item_id"].to_list()
    assert [item["score"] for item in answer["items"]] == pytest.approx(expected["score"].to_list())
