"""R13: migrations keep rows up, down and up; the previous release runs on the newest schema."""

import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
from psycopg.types.json import Json
from sqlalchemy import JSON, BigInteger, Boolean, Double, Engine, Integer, MetaData, String, text

from app.db.engine import open_engine
from app.settings import Settings
from migrations import run
from model.clock import now
from tests.app.client import running
from tests.processes import ROOT, eventually, free_port
from tests.promises.figures import Figures
from tests.promises.strength import Strength

BEFORE = Path(__file__).parent / "before"

Rows = dict[str, list[dict[str, Any]]]


@contextmanager
def open_database(database_url: str) -> Iterator[Engine]:
    engine = open_engine(database_url)
    try:
        yield engine
    finally:
        engine.dispose()


def make_value(kind: Any, number: int) -> Any:
    """Make a value of a column's type, different for every row."""
    if isinstance(kind, JSON):
        return {"nested": [number, "ü", None]}
    if isinstance(kind, Double):
        return number + 0.1
    if isinstance(kind, Boolean):
        return number % 2 == 0
    if isinstance(kind, BigInteger):
        return 1_767_225_600_000_000 + number
    if isinstance(kind, Integer):
        return 1 + number
    assert isinstance(kind, String), f"make up values of {kind!r}, too"
    return f"{number} ü/ '\"\\ \U0001f600"[: kind.length]


def insert_rows(database_url: str, rows: int = 3) -> None:
    """Insert rows into every table: one with the required columns only, the others complete."""
    with open_database(database_url) as engine:
        found = MetaData()
        found.reflect(engine)
        with engine.begin() as connection:
            for table in found.tables.values():
                if table.name == "alembic_version":
                    continue
                for number in range(rows):
                    row = {
                        column.name: make_value(column.type, number)
                        for column in table.columns
                        # A downgrade drops deleted items with the column deleted_at.
                        if not (column.nullable and (number == 0 or column.name == "deleted_at"))
                    }
                    connection.execute(table.insert().values(row))


def read_rows(database_url: str) -> Rows:
    with open_database(database_url) as engine:
        found = MetaData()
        found.reflect(engine)
        with engine.connect() as connection:
            return {
                table.name: [dict(row) for row in connection.execute(table.select()).mappings()]
                for table in found.tables.values()
                if table.name != "alembic_version"
            }


def select_common(rows: Rows, kept: Rows) -> Rows:
    """Select the tables and columns of `rows` that `kept` has."""
    return {
        table: [{column: row[column] for column in kept[table][0]} for row in rows[table]]
        for table in kept
    }


def count_lost(rows: Rows, kept: Rows) -> int:
    """Count the rows of `kept` that are not among `rows`, by their common columns."""
    found = select_common(rows, kept)
    return sum(row not in found[table] for table in kept for row in kept[table])


def test_rows_survive_every_step_up_down_and_up(
    database_url: str, strength: Strength, figures: Figures
) -> None:
    run.upgrade(database_url)
    steps = list(pairwise(run.list_revisions()))
    kept = gone = 0
    for lower, upper in steps:
        run.downgrade(database_url, "base")
        run.upgrade(database_url, lower)
        insert_rows(database_url, strength.select(short=3, full=1000))
        before = read_rows(database_url)
        kept += sum(map(len, before.values()))
        for move, revision in ((run.upgrade, upper), (run.downgrade, lower), (run.upgrade, upper)):
            move(database_url, revision)
            gone += count_lost(read_rows(database_url), before)
        after = read_rows(database_url)
        assert all(after[table] == [] for table in after.keys() - before.keys())
    dialect = database_url.partition(":")[0]
    figures.record(
        "R13", f"up, down, up with rows, {dialect}", steps=len(steps), rows=kept, lost=gone
    )
    assert (kept > 0, gone) == (True, 0)
    run.check(database_url)


def test_rows_of_the_newest_schema_survive_down_and_up(database_url: str) -> None:
    lower, head = run.list_revisions()[-2:]
    run.upgrade(database_url)
    insert_rows(database_url)
    written = read_rows(database_url)
    run.downgrade(database_url, lower)
    behind = read_rows(database_url)
    assert select_common(written, behind) == behind
    run.upgrade(database_url, head)
    assert select_common(read_rows(database_url), behind) == behind
    run.check(database_url)


def test_a_downgrade_drops_deleted_items(database_url: str) -> None:
    run.upgrade(database_url)
    with open_database(database_url) as engine, engine.begin() as connection:
        put = "INSERT INTO items (item_id, categories, updated_at, deleted_at) VALUES "
        connection.execute(text(put + "('here', '[]', 1, NULL), ('gone', '[]', 1, 1)"))
    run.downgrade(database_url, "0001")
    assert [row["item_id"] for row in read_rows(database_url)["items"]] == ["here"]


def to_parameters(parameters: Any) -> Any:
    """Convert recorded parameters to those of the driver."""
    if isinstance(parameters, list):
        return tuple(parameters)
    return {
        name: Json(value["json"]) if isinstance(value, dict) else value
        for name, value in parameters.items()
    }


def replay(database_url: str, statements: list[dict[str, Any]]) -> list[list[tuple[Any, ...]]]:
    """Run each statement, and return its rows."""
    answers = []
    with open_database(database_url) as engine, engine.begin() as connection:
        for statement in statements:
            parameters = statement["parameters"]
            many = [to_parameters(each) for each in parameters] if statement["many"] else None
            result = connection.exec_driver_sql(
                statement["sql"], to_parameters(parameters) if many is None else many
            )
            rows = [tuple(row) for row in result] if result.returns_rows else []
            # The identity of a table, its last column, is another one in each database.
            has_identity = "tableoid" in statement["sql"]
            answers.append([row[:-1] for row in rows] if has_identity else rows)
    return answers


