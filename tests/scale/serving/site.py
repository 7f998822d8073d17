"""Replicas of several machines behind a real proxy, with one database and one object store."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from app.auth.key_cache import generate_key
from tests.deployment.name_server import NameServer, run_name_server
from tests.deployment.proxy import Proxy, run_proxy, store_key
from tests.processes import Server, Start, eventually, free_port, processes
from tests.scale.serving.object_store import ObjectStore

REQUEST = {"history": [{"item_id": "i1", "timestamp": 1_767_225_600}], "n": 3}
CONVERGENCE_SECONDS = 10.0
_CLIENTS = 2
_PAUSE_SECONDS = 0.02


@dataclass
class Replica:
    """A process of the service on a machine of its own: its address, and its copy of the bundles.

    Attributes:
        server: None while the machine is off.
    """

    address: str
    port: int
    cache: Path
    server: Server

    @property
    def url(self) -> str:
        """The base URL, which bypasses the proxy."""
        return f"http://{self.address}:{self.port}"

    def read_health(self) -> dict[str, Any]:
        """Read the readiness probe: its status, and each part."""
        response = httpx.get(f"{self.url}/health/ready")
        return {"code": response.status_code, **response.json()}

    def is_ready(self) -> bool:
        """Whether the readiness probe succeeds."""
        assert self.server.process.poll() is None, f"the replica died; see {self.server.log}"
        try:
            return httpx.get(f"{self.url}/health/ready").is_success
        except httpx.TransportError:
            return False

    def list_versions(self, key: str) -> set[str]:
        """List the versions that are published, as far as this replica knows."""
        listed = httpx.get(f"{self.url}/v1/models", headers={"X-API-Key": key}).json()
        return {model["version"] for model in listed["models"]}

    def read_version(self, key: str) -> str:
        """Ask for a recommendation; return the version of the answer."""
        response = httpx.post(
            f"{self.url}/v1/recommendations", json=REQUEST, headers={"X-API-Key": key}
        )
        version: str = response.json()["model_version"]
        return version


@dataclass
class Site:
    """Two replicas behind the proxy, which finds them by name.

    Attributes:
        key: an admin key.
    """

    directory: Path
    proxy: Proxy
    names: NameServer
    key: str
    start: Start
    settings: dict[str, str]
    port: int
    replicas: list[Replica] = field(default_factory=list)

    def add_replica(self, *, cache: Path | None = None, machine: int | None = None) -> Replica:
        """Start a replica on a new machine, or on one whose process has ended."""
        number = len(self.replicas) if machine is None else machine
        address = f"127.0.0.{2 + number}"
        cache = cache or self.directory / f"cache-{number}-{time.monotonic_ns()}"
        server = self.start(
            wait=False,
            KAIROS_HOST=address,
            KAIROS_PORT=str(self.port),
            KAIROS_BUNDLE_CACHE=str(cache),
            **self.settings,
        )
        replica = Replica(address, self.port, cache, server)
        if machine is None:
            self.replicas.append(replica)
        else:
            self.replicas[machine] = replica
        return replica

    def admit(self, replica: Replica) -> None:
        """Wait until a replica is ready, and until the proxy sends requests to it."""
        eventually(replica.is_ready)
        before = self._count_proxied(replica)
        self.names.addresses.append(replica.address)

        def is_found() -> bool:
            self.proxy.http.post("/v1/recommendations", json=REQUEST)
            return self._count_proxied(replica) > before

        eventually(is_found)

    def _count_proxied(self, replica: Replica) -> int:
        return self.proxy.log.read_text().count(f"{replica.address}:{replica.port}")

    def measure_convergence(self, version: str) -> float:
        """Wait until every replica answers with a version; return the seconds."""
        began = time.monotonic()
        eventually(
            lambda: {each.read_version(self.key) for each in self.replicas} == {version},
            within_seconds=CONVERGENCE_SECONDS,
        )
        return time.monotonic() - began


class Clients:
    """Clients that send requests through the proxy, each on its own connection.

    Attributes:
        outcomes: how many responses there were: `answered`, or what else came back.
        versions: the versions of the answers.
    """

    def __init__(self, site: Site) -> None:
        self.outcomes: Counter[str] = Counter()
        self.versions: Counter[str] = Counter()
        self._site = site
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._send) for _ in range(_CLIENTS)]

    def __enter__(self) -> "Clients":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _send(self) -> None:
        headers = {"X-API-Key": self._site.key}
        with httpx.Client(base_url=self._site.proxy.url, headers=headers, timeout=30) as http:
            while not self._stopping.is_set():
                try:
                    response = http.post("/v1/recommendations", json=REQUEST)
                except httpx.TransportError as error:
                    self.outcomes[repr(error)] += 1
                else:
                    body = response.json()
                    self.outcomes[str(body.get("code", "answered"))] += 1
                    self.versions[str(body.get("model_version"))] += 1
                self._stopping.wait(_PAUSE_SECONDS)

    def wait_for(self, responses: int) -> None:
        """Wait until that many more responses have arrived."""
        total = sum(self.outcomes.values()) + responses
        eventually(lambda: sum(self.outcomes.values()) >= total)


@contextmanager
def run_site(
    directory: Path, database_url: str, object_store: ObjectStore, prefix: str
) -> Iterator[Site]:
    """Run two replicas behind the proxy for the duration of the block.

    Args:
        database_url: a migrated database.
        prefix: of the bundles in the object store; one of them is current.
    """
    key_id, key = generate_key()
    store_key(database_url, key_id, key)
    port = free_port()
    settings = {
        "KAIROS_BUNDLE_STORE": f"{object_store.url}/{prefix}",
        "KAIROS_DATABASE_URL": database_url,
        "KAIROS_MIGRATE_ON_START": "false",
        "KAIROS_REQUESTS_PER_SECOND": "100000",
        # A busy machine sheds load; what is tested here is whether a request finds a replica.
        "KAIROS_INFERENCE_PATIENCE_SECONDS": "60",
        # The proxy resolves names again after two, counted in whole ones.
        "KAIROS_DRAIN_SECONDS": "4",
        "FORWARDED_ALLOW_IPS": "*",
    }
    with (
        run_name_server() as names,
        run_proxy(directory, names.port, port, key) as proxy,
        processes(directory, directory / "nowhere") as start,
    ):
        site = Site(directory, proxy, names, key, start, settings, port)
        for replica in (site.add_replica(), site.add_replica()):
            site.admit(replica)
        yield site
