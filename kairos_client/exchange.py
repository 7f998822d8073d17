"""The course of one question, without sending or sleeping: both clients walk through it."""

import logging
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx

from kairos_client.calls import Again, Call
from kairos_client.errors import (
    KairosError,
    LostAnswerError,
    NotFoundError,
    RateLimitedError,
    UnavailableError,
)
from kairos_client.failures import Reply, Unanswered, failure_of
from kairos_client.retries import Retries

T = TypeVar("T")

_log = logging.getLogger("kairos_client")


@dataclass(frozen=True, slots=True)
class Send:
    """Send the request, and come back with the reply or with the error in its stead.

    Attributes:
        ends_at: when the deadline is, by the clock of the exchange.
    """

    call: Call[Any]
    ends_at: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Sleep, and come back."""

    seconds: float


Outcome = Reply | Unanswered | None
Exchange = Generator[Send | Wait, Outcome, T]


def exchange(
    call: Call[T], retries: Retries, *, clock: Callable[[], float] = time.monotonic
) -> Exchange[T]:
    """Ask until there is an answer, or no sense in asking again.

    Raises:
        KairosError: why there is no answer.
    """
    ends_at = clock() + retries.deadline_seconds
    was_lost = False
    attempt = 0
    while True:
        attempt += 1
        outcome = yield Send(call, ends_at)
        assert outcome is not None
        if isinstance(outcome, Reply) and _tells(outcome, call):
            return call.read(outcome.content)
        failure = failure_of(outcome)
        if was_lost and call.is_done_when_gone and isinstance(failure, NotFoundError):
            return call.read(b"")
        was_lost = was_lost or isinstance(failure, LostAnswerError)
        seconds = retries.wait(attempt, failure.retry_after)
        is_last = attempt >= retries.attempts or clock() + seconds >= ends_at
        if is_last or not _may_repeat(call, failure):
            raise failure
        _log.info("%s again in %.2f s: %s", call.name, seconds, failure.code)
        yield Wait(seconds)


def _tells(reply: Reply, call: Call[Any]) -> bool:
    return reply.is_success or reply.status in call.told_by


def _may_repeat(call: Call[Any], failure: KairosError) -> bool:
    if call.again is Again.NEVER:
        return False
    # The gate turns callers away before anything else happens.
    is_untouched = failure.code == "no_connection" or isinstance(failure, RateLimitedError)
    return is_untouched or (call.again is Again.SAFELY and isinstance(failure, UnavailableError))


def require_time(send: Send, request: httpx.Request) -> None:
    """Stop reading a reply that trickles in beyond the deadline.

    Raises:
        httpx.ReadTimeout: as the network does where nothing comes at all.
    """
    if time.monotonic() > send.ends_at:
        raise httpx.ReadTimeout("it was still coming at the deadline", request=request)
