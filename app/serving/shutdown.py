"""Whether the process is about to stop: told by its server, and told on to whoever asks."""

from typing import final


@final
class ShutdownState:
    """Begins once, when the process is told to stop, and is over when it has."""

    def __init__(self) -> None:
        self._has_begun = False

    @property
    def has_begun(self) -> bool:
        """Whether to send the process no more requests."""
        return self._has_begun

    def begin(self) -> None:
        """Say from now on that the process is not ready."""
        self._has_begun = True
