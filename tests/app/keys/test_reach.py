"""Keys that reach only some users: every operation that names a user, on both databases."""

from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

from app.keys.issuing import create_key
from app.keys.service import refresh_keys
from app.settings import Settings
from tests.app.client import Client, problem, running

AT = 1_767_225_600
OWN, OTHER = "acme/u1", "umbrella/u1"


class Operation(NamedTuple):
    """One operation that names a user: its role, and its request for a user."""

    role: str
    path: str
    body: dict[str, Any] | None = None


def event(user_id: str, **fields: object) -> dict[str, Any]:
    return {"user_id": user_id, "item_id": "i1", "action": "view", "timestamp": AT, **fields}


def locate(user_id: str) -> str:
    """The path of a user."""
    return f"/v1/users/{quote(user_id, safe='')}"


def operations(user_id: str) -> dict[str, Operation]:
    """The operations that a limited key may call, by method and path of their description."""
    named, path = {"user_id": user_id}, locate(user_id)
    return {
        "POST /v1/recommendations": Operation("read", "/v1/recommendations", named),
        "POST /v1/rankings": Operation("read", "/v1/rankings", {**named, "item_ids": ["i1"]}),
        "POST /v1/attention": Operation("read", "/v1/attention", {**named, "query_times": [AT]}),
        "POST /v1/events": Operation("ingest", "/v1/events", {"events": [event(user_id)]}),
        "GET /v1/users/{user_id}": Operation("read", path),
        "GET /v1/users/{user_id}/recommendations": Operation("read", f"{path}/recommendations"),
        "GET /v1/users/{user_id}/next-time": Operation("read", f"{path}/next-time"),
    }


class World(NamedTuple):
    """A running service, and the secrets of its keys by role; both reach `acme/` only."""

    client: Client
    secrets: dict[str, str]
    umbrella: str
    admin: str

    def send(self, name: str, user_id: str) -> Any:
        operation = operations(user_id)[name]
        method = name.partition(" ")[0]
        return self.call(method, operation.path, self.secrets[operation.role], operation.body)

    def call(self, method: str, path: str, secret: str, body: object = None) -> Any:
        headers = {"Authorization": f"Bearer {secret}"}
        content = {} if body is None else {"json": body}
        return self.client.request(method, path, headers=headers, **content)

    def post_event(self, secret: str, user_id: str, event_id: str) -> dict[str, Any]:
        body = {"events": [event(user_id, event_id=event_id)]}
        answer: dict[str, Any] = self.call("POST", "/v1/events", secret, body).json()
        return answer


@pytest.fixture
def world(settings: Settings, migrated_database_url: str) -> Iterator[World]:
    url = migrated_database_url
    secrets = {
        "read": create_key(url, "acme", "read", user_prefix="acme/").secret,
        "ingest": create_key(url, "acme", "ingest", user_prefix="acme/").secret,
    }
    umbrella = create_key(url, "umbrella", "ingest", user_prefix="umbrella/").secret
    admin = create_key(url, "ops", "admin").secret
    with running(settings.model_copy(update={"database_url": url})) as client:
        yield World(client, secrets, umbrella, admin)


def names_user(schema: Any, schemas: dict[str, Any]) -> bool:
    """Whether a schema has a field `user_id`, at any depth."""
    if isinstance(schema, dict):
        reference = schema.get("$ref", "").rpartition("/")[2]
        return (
            "user_id" in schema.get("properties", {})
            or (bool(reference) and names_user(schemas[reference], schemas))
            or any(names_user(each, schemas) for each in schema.values())
        )
    return isinstance(schema, list) and any(names_user(each, schemas) for each in schema)


def test_every_operation_that_names_a_user_is_tried(client: Client) -> None:
    description = client.app.openapi()
    naming = {
        f"{method.upper()} {path}"
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
        if "{user_id}" in path
        or names_user(operation.get("requestBody", {}), description["components"]["schemas"])
    }
    # No admin key is limited.
    assert naming - {"DELETE /v1/users/{user_id}"} == operations("u").keys()


@pytest.mark.parametrize("name", operations("u"))
def test_a_limited_key_reaches_its_own_users_only(world: World, name: str) -> None:
    refusal = problem(world.send(name, OTHER), 403, "forbidden")
    assert "begin with 'acme/'" in refusal["detail"]
    assert OTHER not in refusal["detail"]
    assert world.send(name, OWN).status_code in {200, 409}
    assert world.send(name, "ACME/u1").status_code == 403


def test_a_batch_with_an_event_of_another_user_stores_nothing(world: World) -> None:
    body = {"events": [event(OWN), {"user_id": 1}, event(OTHER)]}
    problem(world.call("POST", "/v1/events", world.secrets["ingest"], body), 403, "forbidden")
    assert world.call("GET", locate(OWN), world.admin).json()["events"] == []


def test_a_list_of_users_is_narrowed_down_to_the_reach(world: World) -> None:
    for user_id in (OWN, OTHER, "acme", "acme/u2"):
        body = {"events": [event(user_id)]}
        assert world.call("POST", "/v1/events", world.admin, body).status_code == 200

    def list_ids(query: str) -> list[str]:
        answer = world.call("GET", f"/v1/users{query}", world.secrets["read"])
        return [user["user_id"] for user in answer.json()["users"]]

    assert list_ids("") == [OWN, "acme/u2"]
    assert list_ids("?prefix=ac") == [OWN, "acme/u2"]
    assert list_ids("?prefix=acme/u2") == ["acme/u2"]
    refused = world.call("GET", "/v1/users?prefix=umbrella/", world.secrets["read"])
    problem(refused, 403, "forbidden")


def test_a_key_may_be_kept_from_listing_users(
    settings: Settings, migrated_database_url: str
) -> None:
    key = create_key(migrated_database_url, "shop", "read", may_list_users=False)
    update = {"database_url": migrated_database_url}
    with running(settings.model_copy(update=update)) as client:
        headers = {"Authorization": f"Bearer {key.secret}"}
        refusal = problem(client.get("/v1/users", headers=headers), 403, "forbidden")
        assert "may not list users" in refusal["detail"]
        assert client.get(locate(OWN), headers=headers).status_code == 200


def test_one_sender_cannot_take_the_event_ids_of_another(world: World) -> None:
    first = world.post_event(world.umbrella, OTHER, "order-1")
    second = world.post_event(world.secrets["ingest"], OWN, "order-1")
    again = world.post_event(world.secrets["ingest"], OWN, "order-1")
    plain = world.post_event(world.admin, "u1", "order-1")
    assert [each["accepted"] for each in (first, second, again, plain)] == [1, 1, 0, 1]
    assert again["duplicates"] == 1
    for user_id in (OTHER, OWN, "u1"):
        (stored,) = world.call("GET", locate(user_id), world.admin).json()["events"]
        assert stored["event_id"] == "order-1"


def test_keys_of_one_sender_share_their_event_ids(world: World) -> None:
    world.post_event(world.secrets["ingest"], OWN, "order-1")
    context = world.client.app.state.context
    next_key = create_key(context.settings.database_url, "next", "ingest", user_prefix="acme/")
    world.client.portal.call(refresh_keys, context)
    assert world.post_event(next_key.secret, OWN, "order-1")["duplicates"] == 1
