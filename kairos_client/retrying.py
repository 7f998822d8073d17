"""The attempts of one call: retries, deadline and errors, without any network or sleep.

`attempt_call` is a generator that yields `Send` and `Wait` steps; both clients execute them.
"""

import email.utils
import json
import logging
import random
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar

import httpx

from kairos_client.calls import Call, Idempotency
from kairos_client.errors import (
    BrokenRule,
    ConflictError,
    ForbiddenError,
    InvalidError,
    KairosError,
    NoResponseError,
    NotFoundError,
    RateLimitedError,
    ServiceFailedError,
    UnauthenticatedError,
    UnavailableError,
    UnexpectedResponseError,
)

T = TypeVar("T")

_log = logging.getLogger("kairos_client")

_ERROR_OF_STATUS: dict[int, type[KairosError]] = {
    HTTPStatus.BAD_REQUEST: InvalidError,
    HTTPStatus.UNAUTHORIZED: UnauthenticatedError,
    HTTPStatus.FORBIDDEN: ForbiddenError,
    HTTPStatus.NOT_FOUND: NotFoundError,
    HTTPStatus.METHOD_NOT_ALLOWED: InvalidError,
    HTTPStatus.CONFLICT: ConflictError,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: InvalidError,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: InvalidError,
    HTTPStatus.UNPROCESSABLE_ENTITY: InvalidError,
    HTTPStatus.TOO_MANY_REQUESTS: RateLimitedError,
    HTTPStatus.INTERNAL_SERVER_ERROR: ServiceFailedError,
    HTTPStatus.BAD_GATEWAY: NoResponseError,
    HTTPStatus.SERVICE_UNAVAILABLE: UnavailableError,
    HTTPStatus.GATEWAY_TIMEOUT: NoResponseError,
}
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


@dataclass(frozen=True, slots=True)
class Retries:
    """How often, how soon and until when a call is retried.

    The wait before the n-th retry is uniform between 0 and `first_wait_seconds * 2 ** (n - 1)`
    ("full jitter": clients that failed together do not retry together), added to the seconds of
    `Retry-After`; neither term exceeds `longest_wait_seconds`. A call fails at once if the wait
    would pass the deadline.

    Attributes:
        attempts: requests per call, including the first; 1 disables retries.
        deadline_seconds: limit of one call, including all attempts and waits.

    Raises:
        InvalidError: if a number is out of range.
    """

    attempts: int = 5
    first_wait_seconds: float = 0.2
    longest_wait_seconds: float = 10.0
    deadline_seconds: float = 60.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.deadline_seconds <= 0:
            raise InvalidError(
                "at least one attempt and a deadline above 0 seconds are needed, but got "
                f"{self.attempts} and {self.deadline_seconds}; use attempts=1 for no retries",
                code="retries_range",
            )

    def draw_wait(self, attempt: int, retry_after: float | None) -> float:
        """Draw the seconds to wait after a failed attempt; the first attempt is 1."""
        doubled = self.first_wait_seconds * 2.0 ** min(attempt - 1, 30)
        jitter = random.uniform(0, min(doubled, self.longest_wait_seconds))
        return min(retry_after or 0.0, self.longest_wait_seconds) + jitter


@dataclass(frozen=True, slots=True)
class RawResponse:
    """A complete HTTP response, not parsed."""

    status: int
    headers: httpx.Headers
    content: bytes

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300


