"""The sender of the request that is being handled, as far as the scheduler needs to know it."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass

SERVICE = "the service itself"


@dataclass(frozen=True, slots=True)
class Requester:
    """On whose account a call runs.

    Attributes:
        caller: the id of the key, or the network of a request without one.
        body_size: declared bytes of the body; 0 without a declaration.
        wait_for_disconnect: returns when the client has gone; None where there is no client.
    """

    caller: str = SERVICE
    body_size: int = 0
    wait_for_disconnect: Callable[[], Awaitable[None]] | None = None


requester: ContextVar[Requester] = ContextVar("requester", default=Requester())  # noqa: B039 - frozen
"""The requester of the current task; a task that a request starts inherits it."""
