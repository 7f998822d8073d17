"""R19: the clock of one replica is an hour off, and every answer is that of the other replicas."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from sqlalchemy.orm import Session

from app.auth.key_cache import Key, digest_key, generate_key
from app.db.engine import WRITES, open_engine
from app.http.types import format_instant, parse_instant
from app.keys.issuing import create_key
from app.keys.repository import KeyRepository
from model.clock import MICROSECONDS_PER_SECOND, now
from model.wide import WideConfig
from tests.app import tiny_bundle
from tests.app.tiny_bundle import ITEM_IDS
from tests.processes import Server, eventually, processes
from tests.promises.figures import Figures

MINUTE = 60 * MICROSECONDS_PER_SECOND
FAKETIME = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
"""Debian's package faketime, which shifts the clock of a process."""

pytestmark = [
    pytest.mark.skipif(not FAKETIME, reason="the package faketime is not installed"),
    pytest.mark.timeout(600),
]


@dataclass
class Replicas:
    """Two replicas on one database: `right` has the time, `skewed` is an hour off.

    Attributes:
        answers: what was compared, with the answers of both.
    """

    right: Server
    skewed: Server
    url: str
    answers: dict[str, tuple[object, object]] = field(default_factory=dict)

    def compare(self, name: str, request: Callable[[httpx.Client], object]) -> None:
        """Ask both, until they agree or the patience ends: each reads the database by itself."""

        def agree() -> bool:
            self.answers[name] = request(self.right.http), request(self.skewed.http)
            return self.answers[name][0] == self.answers[name][1]

        try:
            eventually(agree, within_seconds=5)
        except AssertionError:
            return

    def find_differences(self) -> list[str]:
        """Name what the replicas answer differently."""
        return [name for name, (right, skewed) in self.answers.items() if right != skewed]


@pytest.fixture(params=["+1h", "-1h"])
def skew(request: pytest.FixtureRequest) -> str:
    """The offset of the skewed clock, as faketime reads it."""
    return str(request.param)


@pytest.fixture
def replicas(skew: str, migrated_postgresql_url: str, tmp_path: Path) -> Iterator[Replicas]:
    """The replicas, with two versions that count popularity; requests carry an admin's key."""
    store = tmp_path / "bundles"
    tiny_bundle.publish(store, seed=1, wide=WideConfig())
    tiny_bundle.publish(store, seed=2, activate=False)
    key = create_key(migrated_postgresql_url, "operator", "admin").secret
    settings = {
        "KAIROS_DATABASE_URL": migrated_postgresql_url,
        "KAIROS_POLL_INTERVAL_SECONDS": "0.05",
        "KAIROS_POPULARITY_INTERVAL_SECONDS": "0.1",
    }
    faked = {
        "LD_PRELOAD": str(FAKETIME[0]),
        "FAKETIME": skew,
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }
    with processes(tmp_path, store) as start:
        servers = start(**settings), start(**settings, **faked)
        for server in servers:
            server.http.headers["Authorization"] = f"Bearer {key}"
        yield Replicas(*servers, migrated_postgresql_url)


def test_one_clock_an_hour_off_changes_no_answer(
    replicas: Replicas, skew: str, figures: Figures
) -> None:
    compare_query_times(replicas)
    compare_availability(replicas)
    compare_deletions(replicas)
    compare_events(replicas)
    compare_keys(replicas)
    compare_erasures(replicas)
    compare_popularity(replicas)
    compare_versions(replicas)
    different = replicas.find_differences()
    figures.record(
        "R19", f"one clock {skew}", compared=len(replicas.answers), different=len(different)
    )
    assert different == [], {name: replicas.answers[name] for name in different}


def compare_query_times(replicas: Replicas) -> None:
    """The default query time is now, within the minutes that a slow machine takes."""

    def is_current(http: httpx.Client) -> bool:
        answer = recommend(http, query_time=None)
        return abs(parse_instant(answer["query_time"]) - now()) < 20 * MINUTE

    replicas.compare("default query time", is_current)
    assert replicas.answers["default query time"][0] is True


def compare_availability(replicas: Replicas) -> None:
    """Windows that begin or end half an hour ago, and in half an hour."""
    ago, ahead = format_instant(now() - 30 * MINUTE), format_instant(now() + 30 * MINUTE)
    windows = {
        "i1": {"available_from": ago},
        "i2": {"available_from": ahead},
        "i3": {"available_until": ago},
        "i4": {"available_until": ahead},
    }
    for number, (item_id, window) in enumerate(windows.items()):
        writer = (replicas.right, replicas.skewed)[number % 2]
        put_item(writer.http, item_id, **window)
    eventually(lambda: "i3" not in list_items(replicas.right.http))
    replicas.compare("availability", lambda http: sorted(list_items(http)))
    assert {"i1", "i4"} <= {*list_items(replicas.right.http)}
    assert "i2" not in list_items(replicas.right.http)
    replicas.compare("similar items", lambda http: get(http, "/v1/items/i5/similar")["items"])


def compare_deletions(replicas: Replicas) -> None:
    """A change by one replica, and the deletion by the other one, in both directions."""
    pairs = ((replicas.right, replicas.skewed), (replicas.skewed, replicas.right))
    for item_id, (writer, deleter) in zip(("i6", "i7"), pairs, strict=True):
        put_item(writer.http, item_id, title="New")
        titles = {writer: "New", deleter: "New"}
        for server in titles:
            eventually(lambda server=server, item_id=item_id: is_renamed(server.http, item_id))
        assert deleter.http.delete(f"/v1/items/{item_id}").status_code == 204
        replicas.compare(f"deletion of {item_id}", lambda http, it=item_id: it in list_items(http))
    eventually(lambda: not {"i6", "i7"} & {*list_items(replicas.right.http)})


