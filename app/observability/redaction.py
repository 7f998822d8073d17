"""Tracebacks as the log may hold them: where and of what kind, but never of which values."""

import traceback

_WITHHELD = "(message withheld: it may hold users' data; KAIROS_LOG_LEVEL=debug shows it)"
_BECAUSE = "\n\nThe above exception was the direct cause of the following exception:\n\n"
_DURING = "\n\nDuring handling of the above exception, another exception occurred:\n\n"


def format_redacted(error: BaseException) -> str:
    """A traceback that names exceptions by type and code alone, chained and grouped ones, too.

    Messages are written by whoever raises: a database's repeat the row that broke a constraint, a
    validator's what was sent. Source lines are ours and stay.
    """
    return _told(error, told={id(error)})


def _told(error: BaseException, told: set[int]) -> str:
    own = "".join(
        (
            "Traceback (most recent call last):\n",
            *traceback.format_tb(error.__traceback__),
            f"{_kind(error)}: {_WITHHELD}",
        )
    )
    if isinstance(error, BaseExceptionGroup):
        for part in _untold(error.exceptions, told):
            own += "\n" + "\n".join(f"  | {line}" for line in _told(part, told).splitlines())
    for before in _untold((error.__cause__,), told):
        return _told(before, told) + _BECAUSE + own
    if error.__suppress_context__:
        return own
    for before in _untold((error.__context__,), told):
        return _told(before, told) + _DURING + own
    return own


def _untold(errors: tuple[BaseException | None, ...], told: set[int]) -> list[BaseException]:
    """Those not told yet: chains may run in circles."""
    new = [error for error in errors if error is not None and id(error) not in told]
    told.update(map(id, new))
    return new


def _kind(error: BaseException) -> str:
    """The type, and the code that Kairos or PostgreSQL gives it."""
    kind = type(error)
    name = (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )
    code = getattr(error, "sqlstate", None) or getattr(kind, "code", None)
    return f"{name} [{code}]" if isinstance(code, str) else name
