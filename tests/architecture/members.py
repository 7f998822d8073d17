"""The models of docs/models.md: the configs of both unions."""

from typing import get_args

from model.config import Config
from model.encoders import EncoderConfig
from model.time_encodings import TimeEncodingConfig

UNIONS = {
    "model/time_encodings": ("TimeEncodingConfig", TimeEncodingConfig),
    "model/encoders": ("EncoderConfig", EncoderConfig),
}


def members(union: object) -> tuple[type[Config], ...]:
    """The configs of a discriminated union, or a single config."""
    if isinstance(union, type):
        return (union,)
    annotated = get_args(union)[0]
    return get_args(annotated) or (annotated,)


def kind(config: type[Config]) -> str:
    return str(config.model_fields["kind"].default)


MEMBERS = [config for _, union in UNIONS.values() for config in members(union)]
