"""The base class of all configurations."""

from pydantic import BaseModel, ConfigDict


class Config(BaseModel):
    """An immutable configuration that rejects unknown fields and round-trips through JSON.

    JSON has no infinities and no NaN, so numbers are finite.

    A config is defined in the file of the class that its `build()` constructs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
