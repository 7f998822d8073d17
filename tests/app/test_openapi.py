"""The API's description is a reviewed document."""

from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from app.main import create_app
from app.openapi import snapshot
from app.settings import Settings

SNAPSHOT = Path(__file__).parents[2] / "docs" / "openapi.json"


@pytest.fixture
def app(settings: Settings) -> FastAPI:
    return create_app(settings)


def operations(app: FastAPI) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{method} {path}", operation)
        for path, methods in app.openapi()["paths"].items()
        for method, operation in methods.items()
    ]


def test_the_description_is_the_reviewed_one(app: FastAPI) -> None:
    assert snapshot(app).decode() == SNAPSHOT.read_text(), (
        "the API changed: run `make openapi`, and review the difference in docs/openapi.json"
    )


def test_every_operation_is_described(app: FastAPI) -> None:
    assert app.openapi()["openapi"].startswith("3.1")
    for name, operation in operations(app):
        assert operation["summary"], name
        assert operation["description"], name
        assert operation["tags"], name


def test_every_failure_is_a_problem_document(app: FastAPI) -> None:
    for name, operation in operations(app):
        if "/v1/" not in name:
            continue
        assert "422" in operation["responses"], name
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                assert response["content"].keys() == {"application/problem+json"}, (name, status)
                assert response["description"].startswith("`"), (name, status)


def test_every_reference_leads_somewhere(app: FastAPI) -> None:
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
