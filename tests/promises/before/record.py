"""Record the SQL statements of a release, to test that they still run on later schemas.

    git archive COMMIT | tar x -C TREE
    python tests/promises/before/record.py TREE DATABASE_URL REVISION-DIALECT.json

COMMIT is the last one before the newest migration (`git log --diff-filter=A` names the commit that
added it), REVISION that migration's, and DATABASE_URL an empty database. TREE must run in this
environment.
"""

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

REQUESTS: tuple[tuple[str, str, Any], ...] = (
    (
        "PUT",
        "/v1/items",
        {
            "items": [
                {"item_id": "i1", "title": "Ölkanne", "categories": ["a"], "properties": {"p": 1}},
                {"item_id": "i2", "title": None, "available_until": "2027-01-01T00:00:00Z"},
            ]
        },
    ),
    ("PUT", "/v1/items", {"items": [{"item_id": "i1", "title": "Renamed"}]}),
    (
        "POST",
        "/v1/events",
        {
            "events": [
                {"user_id": "u", "item_id": "i1", "action": "view", "timestamp": 1_767_225_600},
                {
                    "event_id": "mine",
                    "user_id": "u",
                    "item_id": "i2",
                    "action": "buy",
                    "timestamp": 1_767_225_601,
                    "value": 9.5,
                    "recommendation_id": "r",
                    "properties": {"p": [1, "ü"]},
                },
            ]
        },
    ),
    (
        "POST",
        "/v1/events",
        {
            "events": [
                {
                    "event_id": "mine",
                    "user_id": "u",
                    "item_id": "i2",
                    "action": "buy",
                    "timestamp": 1_767_225_601,
                }
            ]
        },
    ),
    ("POST", "/v1/recommendations", {"user_id": "u", "n": 2}),
    ("GET", "/v1/items?limit=1", None),
    ("GET", "/v1/items?q=REN", None),
    ("GET", "/v1/items/i1", None),
    ("GET", "/v1/items/i1/popularity?step=day", None),
    ("GET", "/v1/users", None),
    ("GET", "/v1/users?prefix=u", None),
    ("GET", "/v1/users/u", None),
    ("GET", "/health/ready", None),
)


def record(tree: Path, database_url: str) -> list[dict[str, Any]]:
    """Record the statements that the service of `tree` issues for the requests above, in order."""
    os.chdir(tree)
    sys.path.insert(0, str(tree))
    # Imported late, from the tree.
    from sqlalchemy import Engine, event  # noqa: PLC0415

    from app.settings import Settings  # noqa: PLC0415
    from tests.app import tiny_bundle  # noqa: PLC0415
    from tests.app.client import running  # noqa: PLC0415

    statements: list[dict[str, Any]] = []

    def note(_: Any, __: Any, sql: str, parameters: Any, ___: Any, many: bool) -> None:
        if not sql.startswith(("BEGIN", "PRAGMA")):
            statements.append({"sql": sql, "parameters": parameters, "many": many})

    with tempfile.TemporaryDirectory() as store:
        tiny_bundle.publish(Path(store), seed=1)
        settings = Settings(database_url=database_url, bundle_store=Path(store))
        with running(settings) as client:
            event.listen(Engine, "before_cursor_execute", note)
            for method, path, body in REQUESTS:
                answer = client.request(method, path, json=body)
                assert answer.is_success, answer.text
            event.remove(Engine, "before_cursor_execute", note)
    return statements


def mark_json(value: Any) -> dict[str, Any]:
    """Mark a JSON parameter of psycopg, so that the replay wraps it again."""
    return {"json": value.obj}


if __name__ == "__main__":
    file = Path(sys.argv[3]).resolve()
    recorded = record(Path(sys.argv[1]).resolve(), sys.argv[2])
    content = json.dumps(recorded, indent=1, ensure_ascii=False, default=mark_json)
    file.write_text(content + "\n", "utf-8")
