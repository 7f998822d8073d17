"""Calling an endpoint without FastAPI's resolution of its parameters, where these are plain."""

from collections.abc import Awaitable, Callable
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, get_type_hints

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from pydantic import BaseModel, ValidationError

DirectCall = Callable[[Request, object], Awaitable[Response | None]]
"""Calls an endpoint with a request and its parsed body; None if the body is not valid."""


def build_direct_call(dependant: Dependant) -> DirectCall | None:
    """Build the direct call of an endpoint; None if FastAPI must resolve its parameters.

    FastAPI resolves a dozen kinds of parameters at every request, which costs more than to validate
    a body. An endpoint qualifies if its parameters are one body and dependencies that read nothing
    but the request, and if it returns a complete response. It validates as FastAPI does; what is
    not valid is left to FastAPI, which reports it.
    """
    endpoint, bodies = dependant.call, dependant.body_params
    others = (
        *_list_special_parameters(dependant),
        *_list_values(dependant),
        *(part for part in dependant.dependencies if not _reads_request_only(part)),
    )
    if endpoint is None or len(bodies) != 1 or others or not iscoroutinefunction(endpoint):
        return None
    if bodies[0].field_info.metadata or getattr(bodies[0].field_info, "embed", None):
        return None
    body_name, model = bodies[0].name, bodies[0].field_info.annotation
    returned = get_type_hints(endpoint).get("return")
    is_response = isinstance(returned, type) and issubclass(returned, Response)
    if not is_response or not isinstance(model, type) or not issubclass(model, BaseModel):
        return None
    # As FastAPI does; the codes of some errors depend on it.
    validate = partial(model.model_validate, from_attributes=True)
    providers = [
        (str(part.name), partial(_provide, part.call, str(part.request_param_name)))
        for part in dependant.dependencies
    ]

    async def call(request: Request, value: object) -> Response | None:
        try:
            values: dict[str, Any] = {body_name: validate(value)}
        except ValidationError:
            return None
        for name, provide in providers:
            values[name] = await provide(request)
        response: Response = await endpoint(**values)
        return response

    return call


async def _provide(dependency: Any, parameter: str, request: Request) -> object:
    return await dependency(**{parameter: request})


def _reads_request_only(part: Dependant) -> bool:
    read = (*_list_values(part), *part.body_params, *part.dependencies)
    is_plain = not read and part.name is not None and iscoroutinefunction(part.call)
    return is_plain and _list_special_parameters(part) == [part.request_param_name]


def _list_values(dependant: Dependant) -> list[object]:
    """List the parameters that are read from the path, the query, headers and cookies."""
    return [
        *dependant.path_params,
        *dependant.query_params,
        *dependant.header_params,
        *dependant.cookie_params,
    ]


def _list_special_parameters(dependant: Dependant) -> list[str]:
    """List the parameters that FastAPI fills in by their types, such as a `Request`."""
    names = (
        dependant.request_param_name,
        dependant.websocket_param_name,
        dependant.http_connection_param_name,
        dependant.response_param_name,
        dependant.background_tasks_param_name,
        dependant.security_scopes_param_name,
    )
    return [name for name in names if name is not None]
