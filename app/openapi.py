"""The API's description, as the reviewed snapshot in `docs/openapi.json` keeps it."""

import tempfile
from pathlib import Path
from typing import BinaryIO

import orjson
from fastapi import FastAPI

from app.main import create_app
from app.settings import Settings


def snapshot(app: FastAPI) -> bytes:
    """The description of an application: indented, for reviewing line by line."""
    return orjson.dumps(app.openapi(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def print_snapshot(stream: BinaryIO) -> None:
    """Write the snapshot of an application with default settings."""
    with tempfile.TemporaryDirectory() as directory:
        database_url = f"sqlite:///{Path(directory) / 'unused.db'}"
        stream.write(snapshot(create_app(Settings(database_url=database_url))))
