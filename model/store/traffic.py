"""The versions that serve beside the current one."""

from typing import Annotated

from pydantic import Field

from model.config import Config

Share = Annotated[float, Field(ge=0, le=1)]


class Traffic(Config):
    """How requests are spread over versions; by default the current one serves all of them."""

    challenger: str | None = None
    """A version that serves `share` of the users in place of the current one."""
    share: Share = 0.0
    """The share of users that the challenger serves, chosen by a hash of their ids: always the
    same users."""
    shadow: str | None = None
    """A version that runs on the same requests: its recommendations are compared and counted, but
    never returned."""
