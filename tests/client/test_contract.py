"""The clients and the reviewed description of the API, held against each other."""

import inspect
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

import kairos_client
from kairos_client import AsyncKairosClient, Event, ItemDescription, KairosClient, PastEvent
from kairos_client.answers import (
    events,
    health,
    items,
    models,
    recommendations,
    training_runs,
    users,
)
from kairos_client.answers.answer import Answer
from tests.architecture.repository import document

DESCRIPTION = json.loads(document("docs/openapi.json"))
SCHEMAS: dict[str, Any] = DESCRIPTION["components"]["schemas"]
OPERATIONS: dict[str, dict[str, Any]] = {
    operation["operationId"]: operation
    for methods in DESCRIPTION["paths"].values()
    for operation in methods.values()
}
CLIENTS = (KairosClient, AsyncKairosClient)
BESIDES = {"every_item", "within", "perform", "close"}
"""What the clients do that is no operation by itself."""
IN_OTHER_WORDS = {
    "recommend": {"categories": {"any_categories", "no_categories"}},
}
"""Fields of bodies that are given by arguments of other names."""
TOLD = {"IncomingEvent": Event, "InlineEvent": PastEvent, "ItemDescription": ItemDescription}
ANSWERS = {
    name: model
    for module in (events, health, items, models, recommendations, training_runs, users)
    for name, model in vars(module).items()
    if inspect.isclass(model) and issubclass(model, Answer) and model is not Answer
}


def reached(schema: object) -> Iterator[str]:
    """The names of all schemas that one refers to, through others too."""
    if isinstance(schema, dict):
        name = str(schema.get("$ref", "")).rpartition("/")[2]
        if name:
            yield name
            yield from reached(SCHEMAS[name])
        for inner in schema.values():
            yield from reached(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from reached(inner)


ANSWERED = {
    name
    for operation in OPERATIONS.values()
    for status, response in operation["responses"].items()
    if status.startswith("2")
    for name in reached(response)
}


SHOWN = re.findall(
    r"^## (\w+) (\S+)$(?:(?!^## ).)*?```json\n(.*?)```", document("docs/api.md"), re.M | re.S
)
"""Method, path and answer of every section of the manual that shows one."""


def public_methods(client: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(client, inspect.isfunction) if name[0] != "_"}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_has_a_method_for_every_operation_and_no_other(client: type) -> None:
    assert public_methods(client) - BESIDES == {*OPERATIONS}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_method_takes_all_that_its_operation_takes(client: type, operation: str) -> None:
    method = getattr(client, operation)
    described = OPERATIONS[operation]
    expected = {parameter["name"] for parameter in described.get("parameters", [])}
    if "requestBody" in described:
        (content,) = described["requestBody"]["content"].values()
        for field in SCHEMAS[content["schema"]["$ref"].rpartition("/")[2]]["properties"]:
            expected |= IN_OTHER_WORDS.get(operation, {}).get(field, {field})
    assert {*inspect.signature(method).parameters} - {"self"} == expected
    assert method.__doc__


def test_both_clients_ask_alike() -> None:
    for operation in OPERATIONS:
        one, other = (getattr(client, operation) for client in CLIENTS)
        assert [*inspect.signature(one).parameters] == [*inspect.signature(other).parameters]
        assert one.__doc__ == other.__doc__


@pytest.mark.parametrize("schema", TOLD)
def test_what_is_told_has_all_fields_of_its_schema(schema: str) -> None:
    fields = {*inspect.signature(TOLD[schema]).parameters}
    assert fields == {*SCHEMAS[schema]["properties"]}


def test_every_answer_has_a_model_and_every_model_an_answer() -> None:
    assert {*ANSWERS} == ANSWERED


@pytest.mark.parametrize("name", sorted(ANSWERED))
def test_a_model_has_the_fields_of_its_schema(name: str) -> None:
    described, model = SCHEMAS[name], ANSWERS[name].model_json_schema()
    assert {*model["properties"]} == {*described["properties"]}
    assert {*model.get("required", [])} <= {*described.get("required", [])}


@pytest.mark.parametrize("name", sorted(ANSWERED))
def test_whatever_may_be_null_may_be_none(name: str) -> None:
    for field, described in SCHEMAS[name]["properties"].items():
        if {"type": "null"} in described.get("anyOf", []):
            info = ANSWERS[name].model_fields[field]
            assert not info.is_required(), field
            assert info.default is None, field


@pytest.mark.parametrize(("method", "path", "shown"), SHOWN)
def test_the_manual_shows_answers_that_the_client_reads(method: str, path: str, shown: str) -> None:
    response = DESCRIPTION["paths"][path][method.lower()]["responses"]["200"]
    model = ANSWERS[next(reached(response))]
    assert model.model_validate_json(shown).model_extra == {}


def test_an_answer_of_a_newer_service_is_read_and_nothing_of_it_lost() -> None:
    told = {"stored": 3, "kept": {"for_days": 90}}
    stored = items.StoredItems.model_validate(told)
    assert stored.model_extra == {"kept": {"for_days": 90}}


def test_an_answer_is_frozen() -> None:
    for model in ANSWERS.values():
        assert issubclass(model, BaseModel)
        assert model.model_config["frozen"]


def test_all_that_is_exported_is_there() -> None:
    assert all(hasattr(kairos_client, name) for name in kairos_client.__all__)
    assert kairos_client.__all__ == sorted(kairos_client.__all__)
