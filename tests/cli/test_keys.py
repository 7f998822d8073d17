"""The `kairos keys` commands."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from app.auth.key_cache import digest_key
from app.db.engine import open_engine
from app.http.types import parse_instant
from app.settings import Settings
from migrations.run import downgrade, upgrade
from model.clock import MICROSECONDS_PER_DAY, now
from tests.app.client import running
from tests.app.conftest import (  # noqa: F401 - a fixture is found where it is named
    database_url,
    postgresql_server,
    postgresql_url,
    sqlite_url,
)
from tests.cli.world import kairos

Keys = Callable[..., Any]


@pytest.fixture
def keys(database_url: str) -> Keys:  # noqa: F811
    """Runs `kairos keys` on a migrated database of each kind."""
    upgrade(database_url)

    def run(*arguments: str, exit_code: int = 0) -> Any:
        return kairos("keys", *arguments, "--database", database_url, exit_code=exit_code)

    return run


def listed(keys: Keys) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(keys("list", "--json").stdout)
    return rows


def test_only_the_new_key_goes_to_standard_output(keys: Keys) -> None:
    created = keys("create", "shop", "--role", "read")
    assert re.fullmatch(r"kairos_[0-9a-f]{16}_[\w-]{43}\n", created.stdout)
    assert "this once only" in created.stderr
    assert created.stdout.strip() not in created.stderr


def test_the_first_key_ends_the_local_token_and_says_so(keys: Keys) -> None:
    first = keys("create", "shop", "--role", "read").stderr
    second = keys("create", "feed", "--role", "ingest").stderr
    assert [
        "the local token no longer admit" in " ".join(it.split()) for it in (first, second)
    ] == [
        True,
        False,
    ]


def test_only_the_digest_of_a_key_is_stored(keys: Keys, database_url: str) -> None:  # noqa: F811
    secret = keys("create", "shop", "--role", "read").stdout.strip()
    engine = open_engine(database_url)
    with engine.connect() as connection:
        row = connection.execute(text("SELECT * FROM api_keys")).one()
    engine.dispose()
    assert digest_key(secret) in row
    assert secret.split("_", 2)[2] not in str(row)


def test_keys_are_listed_with_their_state(keys: Keys) -> None:
    assert listed(keys) == []
    keys("create", "shop", "--role", "read", "--requests-per-second", "5")
    keys("create", "feed", "--role", "ingest", "--expires", "90d")
    keys("create", "ops", "--role", "admin", "--expires", "2999-01-01T00:00:00+01:00")
    keys("revoke", listed(keys)[0]["key_id"])
    shop, feed, ops = listed(keys)
    assert (shop["name"], shop["role"], shop["state"]) == ("shop", "read", "revoked")
    assert shop["requests_per_second"] == 5.0
    assert (shop["user_prefix"], shop["may_list_users"]) == (None, True)
    assert (feed["name"], feed["role"], feed["state"]) == ("feed", "ingest", "valid")
    assert ops["expires_at"] == "2998-12-31T23:00:00Z"
    table = keys("list").stdout
    assert all(cell in table for cell in ("shop", "revoked", feed["key_id"], "2998-12-31"))


def test_a_key_expires_after_a_year_by_default(keys: Keys) -> None:
    before = now()
    assert "valid until 20" in keys("create", "shop", "--role", "read").stderr
    assert "never expires" in keys("create", "old", "--role", "read", "--expires", "never").stderr
    shop, old = listed(keys)
    year = parse_instant(shop["expires_at"]) - before
    assert 0 <= year - 365 * MICROSECONDS_PER_DAY < MICROSECONDS_PER_DAY
    assert old["expires_at"] is None
    assert "never" in keys("list").stdout


def test_a_keys_reach_is_listed(keys: Keys) -> None:
    keys("create", "acme", "--role", "read", "--user-prefix", "acme/", "--no-user-list")
    (key,) = listed(keys)
    assert (key["user_prefix"], key["may_list_users"]) == ("acme/", False)
    assert "acme/..., no list" in keys("list").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--role", "admin", "--user-prefix", "acme/"), "reaches every user"),
        (("--role", "admin", "--no-user-list"), "reaches every user"),
        (("--role", "ingest", "--no-user-list"), "leave --no-user-list out"),
        (("--role", "read", "--user-prefix", ""), "1 to 255 printable"),
        (("--role", "read", "--user-prefix", "a" * 256), "1 to 255 printable"),
    ],
)
def test_an_invalid_reach_is_refused(keys: Keys, arguments: tuple[str, ...], message: str) -> None:
    assert message in keys("create", "shop", *arguments, exit_code=1).stderr
    assert listed(keys) == []


@pytest.mark.parametrize(("period", "days"), [("36h", 1.5), ("90d", 90), ("2w", 14)])
def test_a_period_is_counted_from_now(sqlite_url: str, period: str, days: float) -> None:  # noqa: F811
    upgrade(sqlite_url)
    before = now()
    arguments = ("create", "n", "--role", "read", "--expires", period, "--database", sqlite_url)
    kairos("keys", *arguments)
    engine = open_engine(sqlite_url)
    with engine.connect() as connection:
        expires_at = connection.scalar(text("SELECT expires_at FROM api_keys"))
    engine.dispose()
    assert 0 <= expires_at - before - days * MICROSECONDS_PER_DAY < 60_000_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("shop", "--expires", "2020-01-01T00:00:00Z"), "expires in the future"),
        (("shop", "--expires", "0d"), "expires in the future"),
        (("shop", "--expires", "2999-01-01T00:00:00"), "an offset"),
        (("shop", "--expires", "soon"), "write 12h, 90d, 4w"),
        (("shop", "--requests-per-second", "0"), "is 0.001 to 1e+09 requests a second"),
        (("shop", "--requests-per-second", "nan"), "is 0.001 to 1e+09 requests a second"),
        (("shop", "--requests-per-second", "1e-320"), "is 0.001 to 1e+09 requests a second"),
        (("shop", "--requests-per-second", "inf"), "is 0.001 to 1e+09 requests a second"),
        (("shop\nadmin",), "printable"),
        (("",), "printable"),
        (("s" * 129,), "1 to 128"),
    ],
)
def test_an_invalid_key_is_not_created(
    sqlite_url: str,  # noqa: F811
    arguments: tuple[str, ...],
    message: str,
) -> None:
    upgrade(sqlite_url)
    database = ("--database", sqlite_url)
    result = kairos("keys", "create", *arguments, "--role", "read", *database, exit_code=1)
    assert message in result.stderr
    assert result.stdout == ""
    assert kairos("keys", "list", "--json", *database).stdout == "[]\n"


def test_an_unknown_role_is_a_usage_error(keys: Keys) -> None:
    assert "--role" in keys("create", "x", "--role", "root", exit_code=2).stderr


def test_revoking_a_key_twice_succeeds(keys: Keys) -> None:
    keys("create", "shop", "--role", "read")
    (key,) = listed(keys)
    assert "is revoked" in keys("revoke", key["key_id"]).stderr
    revoked_at = listed(keys)[0]["revoked_at"]
    assert "was revoked already" in keys("revoke", key["key_id"]).stderr
    assert listed(keys)[0]["revoked_at"] == revoked_at


def test_an_unknown_key_cannot_be_revoked(keys: Keys) -> None:
    assert "none has the id 'nobody'" in keys("revoke", "nobody", exit_code=1).stderr


def test_a_missing_database_is_named_and_not_created(tmp_path: Path) -> None:
    file = tmp_path / "nothing" / "here.db"
    database = ("--database", f"sqlite:///{file}")
    result = kairos("keys", "create", "shop", "--role", "read", *database, exit_code=1)
    assert "was never migrated; run kairos migrate" in result.stderr
    assert not file.parent.exists()


def test_an_old_revision_of_the_database_is_named(keys: Keys, database_url: str) -> None:  # noqa: F811
    downgrade(database_url, "0001")
    assert "is at 0001; run kairos migrate" in keys("list", exit_code=1).stderr


def test_an_unreachable_database_is_an_error_not_a_traceback() -> None:
    down = "postgresql://kairos@127.0.0.1:9/kairos"
    assert "must answer" in kairos("keys", "list", "--database", down, exit_code=1).stderr


def test_the_service_accepts_a_created_key(sqlite_url: str, tmp_path: Path) -> None:  # noqa: F811
    upgrade(sqlite_url)
    database = ("--database", sqlite_url)
    key = kairos("keys", "create", "shop", "--role", "read", *database).stdout.strip()
    settings = Settings(database_url=sqlite_url, bundle_store=tmp_path)
    with running(settings) as client:
        assert client.get("/v1/items").status_code == 401
        bearer = {"Authorization": f"Bearer {key}"}
        assert client.get("/v1/items", headers=bearer).status_code == 200
