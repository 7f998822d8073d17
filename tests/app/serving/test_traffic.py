"""Which version serves a user: the challenger's share, and versions that requests pin."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from app.serving.model_manager import compute_traffic_position
from app.settings import Settings
from model.store.store import BundleStore
from model.store.traffic import Traffic
from tests.app import tiny_bundle
from tests.app.client import Client, running
from tests.processes import eventually

USERS = [f"user {number}" for number in range(60)]


def version_for(client: Client, user_id: str | None, version: str | None = None) -> str:
    request = {"user_id": user_id, "history": None if user_id else [], "model_version": version}
    response = client.post("/v1/recommendations", request)
    assert response.status_code == 200, response.text
    return str(response.json()["model_version"])


def status_of(client: Client, version: str) -> int:
    return client.post("/v1/recommendations", {"history": [], "model_version": version}).status_code


def has_traffic(client: Client, traffic: Traffic) -> bool:
    active = client.app.state.context.model_manager.active
    challenger = None if active.challenger is None else active.challenger.version
    return bool(challenger == traffic.challenger and active.share == traffic.share)


@pytest.fixture
def challenger(bundle_store: Path) -> str:
    return tiny_bundle.publish(bundle_store, seed=2, activate=False)


@pytest.fixture
def services(settings: Settings) -> Iterator[tuple[Client, Client]]:
    """Two services on one database and one store."""
    with running(settings) as one, running(settings) as other:
        yield one, other


def test_the_traffic_position_of_a_user_is_stable() -> None:
    # Fixed values: a change would reassign the users of every running experiment.
    known = {"u1": 0.3846, "user 7": 0.416, "ü/ \U0001f600": 0.6623}
    assert {user: round(compute_traffic_position(user), 4) for user in known} == known


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.9])
def test_traffic_positions_are_uniform(share: float) -> None:
    users = 40_000
    below = sum(compute_traffic_position(f"user-{number}") < share for number in range(users))
    spread = (share * (1 - share) / users) ** 0.5
    assert abs(below / users - share) < 4 * spread


@pytest.mark.slow
def test_every_process_assigns_the_same_users_to_the_challenger(
    services: tuple[Client, Client], bundle_store: Path, challenger: str
) -> None:
    store = BundleStore(bundle_store)
    current = store.read_current()
    traffic = Traffic(challenger=challenger, share=0.4)
    store.route(traffic)
    for client in services:
        eventually(lambda client=client: has_traffic(client, traffic))
    served = [[version_for(client, user) for user in USERS] for client in (*services, services[0])]
    assert served[0] == served[1] == served[2]
    expected = [challenger if compute_traffic_position(user) < 0.4 else current for user in USERS]
    assert served[0] == expected
    assert {*served[0]} == {current, challenger}


@pytest.mark.slow
def test_a_larger_share_keeps_the_users_of_the_challenger(
    client: Client, bundle_store: Path, challenger: str
) -> None:
    store, groups = BundleStore(bundle_store), []
    for share in (0.0, 0.2, 0.6, 1.0):
        traffic = Traffic(challenger=challenger, share=share)
        store.route(traffic)
        eventually(lambda traffic=traffic: has_traffic(client, traffic))
        groups.append({user for user in USERS if version_for(client, user) == challenger})
    assert all(smaller < larger for smaller, larger in pairwise(groups))
    assert groups[0] == set()
    assert groups[-1] == {*USERS}


def test_the_current_version_serves_anonymous_requests(
    client: Client, bundle_store: Path, challenger: str
) -> None:
    traffic = Traffic(challenger=challenger, share=1.0)
    BundleStore(bundle_store).route(traffic)
    eventually(lambda: has_traffic(client, traffic))
    assert version_for(client, None) == BundleStore(bundle_store).read_current()
    assert version_for(client, "u1") == challenger


def test_a_challenger_that_does_not_open_serves_no_user(
    client: Client, bundle_store: Path, challenger: str
) -> None:
    store = BundleStore(bundle_store)
    tiny_bundle.damage(bundle_store, challenger)
    store.route(Traffic(challenger=challenger, share=1.0))
    eventually(lambda: client.metric("kairos_model_swaps_total", result="refused") == 1)
    assert Counter(version_for(client, user) for user in USERS[:10]) == {store.read_current(): 10}


def test_cleared_traffic_returns_users_to_the_current_version(
    client: Client, bundle_store: Path, challenger: str
) -> None:
    store = BundleStore(bundle_store)
    for traffic in (Traffic(challenger=challenger, share=1.0), Traffic()):
        store.route(traffic)
        eventually(lambda traffic=traffic: has_traffic(client, traffic))
    assert version_for(client, "u1") == store.read_current()


def test_a_pinned_version_serves_requests_that_name_it(
    client: Client, bundle_store: Path, challenger: str
) -> None:
    assert version_for(client, "u1", challenger) == challenger
    assert version_for(client, "u1") == BundleStore(bundle_store).read_current()


@pytest.mark.parametrize("version", ["../bundles", "", "\0", "20200101T000000Z-000000000000"])
def test_a_version_that_is_not_published_is_not_found(client: Client, version: str) -> None:
    assert status_of(client, version) in {404, 422}


def test_a_pinned_version_that_fails_to_open_is_refused(
    client: Client, bundle_store: Path, challenger: str
) -> None:
    tiny_bundle.damage(bundle_store, challenger)
    assert [status_of(client, challenger) for _ in range(2)] == [409, 409]
    tiny_bundle.damage(bundle_store, challenger)  # flips the same bit back
    assert status_of(client, challenger) == 200


@pytest.mark.slow
def test_the_least_recently_pinned_versions_are_closed(
    settings: Settings, bundle_store: Path
) -> None:
    one, two, three = (
        tiny_bundle.publish(bundle_store, seed=seed, activate=False) for seed in (2, 3, 4)
    )
    with running(settings.model_copy(update={"pinned_versions": 2})) as client:
        assert [status_of(client, version) for version in (one, two, one, three)] == [200] * 4
        # An open version serves from memory; a closed one is opened again, and is damaged.
        for version in (one, two, three):
            tiny_bundle.damage(bundle_store, version)
        assert [status_of(client, version) for version in (one, three, two)] == [200, 200, 409]


def test_an_active_version_does_not_count_as_pinned(settings: Settings, bundle_store: Path) -> None:
    one = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    current = str(BundleStore(bundle_store).read_current())
    with running(settings.model_copy(update={"pinned_versions": 1})) as client:
        assert [status_of(client, version) for version in (one, current)] == [200, 200]
        tiny_bundle.damage(bundle_store, one)
        assert status_of(client, one) == 200
