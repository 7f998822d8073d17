"""What may go wrong with a request, told apart by what a caller can do about it."""

from dataclasses import dataclass


class KairosError(Exception):
    """A request that was not answered as asked.

    Attributes:
        detail: the rule that was broken, the value that broke it, and the remedy.
        code: the kind of failure, stable: programs may compare it.
        status: the HTTP status of the answer; None if the service did not answer.
        request_id: the request, as the service's log knows it; None if the service did not answer.
        broken_rules: with status 422, every rule that the request breaks.
        retry_after: seconds after which the service invites the same request again.
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
        what = self.code if self.status is None else f"{self.status} {self.code}"
        where = f" (request {self.request_id})" if self.request_id else ""
        return f"{what}: {self.detail}{where}"


class UnauthenticatedError(KairosError):
    """The request carries no valid API key."""


class ForbiddenError(KairosError):
    """The key is valid, but its role does not reach so far."""


class NotFoundError(KairosError):
    """A named item or model version does not exist."""


class ConflictError(KairosError):
    """The state of the service does not allow it, such as a model that says no time."""


class InvalidError(KairosError):
    """The request breaks a rule; without a `status` this client noticed before it sent anything."""


class RateLimitedError(KairosError):
    """The key asks more often than it may, and went on doing so through every retry."""


class UnavailableError(KairosError):
    """The service, or something it needs, was not there, through every retry."""


class LostAnswerError(UnavailableError):
    """The request went out, but no whole answer came back: it may have been carried out."""


class ServiceFailedError(KairosError):
    """The request met a defect of the service, whose log describes it under the `request_id`."""


class UnexpectedAnswerError(KairosError):
    """What answered does not speak as the service does: a proxy, or another program."""


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """One rule that a request breaks.

    Attributes:
        where: the part of the request: a JSON pointer into the body, or `query.name`, `path.name`.
        code: the rule, stable.
        message: the rule, in words.
    """

    where: str
    code: str
    message: str
