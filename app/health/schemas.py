"""What probes are told."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import ConfigDict

from app.wire import ANSWER


@dataclass(frozen=True, slots=True)
class Liveness:
    """The process runs."""

    __pydantic_config__: ClassVar[ConfigDict] = ANSWER

    status: Literal["live"] = "live"


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether this process can do all of its work, part by part."""

    __pydantic_config__: ClassVar[ConfigDict] = ANSWER

    status: Literal["ready", "not_ready"]
    model: str
    """`ok`, or what is wrong."""
    database: str
    """`ok`, or what is wrong."""
    process: str
    """`ok`, or that it is about to stop."""
