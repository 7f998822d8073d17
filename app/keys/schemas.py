"""What callers are told of themselves."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import ConfigDict

from app.http.types import RESPONSE_CONFIG


@dataclass(frozen=True, slots=True)
class Caller:
    """Who the service takes the caller for."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    name: str
    """As the audit trail names them: the name and id of the key, or `loopback`."""
    role: Literal["read", "admin"]
    """How far they reach: `read` asks and looks, `admin` may do everything."""
    has_key: bool
    """Whether they showed a key; without one this machine itself may do everything, if it may come
    in at all."""
