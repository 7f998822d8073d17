"""The service as processes of their own: real sockets, real signals, real logs."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import httpx

ROOT = Path(__file__).parents[1]
PATIENCE_SECONDS = 60.0
_SERVE = ("-m", "app.server")
# As the last step of `kairos demo`.
_SERVE_DEMO = (
    "-c",
    "from app.server import run; from app.settings import Settings; run(Settings(), is_demo=True)",
)


def eventually(claim: Callable[[], bool], *, within_seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until a claim comes true."""
    deadline = time.monotonic() + within_seconds
    while not claim():
        assert time.monotonic() < deadline, f"it never came true in {within_seconds:g} seconds"
        time.sleep(0.01)


def free_port() -> int:
    """A TCP port of this machine that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


_TOKEN_DIRECTORIES: dict[int, Path] = {}
"""Where the processes that these tests started keep their local tokens, by port."""


def find_local_token(port: int, host: str = "127.0.0.1") -> str | None:
    """Find the local token of a process that these tests started; None if it has ended."""
    if port not in _TOKEN_DIRECTORIES:
        return None
    try:
        return (_TOKEN_DIRECTORIES[port] / f"{host}_{port}").read_text()
    except FileNotFoundError:
        return None


class LocalTokenAuth(httpx.Auth):
    """Adds the local token of a process that these tests started.

    Requests with a key of their own, and those to other services, stay as they are.
    """

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """See httpx.Auth."""
        token = find_local_token(request.url.port or 80, request.url.host)
        if token is not None and not {"authorization", "x-api-key"} & request.headers.keys():
            request.headers["Authorization"] = f"Bearer {token}"
        yield request


LOCAL_TOKEN = LocalTokenAuth()


@dataclass(frozen=True)
class Server:
    """A running process, and a client that talks to it.

    Attributes:
        http: a client with its address and its local token; more may be made for `url`.
        log: the file of its log, one JSON object a line, shared by the processes of a test.
    """

    process: "subprocess.Popen[bytes]"
    port: int
    http: httpx.Client
    log: Path

    @property
    def token(self) -> str:
        """Its local token, which takes the place of a key until one exists."""
        token = find_local_token(self.port)
        assert token is not None
        return token

    @property
    def url(self) -> str:
        """The address of the service."""
        return f"http://127.0.0.1:{self.port}"

    def is_alive(self) -> bool:
        """Return whether it answers, though perhaps not ready."""
        return self._probe("live")

    def is_ready(self) -> bool:
        """Return whether its readiness probe succeeds."""
        return self._probe("ready")

    def _probe(self, name: str) -> bool:
        assert self.process.poll() is None, f"the server died; see {self.log}"
        try:
            return self.http.get(f"/health/{name}").status_code == 200
        except httpx.TransportError:
            return False


class Start(Protocol):
    """Starts one more process with these settings, and waits until it is ready."""

    def __call__(self, *, wait: bool = True, is_demo: bool = False, **settings: str) -> Server: ...


@contextmanager
def processes(directory: Path, bundle_store: Path) -> Iterator[Start]:
    """Yield a function that starts a process of the service; kill all of them at the end.

    The processes share a bundle store, a log and, unless a setting names another, one SQLite file
    in `directory`.
    """
    log, runtime_directory = directory / "log", directory / "runtime"
    servers: list[Server] = []

    def start(*, wait: bool = True, is_demo: bool = False, **settings: str) -> Server:
        port = int(settings.get("KAIROS_PORT", free_port()))
        defaults = {
            "KAIROS_DATABASE_URL": f"sqlite:///{directory / 'kairos.db'}",
            "KAIROS_ERASURE_LOG": str(directory / "erasures"),
            "KAIROS_BUNDLE_STORE": str(bundle_store),
            "KAIROS_LOG_FORMAT": "json",
            "KAIROS_RUNTIME_DIRECTORY": str(runtime_directory),
        }
        with log.open("ab") as stream:
            process = subprocess.Popen(
                [sys.executable, *(_SERVE_DEMO if is_demo else _SERVE)],
                env={**os.environ, **defaults, **settings, "KAIROS_PORT": str(port)},
                cwd=ROOT,
                stdout=stream,
                stderr=stream,
            )
        _TOKEN_DIRECTORIES[port] = runtime_directory
        http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30, auth=LOCAL_TOKEN)
        server = Server(process, port, http, log)
        servers.append(server)
        if wait:
            eventually(server.is_ready)
        return server

    try:
        yield start
    finally:
        for server in servers:
            server.http.close()
            server.process.kill()
            server.process.wait(10)