@dataclass(frozen=True, slots=True)
class Send:
    """Step of `attempt_call`: send the request, and return its response or network error.

    Attributes:
        deadline: end of the call in seconds, on the clock of `attempt_call`.
    """

    call: Call[Any]
    deadline: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Step of `attempt_call`: sleep, and return None."""

    seconds: float


Outcome = RawResponse | httpx.RequestError | None
"""The result of a step."""


def attempt_call(
    call: Call[T], retries: Retries, *, clock: Callable[[], float] = time.monotonic
) -> Generator[Send | Wait, Outcome, T]:
    """Yield the steps of a call and return its result.

    Raises:
        KairosError: if the last attempt failed.
    """
    deadline = clock() + retries.deadline_seconds
    was_lost = False
    attempt = 0
    while True:
        attempt += 1
        outcome = yield Send(call, deadline)
        assert outcome is not None
        if isinstance(outcome, RawResponse) and _has_result(outcome, call):
            return call.parse(outcome.content)
        error = to_error(outcome)
        if was_lost and call.is_done_if_missing and isinstance(error, NotFoundError):
            return call.parse(b"")
        was_lost = was_lost or isinstance(error, NoResponseError)
        seconds = retries.draw_wait(attempt, error.retry_after)
        is_last = attempt >= retries.attempts or clock() + seconds >= deadline
        if is_last or not _may_retry(call, error):
            raise error
        _log.info("retrying %s in %.2f s: %s", call.name, seconds, error.code)
        yield Wait(seconds)


def _has_result(response: RawResponse, call: Call[Any]) -> bool:
    return response.is_success or response.status in call.result_statuses


def _may_retry(call: Call[Any], error: KairosError) -> bool:
    if call.idempotency is Idempotency.PROBE:
        return False
    # The service applies rate limits before it does anything else.
    had_no_effect = error.code == "no_connection" or isinstance(error, RateLimitedError)
    is_idempotent = call.idempotency is Idempotency.IDEMPOTENT
    return had_no_effect or (is_idempotent and isinstance(error, UnavailableError))


def require_time(send: Send, request: httpx.Request) -> None:
    """Stop reading a response that is still incomplete at the deadline.

    Raises:
        httpx.ReadTimeout: like httpx where no data arrives at all.
    """
    if time.monotonic() > send.deadline:
        raise httpx.ReadTimeout("the response was incomplete at the deadline", request=request)


def to_error(outcome: RawResponse | httpx.RequestError) -> KairosError:
    """Map a failed response or a network error to the client's exception."""
    if isinstance(outcome, RawResponse):
        return _build_status_error(outcome)
    reason = str(outcome) or type(outcome).__name__
    if isinstance(outcome, _NOT_SENT):
        return UnavailableError(
            f"the service must accept connections, but {reason}; check that it runs at this "
            "address",
            code="no_connection",
        )
    if isinstance(outcome, httpx.TransportError):
        return NoResponseError(
            f"a response must be complete, but {reason}; the request may have been carried out",
            code="lost_answer",
        )
    return UnexpectedResponseError(
        f"a response must be readable, but {reason}; check which program responds at this address",
        code="unreadable_answer",
    )


def _build_status_error(response: RawResponse) -> KairosError:
    kind = _ERROR_OF_STATUS.get(response.status, UnexpectedResponseError)
    problem = _parse_problem(response)
    if problem is None:
        content_type = response.headers.get("content-type", "no content type")
        return kind(
            f"an error response is application/problem+json, but {response.status} came with "
            f"{content_type[:80]}; check the proxies between this client and the service",
            code=f"http_{response.status}",
            status=response.status,
            request_id=response.headers.get("x-request-id"),
            retry_after=_parse_retry_after(response),
        )
    return kind(
        str(problem.get("detail", "")),
        code=str(problem.get("code", "")),
        status=response.status,
        request_id=str(problem.get("request_id", "")) or None,
        broken_rules=_parse_broken_rules(problem.get("errors")),
        retry_after=_parse_retry_after(response),
    )


def _parse_problem(response: RawResponse) -> dict[str, Any] | None:
    """Parse an RFC 9457 problem document; None if the body is something else."""
    if not response.headers.get("content-type", "").startswith("application/problem+json"):
        return None
    try:
        problem = json.loads(response.content)
    except ValueError:
        return None
    return problem if isinstance(problem, dict) else None


def _parse_broken_rules(rules: object) -> tuple[BrokenRule, ...]:
    return tuple(
        BrokenRule(str(rule.get("where")), str(rule.get("code")), str(rule.get("message")))
        for rule in (rules if isinstance(rules, list) else ())
        if isinstance(rule, dict)
    )


def _parse_retry_after(response: RawResponse) -> float | None:
    """Parse the seconds of `Retry-After`, given as a number or a date; None without one."""
    header = response.headers.get("retry-after", "")
    if header.isascii() and header.isdigit():
        return float(header)
    try:
        at = email.utils.parsedate_to_datetime(header)
        return max(0.0, at.timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
