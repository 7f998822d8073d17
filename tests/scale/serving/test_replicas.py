"""Two replicas on machines of their own, while everything around them stops in turn."""

import signal
import time
from collections import Counter
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from app.auth.key_cache import generate_key
from model.store.mirrored import MirroredStore
from model.store.objects import ObjectStorage
from tests.app import tiny_bundle
from tests.deployment.proxy import needs_nginx, store_key
from tests.processes import eventually
from tests.scale.serving.object_store import ObjectStore
from tests.scale.serving.site import Clients, Site, run_site

pytestmark = [needs_nginx, pytest.mark.timeout(400)]


def restart(site: Site, machine: int) -> None:
    """Replace the process of a machine by a new one, which finds the copy of the one before."""
    old = site.replicas[machine]
    old.server.process.send_signal(signal.SIGTERM)
    # It reports not ready, and serves until everybody has noticed.
    eventually(lambda: not old.is_ready())
    site.names.addresses.remove(old.address)
    assert old.server.process.wait(30) == 0
    site.admit(site.add_replica(cache=old.cache, machine=machine))


def lose_a_machine(site: Site, clients: Clients) -> None:
    """Kill a replica, with its disk; later a new one takes its place."""
    lost = site.replicas[0]
    lost.server.process.kill()
    clients.wait_for(50)
    time.sleep(0.5)
    site.names.addresses.remove(lost.address)
    lost.server.process.wait(10)
    clients.wait_for(50)
    site.admit(site.add_replica(machine=0))


def measure_limit(site: Site, rate: float, seconds: int) -> int:
    """Flood both replicas with one key; return how many requests they admitted together."""
    key_id, key = generate_key()
    store_key(site.settings["KAIROS_DATABASE_URL"], key_id, key, requests_per_second=rate)
    headers = {"X-API-Key": key}
    urls = [replica.url for replica in site.replicas]
    eventually(lambda: all(get(url, headers) != 401 for url in urls))
    time.sleep(6)  # a full bucket, as every process has that has not settled lately
    statuses: Counter[int] = Counter()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        statuses.update(get(url, headers) for url in urls)
        time.sleep(0.005)
    assert statuses.keys() == {200, 429}
    return statuses[200]


def get(url: str, headers: dict[str, str]) -> int:
    return httpx.get(f"{url}/v1/caller", headers=headers).status_code


def test_nothing_that_stops_fails_a_request(
    tmp_path: Path, migrated_postgresql_url: str, object_store: ObjectStore
) -> None:
    prefix = uuid4().hex
    trainer = MirroredStore(ObjectStorage(f"{object_store.url}/{prefix}"), tmp_path / "trainer")

    def publish(seed: int) -> str:
        version = tiny_bundle.publish(tmp_path / "runs", seed=seed)
        return trainer.add_copy(tmp_path / "runs" / version)

    first = publish(1)
    with run_site(tmp_path, migrated_postgresql_url, object_store, prefix) as site:
        with Clients(site) as clients:
            clients.wait_for(50)
            second = publish(2)
            swap_seconds = site.measure_convergence(second)

            began = time.monotonic()
            restart(site, 0)
            restart(site, 1)
            restart_seconds = time.monotonic() - began
            clients.wait_for(50)

            lose_a_machine(site, clients)
            clients.wait_for(50)

            eventually(lambda: all(first in it.list_versions(site.key) for it in site.replicas))
            object_store.stop()
            try:
                eventually(
                    lambda: all(
                        "not followed" in str(it.read_health()["model"]) for it in site.replicas
                    )
                )
                assert {replica.read_health()["code"] for replica in site.replicas} == {200}
                with pytest.raises(ConnectionError, match="does not answer"):
                    trainer.activate(first)
                refused = site.proxy.http.post(f"/v1/models/{first}/activate", json={})
                assert (refused.status_code, refused.json()["code"]) == (503, "store_unavailable")
                restart(site, 1)  # what starts meanwhile serves from its copy
                clients.wait_for(50)
            finally:
                object_store.start()
            third = publish(3)
            recovery_seconds = site.measure_convergence(third)
            eventually(lambda: all(it.read_health()["model"] == "ok" for it in site.replicas))

            changed = site.proxy.http.post(f"/v1/models/{first}/activate", json={})
            assert changed.status_code == 200
            assert changed.json()["previous_version"] == third
            activation_seconds = site.measure_convergence(first)
            clients.wait_for(50)
        # Without the clients, which take the processors.
        rate, seconds = 10.0, 10
        admitted = measure_limit(site, rate, seconds)
    assert clients.outcomes.keys() == {"answered"}
    # Each process begins with a full bucket of two seconds; by themselves they would admit 240.
    assert rate * seconds <= admitted <= rate * (seconds + 1) + 2 * rate * len(site.replicas)
    assert clients.versions.keys() == {first, second, third}
    print(  # noqa: T201 - the figures of the proof
        f"{clients.outcomes['answered']} requests, 0 failed; seconds until both replicas answer "
        f"with a version: published {swap_seconds:.1f}, after the object store was lost "
        f"{recovery_seconds:.1f}, activated {activation_seconds:.1f}; rolling restart "
        f"{restart_seconds:.1f}; {admitted} requests admitted of a key with {rate:g} a second in "
        f"{seconds} seconds"
    )
