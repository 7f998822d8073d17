"""GET /v1/caller."""

import pytest

from app.auth.key_cache import Role
from app.keys.issuing import create_key
from app.settings import Settings
from migrations.run import upgrade
from tests.app.client import Client, problem, running


def test_a_loopback_caller_has_the_role_admin(client: Client) -> None:
    caller = client.get("/v1/caller").json()
    assert caller == {"name": "loopback", "role": "admin", "has_key": False}


@pytest.mark.parametrize("role", ["read", "admin"])
def test_a_caller_reads_the_name_and_role_of_its_key(settings: Settings, role: Role) -> None:
    upgrade(settings.database_url)
    key = create_key(settings.database_url, name="page", role=role)
    with running(settings) as client:
        answer = client.get("/v1/caller", headers={"Authorization": f"Bearer {key.secret}"})
    assert answer.json() == {"name": f"page ({key.key_id})", "role": role, "has_key": True}
    assert key.secret not in answer.text


def test_a_key_for_ingesting_is_refused(settings: Settings) -> None:
    upgrade(settings.database_url)
    key = create_key(settings.database_url, name="shop", role="ingest")
    with running(settings) as client:
        answer = client.get("/v1/caller", headers={"Authorization": f"Bearer {key.secret}"})
        problem(answer, 403, "forbidden")
