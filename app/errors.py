"""The expected failures of the service, each with its HTTP status.

Services raise them; handlers in `app.http.problems` convert them to RFC 9457 documents.
"""

from typing import ClassVar

from model.errors import BundleError, KairosError, StoreBusyError


class ServiceError(KairosError):
    """An expected failure of a request.

    Attributes:
        status: the HTTP status of the response.
        title: the kind of failure, the same for every occurrence.
        retry_after: seconds after which to try again; None if trying again does not help.
        shed_reason: the limited resource, of a request that is refused to protect it.
    """

    status: ClassVar[int]
    title: ClassVar[str]
    retry_after: int | None = None
    shed_reason: str | None = None


class MalformedJsonError(ServiceError):
    """A body is not JSON."""

    code = "malformed_json"
    status = 400
    title = "the body is not JSON"


class MalformedRequestError(ServiceError):
    """A request is not HTTP, or its request line is too long."""

    code = "malformed_request"
    status = 400
    title = "the request is not HTTP"


class DisconnectedError(ServiceError):
    """A client closed its connection before it had the response."""

    code = "client_disconnected"
    status = 400
    title = "the client went away"


class UnauthenticatedError(ServiceError):
    """A request carries no key, or one that is not valid."""

    code = "unauthenticated"
    status = 401
    title = "an API key is needed"


class ForbiddenError(ServiceError):
    """A request carries a valid key whose role does not authorize the operation."""

    code = "forbidden"
    status = 403
    title = "the key's role does not allow this"


class NotFoundError(ServiceError):
    """A named resource does not exist."""

    code = "not_found"
    status = 404
    title = "no such path"


class ItemNotFoundError(NotFoundError):
    """No item of that id is stored."""

    code = "item_not_found"
    title = "no such item"


class ModelNotFoundError(NotFoundError):
    """No bundle of that version is published."""

    code = "model_not_found"
    title = "no such model version"


class ModelRefusedError(ServiceError):
    """A bundle is published, but damaged or of a format this version does not know."""

    code = "model_refused"
    status = 409
    title = "the model cannot be used"


class NoEventTimeError(ServiceError):
    """The current model predicts items, but no times."""

    code = "model_says_no_time"
    status = 409
    title = "the model predicts no event times"


class NoItemSpaceError(ServiceError):
    """The model learns no item vectors, so it has no similarities."""

    code = "no_item_space"
    status = 409
    title = "the model has no item vectors"


class NothingToRollBackError(ServiceError):
    """No version was current before this one."""

    code = "nothing_to_roll_back"
    status = 409
    title = "there is no earlier version to go back to"


class RequestTimeoutError(ServiceError):
    """A client takes too long to send its request."""

    code = "request_timeout"
    status = 408
    title = "the request took too long to arrive"

    @classmethod
    def build(cls, part: str, seconds: float) -> "RequestTimeoutError":
        """Build the error for a part of the request, and its time limit."""
        return cls(
            f"the {part} of a request must arrive within {seconds:g} seconds, but did not; send "
            "the request without pauses"
        )


class BodyTooLargeError(ServiceError):
    """A body exceeds the size limit."""

    code = "body_too_large"
    status = 413
    title = "the body is too large"


class UnsupportedMediaTypeError(ServiceError):
    """A body is not declared as plain JSON."""

    code = "unsupported_media_type"
    status = 415
    title = "the body must be uncompressed JSON"


class UnprocessableError(ServiceError):
    """A request is JSON, but violates a rule."""

    code = "validation_failed"
    status = 422
    title = "the request breaks a rule"


class HeadTooLargeError(ServiceError):
    """The headers of a request, or what surrounds its body, exceed the size limit."""

    code = "head_too_large"
    status = 431
    title = "the headers are too large"


class TooManyConnectionsError(ServiceError):
    """As many connections are open as a process accepts, and none of them is idle."""

    code = "too_many_connections"
    status = 503
    title = "too many connections"
    retry_after = 1

    def __init__(self, place: str, most: int) -> None:
        super().__init__(
            f"{place} has at most {most} connections, and all of them are in use; use fewer at "
            "once, or run more processes"
        )


class RateLimitedError(ServiceError):
    """A key, or a network without a valid one, exceeds its rate limit.

    Attributes:
        retry_after: seconds until the next request is accepted.
    """

    code = "rate_limited"
    status = 429
    title = "too many requests with this key"
    retry_after = 1

    def __init__(self, message: str, *, seconds: int) -> None:
        super().__init__(message)
        self.retry_after = seconds


class NoModelError(ServiceError):
    """No published bundle is being served."""

    code = "no_model"
    status = 503
    title = "no model is being served"
    retry_after = 5


class DatabaseUnavailableError(ServiceError):
    """The database did not answer, or refused for a reason that passes."""

    code = "database_unavailable"
    status = 503
    title = "the database does not answer"
    retry_after = 2


class DatabaseConflictError(DatabaseUnavailableError):
    """The database undid a transaction because of a concurrent one; it can be repeated."""


class DatabaseMovedError(DatabaseUnavailableError):
    """The path of an SQLite database names another file than the one that is open, or none."""


class DatabaseFileError(DatabaseUnavailableError):
    """SQLite could not read or write one of its files."""


class DatabaseReadOnlyError(DatabaseUnavailableError):
    """The database answers, but accepts no writes."""


class SchemaMissingError(DatabaseUnavailableError):
    """The database lacks a table or column of this version's schema."""


class DatabaseDamagedError(DatabaseUnavailableError):
    """The database is damaged: it works again once somebody has restored it."""


class StoreUnavailableError(ServiceError):
    """The bundle store cannot be read or changed."""

    code = "store_unavailable"
    status = 503
    title = "the bundle store does not answer"
    retry_after = 5

    @classmethod
    def from_cause(cls, error: OSError | StoreBusyError | BundleError) -> "StoreUnavailableError":
        """Build the error for a cause; of an operating system's error it names only the type."""
        cause = type(error).__name__ if isinstance(error, OSError) else str(error)
        return cls(f"the bundle store must answer, but failed: {cause}; try again shortly")


class ErasureLogError(ServiceError):
    """The log of erasures outside the database cannot be read or written."""

    code = "erasure_log_unavailable"
    status = 503
    title = "the log of erasures cannot be used"
    retry_after = 5


class OverShareError(ServiceError):
    """A caller's work waits longer than allowed because others wait for the models, too.

    Attributes:
        retry_after: estimated seconds until the caller's work may be accepted.
    """

    code = "over_share"
    status = 429
    title = "this caller has its share of the models"
    retry_after = 1
    shed_reason = "share"

    def __init__(self, message: str, *, seconds: int) -> None:
        super().__init__(message)
        self.retry_after = seconds


class OverloadedError(ServiceError):
    """More work is waiting than the process accepts.

    Attributes:
        shed_reason: what the work waits for: the name of a thread pool, "versions" or
            "overviews".
    """

    code = "overloaded"
    status = 503
    title = "the service is overloaded"
    retry_after = 1

    def __init__(
        self, reason: str, waiting: int, message: str | None = None, *, seconds: int = 1
    ) -> None:
        super().__init__(
            message
            or f"at most {waiting} calls may wait for the {reason} threads, and that many do; "
            "try again shortly, or run more processes"
        )
        self.shed_reason = reason
        self.retry_after = seconds
