"""The shipped proxy configuration, really run, in front of real replicas."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from sqlalchemy.orm import Session

from app.auth.key_cache import digest_key, new_key
from app.db.engine import open_engine
from app.db.tables import StoredKey
from migrations.run import upgrade
from model.clock import now
from tests.deployment.names import Names, name_server
from tests.deployment.programs import needs, program
from tests.processes import ROOT, Server, Start, eventually, free_port, processes

TEMPLATE = ROOT / "docker" / "proxy" / "nginx.conf.template"
CONNECTIONS_PER_ADDRESS = 128

needs_nginx = needs("nginx", "nginx-light")


def filled_in(template: str, values: dict[str, str]) -> str:
    """A template with `${NAME}` replaced; what nginx itself calls `$name` stays."""
    return re.sub(r"\$\{(\w+)\}", lambda match: values[match.group(1)], template)


@dataclass(frozen=True)
class Proxy:
    """A running proxy.

    Attributes:
        http: a caller on this machine, with a key that opens everything.
        log: what it wrote: one JSON object a request.
    """

    process: "subprocess.Popen[bytes]"
    port: int
    http: httpx.Client
    log: Path

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"


@dataclass(frozen=True)
class Replica:
    """A process of the service, at an address of its own and the port of all."""

    address: str
    port: int
    server: Server

    @property
    def url(self) -> str:
        """Where it answers, inside."""
        return f"http://{self.address}:{self.port}"

    def is_ready(self) -> bool:
        """Whether it says that it is."""
        assert self.server.process.poll() is None, f"the replica died; see {self.server.log}"
        try:
            return httpx.get(f"{self.url}/health/ready").is_success
        except httpx.TransportError:
            return False


@dataclass(frozen=True)
class Site:
    """Replicas behind a proxy, which finds them by name.

    Attributes:
        key: opens everything, unless none was ever made.
        settings: what every replica runs by, beside what the place in the site asks for.
    """

    proxy: Proxy
    names: Names
    replicas: list[Replica]
    replica_port: int
    key: str
    start: Start
    settings: dict[str, str]

    @property
    def pids(self) -> list[int]:
        """The proxy and the replicas."""
        return [self.proxy.process.pid, *(each.server.process.pid for each in self.replicas)]

    def add_replicas(self, count: int) -> None:
        """Start some more, and let them be found once they are ready."""
        starting = [self._start(place) for place in range(count)]
        for replica in starting:
            eventually(replica.is_ready, within_seconds=100)
            self.names.addresses.append(replica.address)
        self.replicas.extend(starting)

    def _start(self, place: int) -> Replica:
        address = f"127.0.0.{2 + len(self.replicas) + place}"
        server = self.start(
            wait=False,
            KAIROS_HOST=address,
            KAIROS_PORT=str(self.replica_port),
            KAIROS_MIGRATE_ON_START="false",
            # As in docker-compose.yml: only the proxy can reach a replica.
            FORWARDED_ALLOW_IPS="*",
            **{"KAIROS_REQUESTS_PER_SECOND": "100000", **self.settings},
        )
        return Replica(address, self.replica_port, server)


@contextmanager
def site(
    directory: Path,
    bundle_store: Path,
    *,
    replicas: int = 2,
    has_key: bool = True,
    **settings: str,
) -> Iterator[Site]:
    """Replicas on one database behind the shipped proxy, for as long as the block."""
    database_url = f"sqlite:///{directory / 'kairos.db'}"
    upgrade(database_url)
    key_id, key = new_key()
    if has_key:
        keep_key(database_url, key_id, key)
    replica_port = free_port()
    with (
        name_server() as names,
        proxy(directory, names.port, replica_port, key) as running,
        processes(directory, bundle_store) as start,
    ):
        made = Site(running, names, [], replica_port, key, start, settings)
        made.add_replicas(replicas)
        yield made


def keep_key(database_url: str, key_id: str, key: str, *, role: str = "admin") -> None:
    """Store a key; one that opens everything, unless a role is named."""
    stored = StoredKey(
        key_id=key_id, name="tests", role=role, digest=digest_key(key), created_at=now()
    )
    engine = open_engine(database_url)
    with Session(engine) as session, session.begin():
        session.add(stored)
    engine.dispose()


@contextmanager
def proxy(directory: Path, resolver_port: int, replica_port: int, key: str) -> Iterator[Proxy]:
    """The proxy by its shipped configuration, on a port of its own."""
    nginx = program("nginx")
    assert nginx is not None
    port, run, log = free_port(), directory / "proxy", directory / "proxy.log"
    run.mkdir()
    values = {
        "PROXY_DIRECTORY": str(run),
        "PROXY_LISTEN": f"127.0.0.1:{port}",
        "PROXY_RESOLVER": f"127.0.0.1:{resolver_port}",
        "PROXY_REPLICAS": f"api:{replica_port}",
        "PROXY_CONNECTIONS_PER_ADDRESS": str(CONNECTIONS_PER_ADDRESS),
    }
    configuration = run / "nginx.conf"
    configuration.write_text(filled_in(TEMPLATE.read_text(), values))
    # As root its workers would become somebody who may not enter a test's directories.
    orders = "daemon off;" + (" user root;" if os.geteuid() == 0 else "")
    with log.open("ab") as stream:
        process = subprocess.Popen(
            [nginx, "-e", "stderr", "-p", str(run), "-c", str(configuration), "-g", orders],
            stdout=stream,
            stderr=stream,
        )
    bearer = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=bearer, timeout=30) as http:
        running = Proxy(process, port, http, log)
        try:
            eventually(lambda: _answers(running))
            yield running
        finally:
            process.terminate()
            process.wait(10)


def _answers(running: Proxy) -> bool:
    assert running.process.poll() is None, running.log.read_text()
    try:
        return running.http.get("/nowhere").status_code == 404
    except httpx.TransportError:
        return False
