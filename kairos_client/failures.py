"""What a reply, or the want of one, says about why a request failed."""

import email.utils
import json
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import httpx

from kairos_client.errors import (
    BrokenRule,
    ConflictError,
    ForbiddenError,
    InvalidError,
    KairosError,
    LostAnswerError,
    NotFoundError,
    RateLimitedError,
    ServiceFailedError,
    UnauthenticatedError,
    UnavailableError,
    UnexpectedAnswerError,
)

_BY_STATUS: dict[int, type[KairosError]] = {
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
    HTTPStatus.BAD_GATEWAY: LostAnswerError,
    HTTPStatus.SERVICE_UNAVAILABLE: UnavailableError,
    HTTPStatus.GATEWAY_TIMEOUT: LostAnswerError,
}
# The request did not leave, or no connection took it.
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


Unanswered = httpx.RequestError
"""What stands in for a reply that did not come."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, whole."""

    status: int
    headers: httpx.Headers
    content: bytes

    @property
    def is_success(self) -> bool:
        """Whether it was done as asked."""
        return 200 <= self.status < 300


def failure_of(outcome: Reply | Unanswered) -> KairosError:
    """Why an exchange failed: as the service says it, or as the network shows it."""
    if isinstance(outcome, Reply):
        return _refused(outcome)
    what = str(outcome) or type(outcome).__name__
    if isinstance(outcome, _NEVER_SENT):
        return UnavailableError(
            f"the service must take connections, but {what}; see that it runs at this address",
            code="no_connection",
        )
    if isinstance(outcome, httpx.TransportError):
        return LostAnswerError(
            f"an answer must arrive whole, but {what}; the request may have been carried out",
            code="lost_answer",
        )
    return UnexpectedAnswerError(
        f"an answer must be readable, but {what}; see what answers at this address",
        code="unreadable_answer",
    )


def _refused(reply: Reply) -> KairosError:
    kind = _BY_STATUS.get(reply.status, UnexpectedAnswerError)
    problem = _problem(reply)
    if problem is None:
        declared = reply.headers.get("content-type", "nothing")
        return kind(
            f"a failure is told as application/problem+json, but {reply.status} came with "
            f"{declared[:80]}; see what stands between this client and the service",
            code=f"http_{reply.status}",
            status=reply.status,
            request_id=reply.headers.get("x-request-id"),
            retry_after=_retry_after(reply),
        )
    return kind(
        str(problem.get("detail", "")),
        code=str(problem.get("code", "")),
        status=reply.status,
        request_id=str(problem.get("request_id", "")) or None,
        broken_rules=_broken_rules(problem.get("errors")),
        retry_after=_retry_after(reply),
    )


def _problem(reply: Reply) -> dict[str, Any] | None:
    if not reply.headers.get("content-type", "").startswith("application/problem+json"):
        return None
    try:
        problem = json.loads(reply.content)
    except ValueError:
        return None
    return problem if isinstance(problem, dict) else None


def _broken_rules(told: object) -> tuple[BrokenRule, ...]:
    return tuple(
        BrokenRule(str(rule.get("where")), str(rule.get("code")), str(rule.get("message")))
        for rule in (told if isinstance(told, list) else ())
        if isinstance(rule, dict)
    )


def _retry_after(reply: Reply) -> float | None:
    """The seconds of a Retry-After header, which may also be a date."""
    header = reply.headers.get("retry-after", "")
    if header.isascii() and header.isdigit():
        return float(header)
    try:
        at = email.utils.parsedate_to_datetime(header)
        return max(0.0, at.timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
