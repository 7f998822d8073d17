"""What the service announces once it accepts connections: its local token, and its dashboard."""

import structlog

from app.auth.local_token import (
    LocalToken,
    TokenFile,
    resolve_runtime_directory,
    write_token_file,
)
from app.settings import Settings

_log = structlog.get_logger()


def publish_local_token(
    settings: Settings, token: LocalToken, port: int, *, is_accepted: bool
) -> TokenFile | None:
    """Write the local token for programs of this user; return None if there is no place for it.

    That does not prevent the start: with API keys nobody needs the token.

    Args:
        is_accepted: whether the token takes the place of a key.
    """
    try:
        directory = resolve_runtime_directory(settings.runtime_directory)
        return write_token_file(directory, token, host=settings.host, port=port)
    except (OSError, RuntimeError) as error:
        (_log.warning if is_accepted else _log.info)(
            "local_token_not_written",
            error=str(error),
            consequence="requests need an API key",
            remedy="set KAIROS_RUNTIME_DIRECTORY to a directory that this user can write",
        )
        return None


def build_dashboard_link(
    settings: Settings, port: int, token_file: TokenFile | None, *, is_accepted: bool
) -> str:
    """Build the address of the dashboard, with the local token if that takes the place of a key."""
    if token_file is None:
        return f"http://{settings.host}:{port}/dashboard/"
    service = token_file.service
    return service.dashboard_link if is_accepted else f"{service.url}/dashboard/"
