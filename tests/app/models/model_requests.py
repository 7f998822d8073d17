"""Requests about models, and removal of the database."""

from pathlib import Path
from typing import Any

from tests.app.client import Client


def read_detail(client: Client, version: str | None) -> dict[str, Any]:
    response = client.get(f"/v1/models/{version}")
    assert response.status_code == 200, response.text
    description: dict[str, Any] = response.json()
    return description


def missing_reason(description: dict[str, Any], part: str) -> str:
    """The reason for which a part is null."""
    assert description[part] is None
    (found,) = (missing["why"] for missing in description["missing"] if missing["part"] == part)
    return str(found)


def remove_database(client: Client, directory: Path) -> None:
    """Replaces the SQLite file of a service by a directory."""
    for file in directory.glob("kairos.db*"):
        file.rename(file.with_name(f"removed-{file.name}"))
    (directory / "kairos.db").mkdir()
    client.app.state.context.database._reading.dispose()
