"""Where a client finds its API key: the environment, a file, or the local token of a service.

A service on this machine without API keys admits who can read its local token, a file that it keeps
for programs of the same user until it ends.
"""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from kairos_client.errors import InvalidError

KEY_VARIABLE = "KAIROS_API_KEY"
KEY_FILE_VARIABLE = "KAIROS_API_KEY_FILE"
RUNTIME_VARIABLE = "KAIROS_RUNTIME_DIRECTORY"

_PRINTABLE = re.compile(r"[\x21-\x7e]+")
_LOCAL_TOKEN = re.compile(r"kairos_local_[A-Za-z0-9_-]{43}", re.ASCII)
_TOKEN_FILES = {
    "localhost": ("127.0.0.1", "::1"),
    "127.0.0.1": ("127.0.0.1",),
    "::1": ("::1", "127.0.0.1"),
}
_HTTP_PORT = 80
_LONGEST_TOKEN = 256


def find_key(api_key: str | None) -> str | None:
    """Return the given key, or else that of the environment; None if there is none.

    Raises:
        InvalidError: if the environment names two keys, the key's file cannot be read, or the key
            cannot be sent in a header.
    """
    key = _read_environment() if api_key is None else api_key
    if not key:
        return None
    if not _PRINTABLE.fullmatch(key):
        raise InvalidError(
            f"an API key is printable ASCII without spaces, but this one of {len(key)} "
            "characters is not; remove line breaks and spaces around it",
            code="api_key",
        )
    return key


def read_local_token(base_url: str) -> str | None:
    """Read the local token of the service at a URL of this machine.

    It is another one each time the service starts. None for a service elsewhere, of another user or
    without a token.
    """
    url = urlsplit(base_url)
    if url.scheme != "http":
        return None
    for host in _TOKEN_FILES.get(url.hostname or "", ()):
        for directory in _list_directories():
            token = _read_own_file(directory / f"{host}_{url.port or _HTTP_PORT}")
            if token is not None:
                return token
    return None


def _read_environment() -> str | None:
    key, file = os.environ.get(KEY_VARIABLE), os.environ.get(KEY_FILE_VARIABLE)
    if not file:
        return key
    if key:
        raise InvalidError(
            f"a client has one API key, but {KEY_VARIABLE} and {KEY_FILE_VARIABLE} are both set; "
            "unset one",
            code="api_key",
        )
    try:
        return Path(file).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidError(
            f"{KEY_FILE_VARIABLE} must name a text file with an API key, but {file} cannot be read "
            f"({type(error).__name__}); correct its name or its permissions",
            code="api_key",
        ) from error


def _list_directories() -> Iterator[Path]:
    """Yield the directory in which a service of this user keeps its token, if there is one."""
    if configured := os.environ.get(RUNTIME_VARIABLE):
        yield Path(configured)
    elif runtime := os.environ.get("XDG_RUNTIME_DIR"):
        yield Path(runtime) / "kairos"
    elif home := os.environ.get("HOME"):
        yield Path(home) / ".local" / "state" / "kairos"


def _read_own_file(path: Path) -> str | None:
    """Read a token from a file of this user, not from what a link points to."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            return None
        content = file.read(_LONGEST_TOKEN).decode("latin-1")
    return content if _LOCAL_TOKEN.fullmatch(content) else None
