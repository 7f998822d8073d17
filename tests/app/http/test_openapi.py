"""The OpenAPI description equals its reviewed snapshot, and describes every part."""

import ast
import asyncio
import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from pydantic import BaseModel, TypeAdapter

from app.attention import schemas as attention
from app.errors import ServiceError
from app.events import schemas as events
from app.http.openapi import serialize_openapi
from app.items import schemas as items
from app.main import create_app
from app.models import schemas as models
from app.rankings import schemas as rankings
from app.recommendations import schemas as recommendations
from app.settings import Settings
from tests.app.client import Client, recommend

PUBLISHED = {
    "recommend": "post /v1/recommendations",
    "rank": "post /v1/rankings",
    "sweep": "post /v1/attention",
    "ingest": "post /v1/events",
    "put_items": "put /v1/items",
    "list_items": "get /v1/items",
    "read_item": "get /v1/items/{item_id}",
    "delete_item": "delete /v1/items/{item_id}",
    "list_similar": "get /v1/items/{item_id}/similar",
    "read_popularity": "get /v1/items/{item_id}/popularity",
    "list_users": "get /v1/users",
    "read_user": "get /v1/users/{user_id}",
    "erase_user": "delete /v1/users/{user_id}",
    "recommend_to_user": "get /v1/users/{user_id}/recommendations",
    "read_next_time": "get /v1/users/{user_id}/next-time",
    "list_models": "get /v1/models",
    "describe_model": "get /v1/models/{version}",
    "read_map": "get /v1/models/{version}/map",
    "activate_model": "post /v1/models/{version}/activate",
    "roll_back": "post /v1/models/rollback",
    "read_traffic": "get /v1/models/traffic",
    "put_traffic": "put /v1/models/traffic",
    "list_changes": "get /v1/models/changes",
    "list_training_runs": "get /v1/training-runs",
    "read_audit": "get /v1/audit",
    "read_caller": "get /v1/caller",
    "read_metrics": "get /v1/metrics",
    "live": "get /health/live",
    "ready": "get /health/ready",
    "metrics": "get /metrics",
}
"""Operation ids that clients depend on, as first published."""
REQUESTS: dict[str, type[BaseModel]] = {
    name: model
    for module in (attention, events, items, models, rankings, recommendations)
    for name, model in vars(module).items()
    if inspect.isclass(model) and issubclass(model, BaseModel)
}

SNAPSHOT = Path(__file__).parents[3] / "docs" / "openapi.json"


@pytest.fixture
def app(settings: Settings) -> FastAPI:
    return create_app(settings)


def operations(app: FastAPI) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{method} {path}", operation)
        for path, methods in app.openapi()["paths"].items()
        for method, operation in methods.items()
    ]


def test_the_description_equals_the_reviewed_snapshot(app: FastAPI) -> None:
    assert serialize_openapi(app).decode() == SNAPSHOT.read_text(), (
        "the API changed: run `make docs`, and review the difference in docs/openapi.json"
    )


def test_every_operation_is_described(app: FastAPI) -> None:
    description = app.openapi()
    assert description["openapi"].startswith("3.1")
    assert description["info"]["license"] == {"name": "MIT", "identifier": "MIT"}
    for name, operation in operations(app):
        assert operation["summary"], name
        assert len(operation["summary"]) <= 60, name
        assert operation["description"], name
        for parameter in operation.get("parameters", []):
            assert parameter["description"], (name, parameter["name"])
        for status, response in operation["responses"].items():
            assert response["description"] != "Successful Response", (name, status)


def test_operation_ids_of_generated_clients_are_stable(app: FastAPI) -> None:
    named = {operation["operationId"]: name for name, operation in operations(app)}
    assert len(named) == len(operations(app))
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+){0,3}", name) for name in named)
    assert PUBLISHED.items() <= named.items(), "generated clients depend on these names"


def test_every_tag_is_described_and_used(app: FastAPI) -> None:
    used = [tag for _, operation in operations(app) for tag in operation["tags"]]
    assert {tag["name"] for tag in app.openapi()["tags"]} == {*used}
    assert len(used) == len(operations(app)), "one tag for each"


