"""The versions that serve beside the current one."""

from typing import Annotated

from pydantic import ConfigDict, Field

from model.config import Config

Share = Annotated[float, Field(ge=0, le=1)]


class Traffic(Config):
    """How requests are spread over versions; by default the current one serves all of them.

    Fields of a newer release are read and ignored: during a rolling update processes of two
    releases share the file.
    """

    model_config = ConfigDict(extra="allow")

    challenger: str | None = None
    """A version that serves `share` of the users in place of the current one."""
    share: Share = 0.0
    """The share of users that the challenger serves, chosen by a hash of their ids: always the
    same users."""
    shadow: str | None = None
    """A version that runs on the same requests: its recommendations are compared and counted, but
    never returned."""

    @property
    def unknown_fields(self) -> tuple[str, ...]:
        """The names of the fields that this release ignores."""
        return tuple(sorted(self.model_extra or ()))
