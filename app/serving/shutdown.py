"""The shutdown flag, read by the readiness probe and by the middleware."""

from typing import final


@final
class ShutdownState:
    """Whether the process is about to stop; set once, by the server's signal handler."""

    def __init__(self) -> None:
        self._has_begun = False

    @property
    def has_begun(self) -> bool:
        """Whether the process is about to stop and should receive no more requests."""
        return self._has_begun

    def begin(self) -> None:
        """Report the process as not ready from now on."""
        self._has_begun = True
