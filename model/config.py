"""The base classes of configurations and of tables of measurements."""

from pydantic import BaseModel, ConfigDict


class Config(BaseModel):
    """An immutable configuration that rejects unknown fields and round-trips through JSON.

    JSON has no infinities and no NaN, so numbers are finite.

    A config is defined in the file of the class that its `build()` constructs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Measurements(Config):
    """An immutable table of measurements, of which some may be NaN: a mean of nothing is."""

    model_config = ConfigDict(allow_inf_nan=True)
