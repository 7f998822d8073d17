"""The `kairos openapi` command."""

import sys


def openapi_command() -> None:
    """Print the service's OpenAPI description."""
    from app.openapi import print_snapshot  # noqa: PLC0415 - builds a whole application

    print_snapshot(sys.stdout.buffer)
