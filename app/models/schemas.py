"""What the service tells of published bundles."""

from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import ConfigDict

from app.wire import ANSWER


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """One published bundle."""

    __pydantic_config__: ClassVar[ConfigDict] = ANSWER

    version: str
    is_current: bool
    """Whether `CURRENT` names it."""
    is_serving: bool
    """Whether this process answers with it; it follows `CURRENT` within a poll interval."""


@dataclass(frozen=True, slots=True)
class ModelList:
    """The published bundles."""

    __pydantic_config__: ClassVar[ConfigDict] = ANSWER

    models: tuple[ModelSummary, ...]
    """Newest first."""


@dataclass(frozen=True, slots=True)
class ModelDetail:
    """One published bundle, with its manifest."""

    __pydantic_config__: ClassVar[ConfigDict] = ANSWER

    version: str
    is_current: bool
    """Whether `CURRENT` names it."""
    is_serving: bool
    """Whether this process answers with it."""
    manifest: dict[str, Any]
    """What the trainer wrote: configuration, data window, counts, metrics, checksums."""
