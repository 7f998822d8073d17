"""What all answers have in common."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict


class Answer(BaseModel):
    """Something the service told, frozen.

    Fields that a newer service adds are kept in `model_extra` rather than refused. For the same
    reason a field with a fixed set of values is a plain `str`: a newer service may know more.
    """

    model_config = ConfigDict(
        frozen=True, extra="allow", use_attribute_docstrings=True, protected_namespaces=()
    )


def _utc(at: datetime) -> datetime:
    return at.astimezone(UTC)


Moment = Annotated[AwareDatetime, AfterValidator(_utc)]
"""An instant the service told: aware, and in UTC."""
