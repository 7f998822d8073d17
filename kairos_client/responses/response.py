"""The base class of the response models."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict


class Response(BaseModel):
    """A frozen response model that accepts responses of newer services.

    Unknown fields are kept in `model_extra`. Fields with a fixed set of values are plain `str`,
    because a newer service may add values.
    """

    model_config = ConfigDict(
        frozen=True, extra="allow", use_attribute_docstrings=True, protected_namespaces=()
    )


def _to_utc(at: datetime) -> datetime:
    return at.astimezone(UTC)


UtcDatetime = Annotated[AwareDatetime, AfterValidator(_to_utc)]
"""An instant of a response: timezone-aware, in UTC."""
