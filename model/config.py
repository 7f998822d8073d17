"""The parent of every configuration."""

from pydantic import BaseModel, ConfigDict


class Config(BaseModel):
    """A frozen description of a part: refuses unknown fields, round-trips through JSON.

    A config sits beside the class it describes, and its `build()` is the only bridge between them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
