"""What a path or a query holds is understood as it was sent, or refused."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.app.client import Client, problem
from tests.architecture.repository import document

DESCRIPTION: dict[str, Any] = json.loads(document("docs/openapi.json"))
EVENT = {"user_id": "u1", "item_id": "i1", "action": "view", "timestamp": 1_767_225_600}


def list_targets() -> Iterator[tuple[str, str, list[str]]]:
    """List method, a path with ids, and the query parameters of every operation."""
    for path, operations in DESCRIPTION["paths"].items():
        for method, operation in operations.items():
            names = [one["name"] for one in operation.get("parameters", []) if one["in"] == "query"]
            filled = path.replace("{user_id}", "u1").replace("{item_id}", "i1")
            yield method.upper(), filled.replace("{version}", "v1"), names


TARGETS = list(list_targets())


@pytest.mark.parametrize(("method", "path", "names"), TARGETS)
def test_an_unknown_parameter_is_refused_everywhere(
    shared_client: Client, method: str, path: str, names: list[str]
) -> None:
    response = shared_client.request(method, f"{path}?unknown=1", json={})
    document = problem(response, 422, "validation_failed")
    assert [(error["where"], error["code"]) for error in document["errors"]] == [
        ("query.unknown", "unknown_parameter")
    ]
    assert all(f"'{name}'" in document["detail"] for name in names)
    assert "'unknown'" in document["detail"]


@pytest.mark.parametrize(("method", "path", "names"), [one for one in TARGETS if one[2]])
def test_a_repeated_parameter_is_refused_everywhere(
    shared_client: Client, method: str, path: str, names: list[str]
) -> None:
    for name in names:
        response = shared_client.request(method, f"{path}?{name}=1&{name}=1", json={})
        errors = problem(response, 422, "validation_failed")["errors"]
        assert [(error["where"], error["code"]) for error in errors] == [
            (f"query.{name}", "repeated_parameter")
        ]


def test_a_refused_parameter_names_the_nearest_one(shared_client: Client) -> None:
    detail = problem(shared_client.get("/v1/users?limt=3"), 422, "validation_failed")["detail"]
    assert "'prefix', 'limit' (nearest: 'limit'), but got 'limt'" in detail
    detail = problem(shared_client.get("/v1/models?x=3"), 422, "validation_failed")["detail"]
    assert "no query parameters, but got 'x'" in detail


def test_a_query_time_under_another_name_is_refused(shared_client: Client) -> None:
    path = "/v1/users/u1/recommendations?query_time=2010-01-01T00:00:00Z"
    problem(shared_client.get(path), 422, "validation_failed")


def test_thousands_of_parameters_are_few_errors(shared_client: Client) -> None:
    query = "&".join(f"p{number}" for number in range(5000))
    document = problem(shared_client.get(f"/v1/users?{query}"), 422, "validation_failed")
    assert len(document["errors"]) == 20


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("name", ["caf%E9", "%ff%fe", "%ED%A0%80", "%C0%AF", "a%2Fb%E9"])
def test_a_path_that_is_no_utf_8_is_refused(shared_client: Client, method: str, name: str) -> None:
    for kind in ("users", "items"):
        document = problem(
            shared_client.request(method, f"/v1/{kind}/{name}"), 422, "validation_failed"
        )
        assert "UTF-8" in document["detail"]


@pytest.mark.parametrize(("method", "path", "names"), TARGETS)
def test_a_query_that_is_no_utf_8_is_refused_everywhere(
    shared_client: Client, method: str, path: str, names: list[str]
) -> None:
    for name in [*names, "unknown"]:
        response = shared_client.request(method, f"{path}?{name}=%E9", json={})
        assert "UTF-8" in problem(response, 422, "validation_failed")["detail"]


def test_erasing_an_id_that_is_no_utf_8_erases_nobody(client: Client) -> None:
    events = [{**EVENT, "user_id": "caf\ufffd"}]
    assert client.post("/v1/events", {"events": events}).json()["accepted"] == 1
    assert client.request("DELETE", "/v1/users/caf%E9").status_code == 422
    assert len(client.get("/v1/users/caf%EF%BF%BD").json()["events"]) == 1
