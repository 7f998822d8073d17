"""Which versions answer beside the current one."""

from typing import Annotated

from pydantic import Field

from model.config import Config

Share = Annotated[float, Field(ge=0, le=1)]


class Traffic(Config):
    """How requests are spread over versions; by default the current one answers all of them."""

    challenger: str | None = None
    """A version that answers `share` of the users in place of the current one."""
    share: Share = 0.0
    """The share of users, by a hash of their ids, that the challenger answers: always the same
    users."""
    shadow: str | None = None
    """A version that is asked, too: its answers are compared and counted, never returned."""
