"""Calls: one request to the service, the parser of its response, and when it may be retried."""

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import (
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    TypeVar,
    final,
    get_args,
    overload,
)

from pydantic import ValidationError

from kairos_client.encoding import encode_json
from kairos_client.errors import UnexpectedResponseError
from kairos_client.responses.response import Response

P = ParamSpec("P")
T = TypeVar("T")
ResponseT = TypeVar("ResponseT", bound=Response)


class Idempotency(Enum):
    """Which failures of a call are retried."""

    IDEMPOTENT = "every transient failure: a repetition has no further effect"
    NOT_IDEMPOTENT = "only if the service did nothing: no connection, or a rate limit"
    PROBE = "none: the failure is the result"


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request and the parser of its response.

    Attributes:
        name: the `operationId` of the OpenAPI description.
        path: with percent-encoded ids and the query string.
        parse: turns the response's body into the result; raises UnexpectedResponseError.
        idempotency: which failures are retried.
        content: the request's body.
        result_statuses: statuses besides 2xx whose body is a result and not a problem.
        is_done_if_missing: whether a 404 after a lost response means success, because the lost
            request deleted the resource.
    """

    name: str
    method: str
    path: str
    parse: Callable[[bytes], T]
    idempotency: Idempotency
    content: bytes | None = None
    result_statuses: frozenset[int] = frozenset()
    is_done_if_missing: bool = False


def get(name: str, path: str, response: type[ResponseT]) -> Call[ResponseT]:
    """Describe a GET request, retried after transient failures."""
    return Call(name, "GET", path, parse_as(response), Idempotency.IDEMPOTENT)


def send_json(
    name: str,
    path: str,
    fields: Mapping[str, object],
    response: type[ResponseT],
    *,
    method: str = "POST",
    idempotency: Idempotency = Idempotency.IDEMPOTENT,
) -> Call[ResponseT]:
    """Describe a request with a JSON body; idempotent by default.

    Raises:
        InvalidError: if JSON cannot hold the fields.
    """
    return Call(name, method, path, parse_as(response), idempotency, content=encode_json(fields))


def parse_as(response: type[ResponseT]) -> Callable[[bytes], ResponseT]:
    """Build a parser of JSON bodies of one response model."""

    def parse(content: bytes) -> ResponseT:
        try:
            return response.model_validate_json(content)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            location = "/".join(map(str, first["loc"]))
            raise UnexpectedResponseError(
                f"a response has the fields of {response.__name__}, but {error.error_count()} are "
                f"wrong, first #/{location}: {first['msg'].lower()}; check which program and "
                "version responds at this address",
                code="unexpected_answer",
            ) from error

    return parse


def parse_nothing(_: bytes) -> None:
    """Ignore the body of an operation that returns none."""


def parse_text(content: bytes) -> str:
    """Decode a plain-text body."""
    return content.decode()


class SyncPerformer(Protocol):
    """A client that blocks until the result of a call is available."""

    def perform(self, call: Call[T], /) -> T:
        """Perform a call, and return its result."""
        ...


class AsyncPerformer(Protocol):
    """A client whose calls are awaited."""

    async def perform(self, call: Call[T], /) -> T:
        """Perform a call, and return its result."""
        ...


@final
class operation(Generic[P, T]):  # noqa: N801 - a decorator
    """Decorates a method that returns a `Call`, so that a client's method performs the call.

    On a client with a synchronous `perform` the method returns the call's result; on one with an
    asynchronous `perform` it is a coroutine function. Signature and docstring are kept.
    """

    def __init__(self, describe: Callable[Concatenate[Any, P], Call[T]]) -> None:
        def method(client: SyncPerformer, /, *args: P.args, **kwargs: P.kwargs) -> T:
            return client.perform(describe(client, *args, **kwargs))

        async def async_method(client: AsyncPerformer, /, *args: P.args, **kwargs: P.kwargs) -> T:
            return await client.perform(describe(client, *args, **kwargs))

        self._method = _copy_signature(describe, method)
        self._async_method = _copy_signature(describe, async_method)

    @overload
    def __get__(self, client: None, owner: type) -> Callable[..., Any]: ...
    @overload
    def __get__(self, client: SyncPerformer, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncPerformer, owner: type) -> Callable[P, Awaitable[T]]: ...
    def __get__(self, client: object, owner: Any) -> Callable[..., Any]:
        is_async = inspect.iscoroutinefunction(owner.perform)
        function = self._async_method if is_async else self._method
        method: Callable[..., Any] = function if client is None else function.__get__(client, owner)
        return method


def _copy_signature(describe: Callable[..., Any], method: Any) -> Any:
    """Copy name, docstring and signature, with the call's result as the return type."""
    functools.update_wrapper(method, describe)
    signature = inspect.signature(describe)
    (result,) = get_args(signature.return_annotation)
    method.__signature__ = signature.replace(return_annotation=result)
    return method
