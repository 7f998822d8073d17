"""Validators that FastAPI builds once for all applications of the tests.

FastAPI builds those of every route again for each application, at its first requests; it takes half
a second, more than most tests do. They depend on nothing but the types, which are the same each
time.
"""

from collections.abc import Hashable
from typing import Any

from pydantic import TypeAdapter
from pydantic.fields import FieldInfo

_remembered: dict[Hashable, TypeAdapter[Any]] = {}


def _describe(annotated: Any) -> Hashable:
    """Describe a type of FastAPI: what it annotates, and each attribute of its fields."""
    return (
        annotated.__origin__,
        repr(annotated.__origin__),  # unions of another order are equal, and validate otherwise
        *(
            tuple((name, type(value), value) for name, value in one._attributes_set.items())
            if isinstance(one, FieldInfo)
            else (type(one), one)
            for one in annotated.__metadata__
        ),
    )


def _remember(annotated: Any, *, config: Any = None) -> TypeAdapter[Any]:
    """Return the validator of a type; a type that cannot be compared gets a new one."""
    try:
        described = _describe(annotated)
        found = _remembered.get(described) if config is None else None
    except (AttributeError, TypeError):
        return TypeAdapter(annotated, config=config)
    if found is None:
        found = TypeAdapter(annotated, config=config)
        if config is None:
            _remembered[described] = found
    return found


def remember_type_adapters() -> None:
    """Let FastAPI build each validator once; releases that keep them elsewhere stay slow."""
    try:
        from fastapi._compat import v2  # noqa: PLC0415 - not in every release
    except ImportError:
        return
    vars(v2)["TypeAdapter"] = _remember
