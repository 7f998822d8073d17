"""Recommendation requests of the tests: histories, and calls that check the schema."""

from typing import Any

from pydantic import TypeAdapter

from app.http.types import format_instant
from app.recommendations.schemas import RecommendationAnswer
from tests.app.client import Client
from tests.app.tiny_bundle import FIRST_AT, HOUR

QUERY_TIME = FIRST_AT + 10 * HOUR
RESPONSE_CONFIG = TypeAdapter(RecommendationAnswer)


def build_inline(*item_ids: str) -> list[dict[str, Any]]:
    """Build an inline history, one event per hour."""
    return [
        {"item_id": item_id, "timestamp": format_instant(FIRST_AT + number * HOUR)}
        for number, item_id in enumerate(item_ids)
    ]


def build_stored(user_id: str, *item_ids: str) -> dict[str, Any]:
    """Build the same history as events to store."""
    return {
        "events": [
            {**event, "user_id": user_id, "action": "view"} for event in build_inline(*item_ids)
        ]
    }


def recommend(client: Client, **body: Any) -> dict[str, Any]:
    """Request recommendations at `QUERY_TIME`; check the schema of the answer."""
    response = client.post("/v1/recommendations", {"query_time": format_instant(QUERY_TIME)} | body)
    assert response.status_code == 200, response.text
    RESPONSE_CONFIG.validate_json(response.content)
    answer: dict[str, Any] = response.json()
    return answer


def list_ids(answer: dict[str, Any]) -> list[str]:
    return [item["item_id"] for item in answer["items"]]


def attended(answer: dict[str, Any]) -> list[str]:
    return [event["item_id"] for event in answer["attention"]["events"]]