def test_every_schema_has_a_plain_name(app: FastAPI) -> None:
    for name, schema in app.openapi()["components"]["schemas"].items():
        assert re.fullmatch(r"([A-Z][a-z]+)+", name), name
        assert schema["description"], name
        assert not name.startswith("Body"), name


def test_every_field_of_a_request_is_described(app: FastAPI) -> None:
    for name, schema in bodies(app).items():
        for field, described in schema["properties"].items():
            assert "description" in described, (name, field)


def test_every_body_has_an_example_that_is_valid(app: FastAPI) -> None:
    for name, schema in bodies(app).items():
        assert schema["examples"], name
        for example in schema["examples"]:
            TypeAdapter(REQUESTS[name]).validate_json(json.dumps(example))
            assert example.keys() <= schema["properties"].keys()


def test_every_failure_is_a_problem_document_with_codes(app: FastAPI) -> None:
    known = {
        (str(error.status), error.code): error for error in _all_of(ServiceError) if error.code
    }
    for name, operation in operations(app):
        if "/v1/" not in name:
            continue
        assert "422" in operation["responses"], name
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                assert response["content"].keys() == {"application/problem+json"}, (name, status)
                sentences = response["description"].split("; ")
                codes = [re.match(r"`(\w+)`: \S", sentence) for sentence in sentences]
                assert all(codes), (name, status)
                errors = [known[status, code[1]] for code in codes if code]
                may_wait = any(error.retry_after is not None for error in errors)
                assert may_wait == ("Retry-After" in response.get("headers", {})), (name, status)


def test_every_operation_with_a_body_documents_body_errors(app: FastAPI) -> None:
    for name, operation in operations(app):
        has_body = "requestBody" in operation
        assert has_body == ({"400", "413", "415"} <= operation["responses"].keys()), name


def test_every_operation_under_v1_needs_a_key_and_no_other_does(app: FastAPI) -> None:
    for name, operation in operations(app):
        is_guarded = "/v1/" in name
        assert is_guarded == ("security" in operation), name
        assert is_guarded == (operation.get("x-role") in {"read", "ingest", "admin"}), name
        assert is_guarded == ({"401", "403", "429"} <= operation["responses"].keys()), name


def bodies(app: FastAPI) -> dict[str, dict[str, Any]]:
    """The schemas of request bodies, by name."""
    schemas = app.openapi()["components"]["schemas"]
    names = {
        content["schema"]["$ref"].rpartition("/")[2]
        for _, operation in operations(app)
        for content in operation.get("requestBody", {}).get("content", {}).values()
    }
    return {name: schemas[name] for name in names}


def _all_of(parent: type[ServiceError]) -> list[type[ServiceError]]:
    children = parent.__subclasses__()
    return children + [error for child in children for error in _all_of(child)]


def test_every_reference_resolves(app: FastAPI) -> None:
    description = app.openapi()
    schemas = description["components"]["schemas"]
    prefix = "#/components/schemas/"
    references = set(_references(description))
    assert references <= {prefix + name for name in schemas}
    assert {prefix + name for name in schemas} == references


def _references(value: object) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [found for inner in value.values() for found in _references(inner)]
    if isinstance(value, list):
        return [found for inner in value for found in _references(inner)]
    return []


def test_the_description_is_derived_off_the_event_loop(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    derived = []

    def derive() -> dict[str, Any]:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        derived.append({"openapi": "3.1.0"})
        return derived[-1]

    monkeypatch.setattr(client.app, "openapi", derive)
    assert [client.get("/openapi.json").json()] == derived


def test_no_request_builds_a_route(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    parse, parsed = ast.parse, []

    def record(source: Any, *options: Any, **named: Any) -> ast.AST:
        parsed.append(source)
        tree: ast.AST = parse(source, *options, **named)
        return tree

    monkeypatch.setattr(ast, "parse", record)
    for operation in PUBLISHED.values():
        method, path = operation.split()
        content: dict[str, Any] = {"json": {}} if method in {"post", "put"} else {}
        response = client.request(method.upper(), re.sub(r"{\w+}", "x", path), **content)
        assert response.status_code < 500
    recommend(client)
    monkeypatch.undo()
    assert parsed == []
