"""Typical mixtures of requests about the twenty items of `tests.app.tiny_bundle`."""

from tests.app.tiny_bundle import ITEM_IDS
from tests.promises.load import Request, build_request

DAY = 86_400
FIRST_AT = 1_767_225_600
QUERY_TIME = FIRST_AT + 90 * DAY


def build_history(number: int, events: int = 50) -> list[dict[str, object]]:
    """Build the `number`th of many different histories, oldest first."""
    return [
        {
            "item_id": ITEM_IDS[(number * 7 + index * (1 + number % 5)) % len(ITEM_IDS)],
            "timestamp": FIRST_AT + number * 60 + index * 7 * 3600,
        }
        for index in range(events)
    ]


def build_inline(number: int, *, explain: str = "none", events: int = 50) -> Request:
    """Build a recommendation request with an inline history."""
    body = {"history": build_history(number, events), "query_time": QUERY_TIME, "explain": explain}
    return build_request("POST", "/v1/recommendations", body, name=f"inline, explain {explain}")


def build_stored(number: int) -> Request:
    """Build a recommendation request for a stored user."""
    body = {"user_id": f"u{number}", "query_time": QUERY_TIME}
    return build_request("POST", "/v1/recommendations", body, name="stored")


def build_sweep(number: int) -> Request:
    """Build a sweep over the last ten days of an inline history."""
    instants = [QUERY_TIME - day * DAY for day in range(10)]
    body = {"history": build_history(number), "query_times": instants, "n": 5}
    return build_request("POST", "/v1/attention", body, name="sweep")


def build_ingest(number: int, events: int = 20) -> Request:
    """Build a batch of a user's events."""
    batch = [
        {**event, "user_id": f"u{number}", "action": "view", "event_id": f"e{number}-{index}"}
        for index, event in enumerate(build_history(number, events))
    ]
    return build_request("POST", "/v1/events", {"events": batch}, name="ingest")


def build_reads_and_writes(users: int = 100) -> list[Request]:
    """Build six reads and two batches of events for each user, all of them valid."""
    return [
        request
        for number in range(users)
        for request in (
            build_inline(number),
            build_ingest(number),
            build_stored(number),
            build_inline(number, explain="attention", events=100),
            build_request("GET", f"/v1/users/u{number}", name="history"),
            build_inline(number, events=5),
            build_ingest(number + users),
            build_stored(number),
        )
    ]


def build_every_kind(users: int = 100) -> list[Request]:
    """Build requests of every kind that does not change what is served, and invalid ones."""
    return [
        request
        for number in range(users)
        for request in (
            build_inline(number),
            build_inline(number, explain="attention"),
            build_inline(number, explain="heads", events=20),
            build_inline(number, explain="occlusion", events=10),
            build_stored(number),
            build_ingest(number),
            build_request("GET", f"/v1/users/u{number}", name="history"),
            build_request("GET", "/v1/items?limit=5", name="items"),
            build_inline(number)
            if number % 10
            else build_request("GET", "/metrics", name="metrics"),
            build_request("GET", "/health/ready", name="ready"),
            build_request(
                "POST", "/v1/recommendations", {"n": 0, "x": [number] * 50}, name="invalid"
            ),
            build_request("GET", f"/v1/models/m{number}", name="unknown version"),
            build_request("GET", f"/nothing/{number}", name="unknown path"),
            build_sweep(number),
            build_request(
                "POST",
                "/v1/rankings",
                {"history": build_history(number), "item_ids": ITEM_IDS[:8]},
                name="rankings",
            ),
            build_request("GET", f"/v1/items/i{number % 20}/similar", name="similar"),
            build_request("GET", f"/v1/items/i{number % 20}/popularity", name="popularity"),
            build_request("GET", "/v1/users?limit=5", name="users"),
            build_request("GET", "/v1/models", name="models"),
            build_request(
                "PUT",
                "/v1/items",
                {"items": [{"item_id": f"i{number % 20}", "title": f"Title {number}"}]},
                name="item changes",
            ),
            build_request("DELETE", f"/v1/users/erased{number}", name="erasure"),
        )
    ]
