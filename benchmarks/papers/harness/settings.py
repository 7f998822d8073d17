"""Tables of settings: how a row's changes are merged into a recipe, and their digest."""

import hashlib
import json
from typing import Literal, get_args, get_origin

from pydantic import BaseModel, JsonValue

from benchmarks.papers.peers.config import CLOSED_FORMS
from model.config import Config
from model.encoders import EncoderConfig

Settings = dict[str, JsonValue]
"""A recipe, or a part of one, as in TOML."""

SHARED_FIELDS = ("dim", "dropout", "max_history")
"""The fields of the base's encoder that an encoder of another kind inherits."""


def inherit_sizes(encoder: JsonValue, peer: Settings) -> Settings:
    """Give a transformer the sizes of the suite's encoder, unless it has its own."""
    sizes = {"dim": "dim", "heads": "heads", "layers": "blocks", "max_history": "max_history"}
    if not isinstance(encoder, dict) or peer.get("kind") in CLOSED_FORMS:
        return peer
    return {own: encoder[name] for name, own in sizes.items() if name in encoder} | peer


def merge(base: Settings, changes: Settings) -> Settings:
    """Replace some settings of the base, table by table.

    A table of another `kind` replaces the base's table, since kinds have different settings.
    """
    merged = dict(base)
    for name, value in changes.items():
        current = merged.get(name)
        if (
            isinstance(value, dict)
            and isinstance(current, dict)
            and value.get("kind", current.get("kind")) == current.get("kind")
        ):
            merged[name] = merge(current, value)
        else:
            merged[name] = value
    return merged


def remove(settings: Settings, path: list[str]) -> Settings:
    """Remove a setting from nested tables; nothing changes where it is not set."""
    first, *rest = path
    inner = settings.get(first)
    if not rest:
        return {name: value for name, value in settings.items() if name != first}
    return settings | {first: remove(inner, rest)} if isinstance(inner, dict) else settings


def list_dotted_names(settings: Settings) -> list[str]:
    """List the names of all settings, those in tables after the name of their table and a dot."""
    names: list[str] = []
    for name, value in settings.items():
        inner = list_dotted_names(value) if isinstance(value, dict) else []
        names += [name, *(f"{name}.{each}" for each in inner)]
    return names


def read_monitor(settings: Settings) -> str:
    """Read the validation metric of early stopping from the table `fit`."""
    fit = settings.get("fit")
    return str(fit.get("monitor", "ndcg@10")) if isinstance(fit, dict) else "ndcg@10"


def is_known(annotation: object, path: list[str]) -> bool:
    """Return whether a type of settings, or a member of a union of such, has a setting."""
    if not path:
        return True
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        field = annotation.model_fields.get(path[0])
        return field is not None and is_known(field.annotation, path[1:])
    return any(is_known(member, path) for member in get_args(annotation))


def digest(settings: Settings) -> str:
    """Compute a digest of settings, independent of the order of their tables."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def inherit_shared_fields(base: Settings, encoder: Settings) -> Settings:
    """Give an encoder of another kind the shared fields of the base's, unless it has its own."""
    current = base.get("encoder")
    if not isinstance(current, dict) or encoder.get("kind", current.get("kind")) == current.get(
        "kind"
    ):
        return encoder
    fixed = _list_fixed_fields(encoder.get("kind"))
    shared = (name for name in SHARED_FIELDS if name in current and name not in fixed)
    return {name: current[name] for name in shared} | encoder


def drop_unknown_fields(encoder: JsonValue, own: Settings) -> JsonValue:
    """Drop inherited fields that the encoder's kind does not have."""
    if not isinstance(encoder, dict):
        return encoder
    fields = _list_fields(encoder.get("kind"))
    return {
        name: value
        for name, value in encoder.items()
        if name in own or name not in SHARED_FIELDS or fields is None or name in fields
    }


def _list_fields(kind: JsonValue) -> set[str] | None:
    """List the fields of an encoder's config; None if there is no such kind."""
    config = _find_encoder_config(kind)
    return None if config is None else {*config.model_fields}


def _list_fixed_fields(kind: JsonValue) -> set[str]:
    """List the fields of an encoder's config that have one possible value."""
    config = _find_encoder_config(kind)
    fields = {} if config is None else config.model_fields
    return {name for name, field in fields.items() if get_origin(field.annotation) is Literal}


def _find_encoder_config(kind: JsonValue) -> type[Config] | None:
    configs: tuple[type[Config], ...] = get_args(get_args(EncoderConfig)[0])
    return next((each for each in configs if each.model_fields["kind"].default == kind), None)
