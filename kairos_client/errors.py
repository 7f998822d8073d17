"""Exceptions of the client: one class for each thing that a caller can do about a failure."""

from dataclasses import dataclass


class KairosError(Exception):
    """A request failed; the base class of every error that this package raises.

    Attributes:
        detail: the rule that was broken, the value that broke it, and the remedy.
        code: identifies the kind of failure; stable, so programs may compare it.
        status: the HTTP status of the response; None without a response.
        request_id: the id of the request in the service's log; None without a response.
        broken_rules: for status 422, every rule that the request breaks.
        retry_after: seconds to wait before a retry, as the service requests; None if it does not.
    """

    def __init__(
        self,
        detail: str,
        *,
        code: str = "",
        status: int | None = None,
        request_id: str | None = None,
        broken_rules: tuple["BrokenRule", ...] = (),
        retry_after: float | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code
        self.status = status
        self.request_id = request_id
        self.broken_rules = broken_rules
        self.retry_after = retry_after

    def __str__(self) -> str:
        kind = self.code if self.status is None else f"{self.status} {self.code}"
        request = f" (request {self.request_id})" if self.request_id else ""
        return f"{kind}: {self.detail}{request}"


class UnauthenticatedError(KairosError):
    """The request carries no valid API key."""


class ForbiddenError(KairosError):
    """The API key is valid, but its role does not permit the operation."""


class NotFoundError(KairosError):
    """The item or model version does not exist."""


class ConflictError(KairosError):
    """The state of the service does not allow it: for example, the model predicts no time."""


class InvalidError(KairosError):
    """The request breaks a rule; `status` is None if the client found it before sending."""


class RateLimitedError(KairosError):
    """The key exceeds its rate limit, still after every retry."""


class UnavailableError(KairosError):
    """The service, or something it depends on, is unavailable, still after every retry."""


class NoResponseError(UnavailableError):
    """The request was sent, but no complete response arrived: it may have been carried out."""


class ServiceFailedError(KairosError):
    """The service has a defect; its log describes the failure under `request_id`."""


class UnexpectedResponseError(KairosError):
    """The response is not one of the service: a proxy or another program sent it."""


class BufferFullError(KairosError):
    """The event buffer is full: events arrive faster than the service accepts them."""


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """One rule that a request breaks.

    Attributes:
        where: the part of the request: a JSON pointer into the body, or `query.name`, `path.name`.
        code: identifies the rule; stable.
        message: the rule in words.
    """

    where: str
    code: str
    message: str
