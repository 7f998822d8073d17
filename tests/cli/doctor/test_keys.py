"""The checks of the API keys."""

import pytest

from app.keys.issuing import create_key, list_keys, revoke_key
from model.clock import MICROSECONDS_PER_DAY, now
from tests.cli.doctor.checks import Environment, execute, failures, run_doctor, warnings


def test_a_service_without_keys_is_a_warning(database: str, environment: Environment) -> None:
    execute(database, "DELETE FROM api_keys")
    assert "only requests from this machine" in run_doctor(0)["keys"]["finding"]
    environment(host="0.0.0.0")
    found = run_doctor(0)
    assert warnings(found) == {"keys"}
    assert "although the service listens on 0.0.0.0" in found["keys"]["finding"]


def test_a_service_without_a_valid_key_is_a_failure(database: str) -> None:
    (key,) = list_keys(database)
    revoke_key(database, key.key_id)
    found = run_doctor(1)
    assert failures(found) == {"keys"}
    assert "every request is rejected" in found["keys"]["finding"]


def test_keys_that_never_expire_are_a_warning(database: str) -> None:
    create_key(database, "old", "read")
    found = run_doctor(0)
    assert warnings(found) == {"keys.never_expire"}
    assert "1 never expire, first" in found["keys.never_expire"]["finding"]


def test_expiring_keys_and_a_missing_admin_are_warnings(database: str) -> None:
    (key,) = list_keys(database)
    revoke_key(database, key.key_id)
    create_key(database, "shop", "read", expires_at=now() + 3 * MICROSECONDS_PER_DAY)
    found = run_doctor(0)
    assert warnings(found) == {"keys", "keys.expiry"}
    assert "expires in 3.0 days" in found["keys.expiry"]["finding"]


def test_keys_expire_by_the_time_of_the_database(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_key(database, "shop", "read", expires_at=now() + 30 * MICROSECONDS_PER_DAY)
    assert "keys.expiry" not in run_doctor(0)
    later = now() + 27 * MICROSECONDS_PER_DAY
    monkeypatch.setattr("cli.doctor.run.read_time", lambda _: later)
    assert "expires in 3.0 days" in run_doctor(0)["keys.expiry"]["finding"]