def compare_events(replicas: Replicas) -> None:
    """Events of the past and the near future are stored, those of the far future are not."""
    for minutes in (-30, 2, 30):
        at = now() + minutes * MINUTE
        replicas.compare(f"event {minutes:+} minutes", lambda http, at=at: send_event(http, at))
    assert replicas.answers["event +30 minutes"][0] == "in_the_future"
    assert replicas.answers["event -30 minutes"][0] == "accepted"


def compare_keys(replicas: Replicas) -> None:
    """Keys that expired half an hour ago, and that expire in half an hour."""
    secrets = {
        f"key that expires {minutes:+} minutes": add_key(
            replicas.url, expires_at=now() + minutes * MINUTE
        )
        for minutes in (-30, 30)
    }
    valid = secrets["key that expires +30 minutes"]
    eventually(lambda: read_status(replicas.right.http, valid) == 200)
    for name, secret in secrets.items():
        replicas.compare(name, lambda http, secret=secret: read_status(http, secret))
    assert [replicas.answers[name][0] for name in secrets] == [401, 200]
    limited = add_key(replicas.url, expires_at=now() + 30 * MINUTE, requests_per_second=1e-6)
    # The first request that the key authorizes takes the only token for weeks.
    for server in (replicas.right, replicas.skewed):
        eventually(lambda server=server: read_status(server.http, limited) == 429)
    replicas.compare("limit of a key", lambda http: read_status(http, limited))


def compare_erasures(replicas: Replicas) -> None:
    """An erased user's earlier events are rejected, whichever replica erased the user."""
    outcomes = []
    for server in (replicas.right, replicas.skewed):
        user_id = str(uuid4())
        assert server.http.delete(f"/v1/users/{user_id}").status_code == 200
        outcomes.append(
            [
                send_event(http, now() - 30 * MINUTE, user_id)
                for http in (replicas.right.http, replicas.skewed.http)
            ]
        )
    replicas.answers["erasure"] = outcomes[0], outcomes[1]
    assert outcomes[0] == ["user_erased"] * 2


def compare_popularity(replicas: Replicas) -> None:
    """Events of ten minutes ago count, in users without a history."""
    at = now() - 10 * MINUTE
    events = [build_event(at + number, item_id="i9") for number in range(200)]
    assert replicas.right.http.post("/v1/events", json={"events": events}).status_code == 200
    eventually(lambda: list_items(replicas.right.http, history=[])[0] == "i9")
    replicas.compare("popularity", lambda http: list_items(http, history=[])[:1])


def compare_versions(replicas: Replicas) -> None:
    """Activations by both replicas in turn, and their record."""
    versions = [one["version"] for one in get(replicas.right.http, "/v1/models")["models"]]
    for server, version in zip((replicas.skewed, replicas.right), versions, strict=True):
        response = server.http.post(f"/v1/models/{version}/activate", json={})
        assert response.status_code == 200, response.text
        replicas.compare(f"version {version}", lambda http: recommend(http)["model_version"])
    changes = get(replicas.right.http, "/v1/models/changes")["changes"]
    # A clock an hour off would record one of them an hour apart.
    instants = [parse_instant(change["at"]) for change in changes]
    replicas.answers["record of changes"] = (max(instants) - min(instants) < 20 * MINUTE, True)
    replicas.compare("list of changes", lambda http: get(http, "/v1/models/changes"))


def recommend(http: httpx.Client, **changed: Any) -> dict[str, Any]:
    history = [{"item_id": "i5", "timestamp": tiny_bundle.FIRST_AT // MICROSECONDS_PER_SECOND}]
    request = {"history": history, "n": len(ITEM_IDS), "exclude_seen": False, **changed}
    response = http.post("/v1/recommendations", json=request)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def list_items(http: httpx.Client, **changed: Any) -> list[str]:
    return [item["item_id"] for item in recommend(http, **changed)["items"]]


def is_renamed(http: httpx.Client, item_id: str) -> bool:
    items = {item["item_id"]: item["title"] for item in recommend(http)["items"]}
    return items.get(item_id) == "New"


def put_item(http: httpx.Client, item_id: str, **fields: Any) -> None:
    response = http.put("/v1/items", json={"items": [{"item_id": item_id, **fields}]})
    assert response.status_code == 200, response.text


def get(http: httpx.Client, path: str) -> dict[str, Any]:
    response = http.get(path)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def build_event(at: int, user_id: str | None = None, item_id: str = "i8") -> dict[str, Any]:
    return {
        "user_id": user_id or str(uuid4()),
        "item_id": item_id,
        "action": "view",
        "timestamp": format_instant(at),
    }


def send_event(http: httpx.Client, at: int, user_id: str | None = None) -> str:
    """Send an event; returns "accepted", or the code of its rejection."""
    response = http.post("/v1/events", json={"events": [build_event(at, user_id)]})
    assert response.status_code == 200, response.text
    rejected = response.json()["rejected"]
    return str(rejected[0]["code"]) if rejected else "accepted"


def add_key(database_url: str, *, expires_at: int, requests_per_second: float | None = None) -> str:
    """Store a key, also one that has expired already; returns it."""
    key_id, secret = generate_key()
    key = Key(key_id, "test", "read", digest_key(secret), requests_per_second, 0, expires_at, None)
    engine = open_engine(database_url).execution_options(**WRITES)
    with Session(engine) as session, session.begin():
        KeyRepository(session).add(key, actor="test")
    engine.dispose()
    return secret


def read_status(http: httpx.Client, secret: str) -> int:
    headers = {"Authorization": f"Bearer {secret}"}
    return http.get("/v1/items", headers=headers, params={"limit": 1}).status_code
