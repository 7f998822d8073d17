"""The `kairos openapi` command."""

import sys
import tempfile
from pathlib import Path


def openapi_command() -> None:
    """Print the service's OpenAPI description."""
    from app.http.openapi import serialize_openapi  # noqa: PLC0415 - the service loads slowly
    from app.main import create_app  # noqa: PLC0415
    from app.settings import Settings  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as directory:
        database_url = f"sqlite:///{Path(directory) / 'unused.db'}"
        sys.stdout.buffer.write(serialize_openapi(create_app(Settings(database_url=database_url))))
