"""The requests of an ordinary day, about the twenty items of `tests.app.tiny_bundle`."""

from tests.app.tiny_bundle import ITEM_IDS
from tests.promises.load import Request, request

DAY = 86_400
BEGAN = 1_767_225_600
ASKED_AT = BEGAN + 90 * DAY


def history(number: int, events: int = 50) -> list[dict[str, object]]:
    """The `number`th of many different histories, oldest first."""
    return [
        {
            "item_id": ITEM_IDS[(number * 7 + place * (1 + number % 5)) % len(ITEM_IDS)],
            "timestamp": BEGAN + number * 60 + place * 7 * 3600,
        }
        for place in range(events)
    ]


def inline(number: int, *, explain: str = "none", events: int = 50) -> Request:
    """A question that brings its history."""
    body = {"history": history(number, events), "query_time": ASKED_AT, "explain": explain}
    return request("POST", "/v1/recommendations", body, name=f"inline, explain {explain}")


def stored(number: int) -> Request:
    """A question about a user."""
    body = {"user_id": f"u{number}", "query_time": ASKED_AT}
    return request("POST", "/v1/recommendations", body, name="stored")


def ingest(number: int, events: int = 20) -> Request:
    """What a user did."""
    told = [
        {**event, "user_id": f"u{number}", "action": "view", "event_id": f"e{number}-{place}"}
        for place, event in enumerate(history(number, events))
    ]
    return request("POST", "/v1/events", {"events": told}, name="ingest")


def reads_and_writes(users: int = 100) -> list[Request]:
    """Six questions and two batches of events for each user: all of them right."""
    return [
        asked
        for number in range(users)
        for asked in (
            inline(number),
            ingest(number),
            stored(number),
            inline(number, explain="attention", events=100),
            request("GET", f"/v1/users/u{number}", name="history"),
            inline(number, events=5),
            ingest(number + users),
            stored(number),
        )
    ]


def everything(users: int = 100) -> list[Request]:
    """Reads, writes, explanations of every kind, probes, and requests that break a rule."""
    return [
        asked
        for number in range(users)
        for asked in (
            inline(number),
            inline(number, explain="attention"),
            inline(number, explain="heads", events=20),
            inline(number, explain="occlusion", events=10),
            stored(number),
            ingest(number),
            request("GET", f"/v1/users/u{number}", name="history"),
            request("GET", "/v1/items?limit=5", name="items"),
            request("GET", "/metrics", name="metrics") if number % 10 == 0 else inline(number),
            request("GET", "/health/ready", name="ready"),
            request("POST", "/v1/recommendations", {"n": 0, "x": [number] * 50}, name="wrong"),
            request("GET", f"/v1/models/m{number}", name="unknown version"),
            request("GET", f"/nothing/{number}", name="nowhere"),
        )
    ]
