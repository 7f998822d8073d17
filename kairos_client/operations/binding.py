"""Operations as methods: signature and docstring are written once, for both clients."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, get_args

Method = TypeVar("Method", bound=Callable[..., Any])


def like(operation: Callable[..., Any], method: Method) -> Method:
    """Name and document a method as its operation is, so that `help` shows what can be asked."""
    functools.update_wrapper(method, operation)
    described = inspect.signature(operation)
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    (answer,) = get_args(described.return_annotation)
    method.__signature__ = described.replace(  # type: ignore[attr-defined]
        parameters=[itself, *described.parameters.values()], return_annotation=answer
    )
    return method
