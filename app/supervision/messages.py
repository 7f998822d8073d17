"""What the supervisor and its workers send each other, through a connection for each worker."""

from dataclasses import dataclass, field
from typing import final

from app.observability.shared_metrics import MetricsShare
from app.settings import Settings


@final
@dataclass(frozen=True, slots=True)
class WorkerTask:
    """What a worker does, sent to it first. Afterwards nothing is sent, until the connection ends.

    Attributes:
        local_token: the secret that all workers accept.
    """

    settings: Settings
    is_demo: bool
    local_token: str = field(repr=False)
    metrics_share: MetricsShare


@final
@dataclass(frozen=True, slots=True)
class WorkerStarted:
    """The worker accepts connections.

    Attributes:
        accepts_local_token: whether the local token takes the place of a key.
    """

    accepts_local_token: bool


@final
@dataclass(frozen=True, slots=True)
class WorkerFailed:
    """The worker cannot start, and ends.

    Attributes:
        error: for people, as one process alone would print it.
    """

    error: str


WorkerReport = WorkerStarted | WorkerFailed
