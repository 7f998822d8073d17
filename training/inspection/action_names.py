"""Names of actions in reports: on one line, of bounded length, without control characters."""

from collections.abc import Sequence

_MOST_NAMES = 20
_LONGEST_NAME = 60


def format_name(name: str) -> str:
    """Format one name: characters that cannot be printed are escaped, a long name is cut."""
    text = escape_unprintable(name)
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"


def list_names(names: Sequence[str]) -> str:
    """List formatted names, and how many more there are."""
    listed = [*names[:_MOST_NAMES]]
    if len(names) > _MOST_NAMES:
        listed.append(f"{len(names) - _MOST_NAMES:,} more")
    return ", ".join(listed)


def escape_unprintable(text: str) -> str:
    """Escape what cannot be printed, such as terminal sequences: ESC becomes `\\x1b`."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )
