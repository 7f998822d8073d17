"""The API's description: what FastAPI derives from the routes, and what it cannot know.

`python -m app.openapi > docs/openapi.json` writes the reviewed snapshot anew.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any, BinaryIO

import orjson
from fastapi import FastAPI

from app.problems import Problem

TAGS = [
    {"name": "recommendations", "description": "What should this user see at this instant?"},
    {"name": "events", "description": "What users did, kept exactly once."},
    {"name": "items", "description": "What is known of items."},
    {"name": "users", "description": "Users, as their events show them."},
    {"name": "models", "description": "Published bundles."},
    {"name": "health", "description": "Probes and metrics."},
]


def describe_problems(app: FastAPI) -> None:
    """Add the schema of problem documents, which no route returns by itself, to the description."""
    derive = app.openapi

    def openapi() -> dict[str, Any]:
        description = derive()
        schemas = description["components"]["schemas"]
        if "Problem" not in schemas:
            problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas.update(problem.pop("$defs"))
            schemas["Problem"] = problem
            description["components"]["schemas"] = dict(sorted(schemas.items()))
        return description

    app.openapi = openapi  # type: ignore[method-assign]


def snapshot(app: FastAPI) -> bytes:
    """The description as the snapshot keeps it: indented, for reviewing line by line."""
    return orjson.dumps(app.openapi(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def print_snapshot(stream: BinaryIO) -> None:
    """Write the snapshot of an application with default settings."""
    from app.main import create_app  # noqa: PLC0415 - the application imports this module
    from app.settings import Settings  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as directory:
        database_url = f"sqlite:///{Path(directory) / 'unused.db'}"
        stream.write(snapshot(create_app(Settings(database_url=database_url))))


if __name__ == "__main__":
    print_snapshot(sys.stdout.buffer)
