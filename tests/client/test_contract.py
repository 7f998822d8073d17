"""Both clients against the OpenAPI description: operations, parameters and fields."""

import inspect
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

import kairos_client
from kairos_client import AsyncKairosClient, Event, ItemDescription, KairosClient, PastEvent
from kairos_client.responses import (
    audit,
    events,
    health,
    items,
    models,
    overview,
    recommendations,
    users,
)
from kairos_client.responses.response import Response
from tests.architecture.repository import document

DESCRIPTION = json.loads(document("docs/openapi.json"))
SCHEMAS: dict[str, Any] = DESCRIPTION["components"]["schemas"]
OPERATIONS: dict[str, dict[str, Any]] = {
    operation["operationId"]: operation
    for methods in DESCRIPTION["paths"].values()
    for operation in methods.values()
}
CLIENTS = (KairosClient, AsyncKairosClient)
OTHER_METHODS = {"iter_items", "with_timeout", "perform", "close"}
"""Client methods that are not operations."""
RENAMED_FIELDS = {
    "recommend": {"categories": {"any_categories", "no_categories"}},
}
"""Fields of request bodies that have arguments of other names."""
SENT_MODELS = {"IncomingEvent": Event, "InlineEvent": PastEvent, "ItemDescription": ItemDescription}
RESPONSE_MODELS = {
    name: model
    for module in (audit, events, health, items, models, overview, recommendations, users)
    for name, model in vars(module).items()
    if inspect.isclass(model) and issubclass(model, Response) and model is not Response
}


def referenced_schemas(schema: object) -> Iterator[str]:
    """Yields the names of all schemas that one refers to, directly or not."""
    if isinstance(schema, dict):
        name = str(schema.get("$ref", "")).rpartition("/")[2]
        if name:
            yield name
            yield from referenced_schemas(SCHEMAS[name])
        for inner in schema.values():
            yield from referenced_schemas(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from referenced_schemas(inner)


RESPONSE_SCHEMAS = {
    name
    for operation in OPERATIONS.values()
    for status, response in operation["responses"].items()
    if status.startswith("2")
    for name in referenced_schemas(response)
}


MANUAL_RESPONSES = re.findall(
    r"^## (\w+) (\S+)$(?:(?!^## ).)*?```json\n(.*?)```", document("docs/api.md"), re.M | re.S
)
"""Method, path and response of every section of the manual that shows one."""


def public_methods(client: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(client, inspect.isfunction) if name[0] != "_"}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_has_exactly_one_method_per_operation(client: type) -> None:
    assert public_methods(client) - OTHER_METHODS == {*OPERATIONS}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_method_has_the_parameters_of_its_operation(client: type, operation: str) -> None:
    method = getattr(client, operation)
    described = OPERATIONS[operation]
    expected = {parameter["name"] for parameter in described.get("parameters", [])}
    if "requestBody" in described:
        (content,) = described["requestBody"]["content"].values()
        for field in SCHEMAS[content["schema"]["$ref"].rpartition("/")[2]]["properties"]:
            expected |= RENAMED_FIELDS.get(operation, {}).get(field, {field})
    assert {*inspect.signature(method).parameters} - {"self"} == expected
    assert method.__doc__


def test_both_clients_have_the_same_signatures() -> None:
    for operation in OPERATIONS:
        one, other = (getattr(client, operation) for client in CLIENTS)
        assert [*inspect.signature(one).parameters] == [*inspect.signature(other).parameters]
        assert one.__doc__ == other.__doc__


@pytest.mark.parametrize("schema", SENT_MODELS)
def test_a_sent_model_has_the_fields_of_its_schema(schema: str) -> None:
    fields = {*inspect.signature(SENT_MODELS[schema]).parameters}
    assert fields == {*SCHEMAS[schema]["properties"]}


def test_response_schemas_and_response_models_correspond() -> None:
    assert {*RESPONSE_MODELS} == RESPONSE_SCHEMAS


@pytest.mark.parametrize("name", sorted(RESPONSE_SCHEMAS))
def test_a_response_model_has_the_fields_of_its_schema(name: str) -> None:
    described, model = SCHEMAS[name], RESPONSE_MODELS[name].model_json_schema()
    assert {*model["properties"]} == {*described["properties"]}
    assert {*model.get("required", [])} <= {*described.get("required", [])}


@pytest.mark.parametrize("name", sorted(RESPONSE_SCHEMAS))
def test_a_nullable_field_defaults_to_none(name: str) -> None:
    for field, described in SCHEMAS[name]["properties"].items():
        if {"type": "null"} in described.get("anyOf", []):
            info = RESPONSE_MODELS[name].model_fields[field]
            assert not info.is_required(), field
            assert info.default is None, field


@pytest.mark.parametrize(("method", "path", "shown"), MANUAL_RESPONSES)
def test_responses_in_the_manual_parse_without_extra_fields(
    method: str, path: str, shown: str
) -> None:
    response = DESCRIPTION["paths"][path][method.lower()]["responses"]["200"]
    model = RESPONSE_MODELS[next(referenced_schemas(response))]
    assert model.model_validate_json(shown).model_extra == {}


def test_fields_of_a_newer_service_are_kept() -> None:
    stored = items.StoredItems.model_validate({"stored": 3, "kept": {"for_days": 90}})
    assert stored.model_extra == {"kept": {"for_days": 90}}


def test_response_models_are_frozen() -> None:
    for model in RESPONSE_MODELS.values():
        assert issubclass(model, BaseModel)
        assert model.model_config["frozen"]


def test_all_exported_names_exist_and_are_sorted() -> None:
    assert all(hasattr(kairos_client, name) for name in kairos_client.__all__)
    assert kairos_client.__all__ == sorted(kairos_client.__all__)