def test_statements_of_the_previous_release_still_work(database_url: str, figures: Figures) -> None:
    lower, head = run.list_revisions()[-2:]
    dialect = database_url.partition(":")[0]
    file = BEFORE / f"{head}-{dialect}.json"
    assert file.exists(), (
        f"a migration was added: record the release before it with {BEFORE}/record.py"
    )
    statements = [
        statement
        for statement in json.loads(file.read_text("utf-8"))
        if "alembic_version" not in statement["sql"]
    ]
    run.upgrade(database_url, lower)
    expected = replay(database_url, statements)
    run.downgrade(database_url, "base")
    run.upgrade(database_url, head)
    answers = replay(database_url, statements)
    differing = sum(one != other for one, other in zip(answers, expected, strict=True))
    figures.record(
        "R13",
        f"statements of the release before, {dialect}",
        statements=len(statements),
        rows_read=sum(map(len, expected)),
        differing=differing,
    )
    assert differing == 0
    assert sum(map(len, expected)) >= 10


def git(*arguments: str) -> bytes:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else b""


@pytest.fixture
def previous_release(strength: Strength, tmp_path: Path) -> Path:
    """Extract the tree of the last commit before the newest migration."""
    if not strength.is_full:
        pytest.skip("runs the previous release as a process: make promises")
    (newest,) = (ROOT / "migrations" / "versions").glob(f"{run.list_revisions()[-1]}_*.py")
    added = git("log", "--diff-filter=A", "--format=%H", "-1", "--", str(newest)).decode().strip()
    archive = git("archive", f"{added}^") if added else b""
    if not archive:
        pytest.skip("no history of the repository to extract the previous release from")
    tree = tmp_path / "previous_release"
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        packed.extractall(tree, filter="data")
    return tree


@contextmanager
def run_previous(tree: Path, database_url: str, store: Path, log: Path) -> Iterator[httpx.Client]:
    """Run the service of an older tree on the same database, with a bundle of its own."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(tree),
        "KAIROS_DATABASE_URL": database_url,
        "KAIROS_BUNDLE_STORE": str(store),
        "KAIROS_PORT": str(port := free_port()),
    }
    publishing = (
        "from pathlib import Path; from tests.app import tiny_bundle; "
        f"tiny_bundle.publish(Path({str(store)!r}), seed=1)"
    )
    subprocess.run([sys.executable, "-c", publishing], cwd=tree, env=environment, check=True)
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "app.server"],
            cwd=tree,
            env=environment,
            stdout=stream,
            stderr=stream,
        )
    http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30)

    def is_ready() -> bool:
        assert process.poll() is None, log.read_text()
        try:
            return http.get("/health/ready").status_code == 200
        except httpx.TransportError:
            return False

    try:
        eventually(is_ready)
        yield http
    finally:
        http.close()
        process.terminate()
        process.wait(30)


def build_event(number: int) -> dict[str, Any]:
    return {
        "user_id": "u",
        "item_id": f"i{number % 20}",
        "action": "view",
        "timestamp": now() / 1e6 - number,
    }


def test_the_previous_release_serves_on_the_newest_schema(
    previous_release: Path, database_url: str, bundle_store: Path, tmp_path: Path, figures: Figures
) -> None:
    settings = Settings(database_url=database_url, bundle_store=bundle_store)
    ours, theirs, failed = 0, 0, 0
    with running(settings) as client:
        items = [{"item_id": "i1", "title": "One"}, {"item_id": "i2", "title": "Two"}]
        assert client.put("/v1/items", {"items": items}).is_success
        assert client.request("DELETE", "/v1/items/i2").is_success
        log = tmp_path / "log"
        with run_previous(previous_release, database_url, tmp_path / "store", log) as old:
            for number in range(0, 100, 2):
                # Both at once, as in a rolling update.
                sent = {"events": [build_event(number)]}
                added = {"events": [build_event(number + 1)]}
                for_old, for_new = (
                    old.post("/v1/events", json=sent),
                    client.post("/v1/events", added),
                )
                failed += for_old.is_error + for_new.is_error
                theirs += for_old.json().get("accepted", 0)
                ours += for_new.json().get("accepted", 0)
            answer = old.post("/v1/recommendations", json={"user_id": "u", "n": 3})
            assert answer.raise_for_status().json()["history_used"] > 0
            assert old.get("/v1/items/i1").raise_for_status().json()["title"] == "One"
            put = {"items": [{"item_id": "i3", "title": "Three"}]}
            old.put("/v1/items", json=put).raise_for_status()
            assert len(old.get("/v1/users/u").raise_for_status().json()["events"]) == 100
        assert "database_schema_newer" in log.read_text()
        assert client.get("/v1/items/i3").json()["title"] == "Three"
        assert len(client.get("/v1/users/u").json()["events"]) == 100
        answer = client.post("/v1/recommendations", {"user_id": "u", "n": 3}).json()
    figures.record(
        "R13",
        f"the release before beside this one, {database_url.partition(':')[0]}",
        events_of_the_old=theirs,
        events_of_the_new=ours,
        failed=failed,
    )
    assert (theirs, ours, failed) == (50, 50, 0)
    assert answer["history_used"] > 0
