"""Random requests get documented responses."""

from typing import Any
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.app.client import Client

pytestmark = pytest.mark.slow

THOROUGH = hypothesis_settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
BODIES = [("POST", "/v1/recommendations"), ("POST", "/v1/events"), ("PUT", "/v1/items")]

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=12) | st.sampled_from(
    ["", "u", "i1", "\0", "x" * 300, "2026-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "🦊"]
)
numbers = (
    st.sampled_from(
        [0, -1, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63), 2**64, 5e-324, 1e302, -1.7e308]
    )
    | st.integers(-(2**66), 2**66)
    | st.floats(allow_nan=False, allow_infinity=False)
)
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
)

_VALID: dict[str, dict[str, Any]] = {
    "/v1/recommendations": {
        "user_id": "u",
        "history": [{"item_id": "i1", "timestamp": 0, "action": "view"}],
        "merge": False,
        "query_time": "2026-01-01T00:00:00Z",
        "query_time_withheld": False,
        "n": 3,
        "exclude_seen": True,
        "exclude_item_ids": ["i2"],
        "include_item_ids": ["i1"],
        "strict": False,
        "explain": "attention",
    },
    "/v1/events": {
        "events": [
            {
                "event_id": "e",
                "user_id": "u",
                "item_id": "i1",
                "action": "view",
                "timestamp": 0,
                "value": 1.5,
                "recommendation_id": "r",
                "properties": {"a": [1]},
            }
        ]
    },
    "/v1/items": {
        "items": [
            {
                "item_id": "i1",
                "title": "One",
                "categories": ["c"],
                "available_from": 0,
                "properties": {"a": [1]},
            }
        ]
    },
}


@st.composite
def nearly_valid(draw: st.DrawFn, body: dict[str, Any]) -> dict[str, Any]:
    """Generate a valid request with one or two changed fields, nested ones included."""
    odd = dict(body)
    for name in draw(st.lists(st.sampled_from(sorted(body)), max_size=2)):
        match body[name]:
            case [dict() as inner] if draw(st.booleans()):
                odd[name] = [draw(nearly_valid(inner))]
            case _:
                odd[name] = draw(scalars | values)
    for name in draw(st.lists(st.sampled_from(sorted(body)), max_size=1)):
        del odd[name]
    return odd


def bodies(path: str) -> st.SearchStrategy[Any]:
    """Generate arbitrary JSON, and more often nearly valid requests."""
    return st.one_of(values, nearly_valid(_VALID[path]), nearly_valid(_VALID[path]))


def documented(app: FastAPI, method: str, path: str) -> set[int]:
    return {int(status) for status in app.openapi()["paths"][path][method.lower()]["responses"]}


@pytest.mark.parametrize(("method", "path"), BODIES)
@given(data=st.data())
@THOROUGH
def test_any_body_gets_a_documented_answer(
    client_on_either: Client, method: str, path: str, data: st.DataObject
) -> None:
    response = client_on_either.request(method, path, json=data.draw(bodies(path)))
    assert response.status_code in documented(client_on_either.app, method, path) - {503}


@pytest.mark.parametrize(("method", "path"), BODIES)
@given(body=st.binary(max_size=200))
@THOROUGH
def test_any_bytes_get_a_documented_answer(
    client: Client, method: str, path: str, body: bytes
) -> None:
    headers = {"Content-Type": "application/json"}
    response = client.request(method, path, content=body, headers=headers)
    assert response.status_code in documented(client.app, method, path) - {503}


@pytest.mark.parametrize("path", ["/v1/items", "/v1/users"])
@given(query=st.dictionaries(st.sampled_from(["q", "cursor", "limit", "prefix", "?"]), texts))
@THOROUGH
def test_any_query_gets_a_documented_answer(
    client_on_either: Client, path: str, query: dict[str, str]
) -> None:
    response = client_on_either.get(path, params=query)
    assert response.status_code in documented(client_on_either.app, "GET", path) - {503}


@pytest.mark.parametrize("folder", ["/v1/items", "/v1/users", "/v1/models", "/v1", "/dashboard"])
@given(name=texts)
@THOROUGH
def test_any_path_gets_an_answer(client: Client, folder: str, name: str) -> None:
    status = client.get(quote(f"{folder}/{name}")).status_code
    # A folder of static pages redirects to its address with a final slash.
    redirects = {307} if folder == "/dashboard" else set()
    assert status in {200, 404, 422} | redirects
