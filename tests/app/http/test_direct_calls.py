"""Endpoints of plain parameters are called without FastAPI's resolution of these."""

from typing import Annotated, Any

import pytest
from fastapi import Body as BodyField
from fastapi import Depends, Query, Request, Response
from fastapi import routing as fastapi_routing
from fastapi.routing import APIRoute
from pydantic import AfterValidator, BaseModel

from app.http.direct_calls import build_direct_call
from tests.app.client import REQUEST, Client


class Body(BaseModel):
    number: int


async def get_method(request: Request) -> str:
    return request.method


async def plain(body: Body, method: Annotated[str, Depends(get_method)]) -> Response:
    return Response(f"{method} {body.number}")


async def takes_the_request(body: Body, request: Request) -> Response:
    return Response(f"{request.method} {body.number}")


async def takes_a_parameter(body: Body, much: Annotated[int, Query()]) -> Response:
    return Response(str(body.number + much))


async def returns_data(body: Body) -> dict[str, int]:
    return body.model_dump()


def runs_on_a_thread(body: Body) -> Response:
    return Response(str(body.number))


async def checks_more(body: Annotated[Body, AfterValidator(lambda one: one)]) -> Response:
    return Response(str(body.number))


async def reads_a_field(body: Annotated[Body, BodyField(embed=True)]) -> Response:
    return Response(str(body.number))


@pytest.mark.parametrize(
    ("endpoint", "is_direct"),
    [
        (plain, True),
        (takes_the_request, False),
        (takes_a_parameter, False),
        (returns_data, False),
        (runs_on_a_thread, False),
        (checks_more, False),
        (reads_a_field, False),
    ],
)
def test_only_plain_endpoints_are_called_directly(endpoint: Any, is_direct: bool) -> None:
    route = APIRoute("/", endpoint, methods=["POST"])
    assert (build_direct_call(route.dependant) is not None) == is_direct


def test_dependencies_of_a_route_are_left_to_fastapi() -> None:
    route = APIRoute("/", plain, methods=["POST"], dependencies=[Depends(get_method)])
    assert build_direct_call(route.dependant) is None


def test_a_valid_request_spares_the_resolution(
    shared_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolved = 0
    resolve = fastapi_routing.solve_dependencies

    async def count(**arguments: Any) -> Any:
        nonlocal resolved
        resolved += 1
        return await resolve(**arguments)

    monkeypatch.setattr(fastapi_routing, "solve_dependencies", count)
    assert shared_client.post("/v1/recommendations", REQUEST).status_code == 200
    assert resolved == 0
    assert shared_client.post("/v1/recommendations", {**REQUEST, "n": "3"}).status_code == 422
    assert resolved == 1
