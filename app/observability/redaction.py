"""Tracebacks without the messages of exceptions, which may hold data of users."""

import traceback

_WITHHELD = "(message withheld: it may hold users' data; KAIROS_LOG_LEVEL=debug shows it)"
_BECAUSE = "\n\nThe above exception was the direct cause of the following exception:\n\n"
_DURING = "\n\nDuring handling of the above exception, another exception occurred:\n\n"


def format_redacted(error: BaseException) -> str:
    """Format a traceback with the types and codes of exceptions, chained and grouped ones included.

    A database's message may repeat the row that violates a constraint, a validator's the request.
    Source lines hold no data and stay.
    """
    return _format(error, seen={id(error)})


def _format(error: BaseException, seen: set[int]) -> str:
    own = "".join(
        (
            "Traceback (most recent call last):\n",
            *traceback.format_tb(error.__traceback__),
            f"{_format_type(error)}: {_WITHHELD}",
        )
    )
    if isinstance(error, BaseExceptionGroup):
        for part in _take_unseen(error.exceptions, seen):
            own += "\n" + "\n".join(f"  | {line}" for line in _format(part, seen).splitlines())
    for before in _take_unseen((error.__cause__,), seen):
        return _format(before, seen) + _BECAUSE + own
    if error.__suppress_context__:
        return own
    for before in _take_unseen((error.__context__,), seen):
        return _format(before, seen) + _DURING + own
    return own


def _take_unseen(errors: tuple[BaseException | None, ...], seen: set[int]) -> list[BaseException]:
    """Return the exceptions that are not formatted yet: chains may be circular."""
    new = [error for error in errors if error is not None and id(error) not in seen]
    seen.update(map(id, new))
    return new


def _format_type(error: BaseException) -> str:
    """Return the type, and the code that Kairos or PostgreSQL gives it."""
    kind = type(error)
    name = (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )
    code = getattr(error, "sqlstate", None) or getattr(kind, "code", None)
    return f"{name} [{code}]" if isinstance(code, str) else name
