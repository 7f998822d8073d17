"""What the dashboard's pages ask beyond the public API."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from app.settings import HISTORY_CAP
from app.wire import ANSWER, Id, RequestModel


class TitlesWanted(RequestModel):
    """Items of a history, to be shown by name."""

    item_ids: Annotated[list[Id], Field(max_length=HISTORY_CAP)]
    """The items."""


@dataclass(frozen=True, slots=True)
class Titles:
    """The names of items, as the served bundle's catalogue has them."""

    __pydantic_config__: ClassVar[ConfigDict] = ANSWER

    titles: dict[str, str | None]
    """By item id; null without a title. Items the model does not know are absent."""
