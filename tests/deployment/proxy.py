"""Runs nginx with the shipped configuration in front of real replicas."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from sqlalchemy.orm import Session

from app.auth.key_cache import digest_key, generate_key
from app.db.engine import open_engine
from app.db.tables import StoredKey
from migrations.run import upgrade
from model.clock import now
from tests.deployment.name_server import NameServer, run_name_server
from tests.deployment.programs import program, requires_program
from tests.processes import ROOT, Server, Start, eventually, free_port, processes

TEMPLATE = ROOT / "docker" / "proxy" / "nginx.conf.template"
CONNECTIONS_PER_ADDRESS = 128

needs_nginx = requires_program("nginx", "apt-get install nginx-light")


def fill_template(template: str, values: dict[str, str]) -> str:
    """Replaces `${NAME}` in a template; nginx's own variables, `$name`, stay."""
    return re.sub(r"\$\{(\w+)\}", lambda match: values[match.group(1)], template)


@dataclass(frozen=True)
class Proxy:
    """A running proxy.

    Attributes:
        http: a client with an admin key.
        log: the access log, one JSON object per request.
        directory: its bodies, cached pages and configuration.
    """

    process: "subprocess.Popen[bytes]"
    port: int
    http: httpx.Client
    log: Path
    directory: Path

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self.port}"


@dataclass(frozen=True)
class Replica:
    """A process of the service; each has its own address, all have the same port."""

    address: str
    port: int
    server: Server

    @property
    def url(self) -> str:
        """The base URL, which bypasses the proxy."""
        return f"http://{self.address}:{self.port}"

    def is_ready(self) -> bool:
        """Whether the readiness probe succeeds."""
        assert self.server.process.poll() is None, f"the replica died; see {self.server.log}"
        try:
            return httpx.get(f"{self.url}/health/ready").is_success
        except httpx.TransportError:
            return False


@dataclass(frozen=True)
class Site:
    """Replicas behind a proxy, which resolves them by name.

    Attributes:
        key: an admin key; not stored if the site was started without one.
        settings: additional `KAIROS_*` settings of every replica.
    """

    proxy: Proxy
    name_server: NameServer
    replicas: list[Replica]
    replica_port: int
    key: str
    start: Start
    settings: dict[str, str]

    @property
    def pids(self) -> list[int]:
        """The process ids of the proxy and the replicas."""
        return [self.proxy.process.pid, *(each.server.process.pid for each in self.replicas)]

    def add_replicas(self, count: int) -> None:
        """Start replicas, and register each with the name server once it is ready."""
        starting = [self._start(number) for number in range(count)]
        for replica in starting:
            eventually(replica.is_ready, within_seconds=100)
            self.name_server.addresses.append(replica.address)
        self.replicas.extend(starting)

    def _start(self, number: int) -> Replica:
        address = f"127.0.0.{2 + len(self.replicas) + number}"
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
def start_site(
    directory: Path,
    bundle_store: Path,
    *,
    replicas: int = 2,
    has_key: bool = True,
    **settings: str,
) -> Iterator[Site]:
    """Runs replicas on one database behind the proxy for the duration of the block."""
    database_url = f"sqlite:///{directory / 'kairos.db'}"
    upgrade(database_url)
    key_id, key = generate_key()
    if has_key:
        store_key(database_url, key_id, key)
    replica_port = free_port()
    with (
        run_name_server() as name_server,
        run_proxy(directory, name_server.port, replica_port, key) as proxy,
        processes(directory, bundle_store) as start,
    ):
        site = Site(proxy, name_server, [], replica_port, key, start, settings)
        site.add_replicas(replicas)
        yield site


def store_key(
    database_url: str,
    key_id: str,
    key: str,
    *,
    role: str = "admin",
    requests_per_second: float | None = None,
) -> None:
    """Store an API key."""
    stored = StoredKey(
        key_id=key_id,
        name="tests",
        role=role,
        digest=digest_key(key),
        requests_per_second=requests_per_second,
        created_at=now(),
    )
    engine = open_engine(database_url)
    with Session(engine) as session, session.begin():
        session.add(stored)
    engine.dispose()


@contextmanager
def run_proxy(directory: Path, resolver_port: int, replica_port: int, key: str) -> Iterator[Proxy]:
    """Runs nginx with the shipped configuration on a free port for the duration of the block."""
    nginx = program("nginx")
    assert nginx is not None
    port, work, log = free_port(), directory / "proxy", directory / "proxy.log"
    work.mkdir()
    values = {
        "PROXY_DIRECTORY": str(work),
        "PROXY_LISTEN": f"127.0.0.1:{port}",
        "PROXY_RESOLVER": f"127.0.0.1:{resolver_port}",
        "PROXY_REPLICAS": f"api:{replica_port}",
        "PROXY_CONNECTIONS_PER_ADDRESS": str(CONNECTIONS_PER_ADDRESS),
    }
    configuration = work / "nginx.conf"
    configuration.write_text(fill_template(TEMPLATE.read_text(), values))
    # As root, nginx would run its workers as a user without access to the tests' directories.
    directives = "daemon off;" + (" user root;" if os.geteuid() == 0 else "")
    with log.open("ab") as stream:
        process = subprocess.Popen(
            [nginx, "-e", "stderr", "-p", str(work), "-c", str(configuration), "-g", directives],
            stdout=stream,
            stderr=stream,
        )
    bearer = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=bearer, timeout=30) as http:
        proxy = Proxy(process, port, http, log, work)
        try:
            eventually(lambda: _is_up(proxy))
            yield proxy
        finally:
            process.terminate()
            process.wait(10)


def _is_up(proxy: Proxy) -> bool:
    assert proxy.process.poll() is None, proxy.log.read_text()
    try:
        return proxy.http.get("/nowhere").status_code == 404
    except httpx.TransportError:
        return False
