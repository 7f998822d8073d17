"""R20: behind a proxy on the same machine, a service without keys admits nobody from outside."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.main import create_app
from app.settings import Settings
from tests.deployment.plain_proxies import (
    PROXIES,
    RUNS_AS_ANOTHER_USER,
    PlainProxy,
    run_plain_proxy,
)
from tests.deployment.programs import requires_program
from tests.processes import LOCAL_TOKEN, Server, processes
from tests.promises.figures import Figures
from tests.promises.strength import Strength

UNLIMITED = {"KAIROS_REQUESTS_PER_SECOND": "1000000"}
README_REQUEST = {"user_id": "u1", "n": 3, "exclude_seen": False, "explain": "attention"}

each_proxy = pytest.mark.parametrize(
    "proxy",
    [
        pytest.param(proxy, id=proxy.name, marks=requires_program(proxy.program, proxy.install))
        for proxy in PROXIES
    ],
)


@pytest.fixture(scope="module")
def service(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service without keys."""
    with processes(tmp_path_factory.mktemp("service"), published) as start:
        yield start(**UNLIMITED)


@pytest.fixture(scope="module")
def demo(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service without keys that shows the demo to this user without a token."""
    with processes(tmp_path_factory.mktemp("demo"), published) as start:
        yield start(is_demo=True, **UNLIMITED)


def list_requests(settings: Settings) -> list[tuple[str, str, dict[str, Any]]]:
    """List a well-formed request for every operation that a caller needs to be authorized for."""
    requests: list[tuple[str, str, dict[str, Any]]] = []
    for path, methods in create_app(settings).openapi()["paths"].items():
        for method, operation in methods.items():
            if "x-role" in operation:
                content = {"json": {}} if "requestBody" in operation else {}
                target = re.sub(r"\{\w+\}", "nothing-here", path)
                requests.append((method.upper(), target, content))
    return [*requests, ("POST", "/v1/recommendations", {"json": README_REQUEST})]


def list_guises(service_port: int) -> list[dict[str, str]]:
    """List headers by which a stranger may pretend to be on the service's machine."""
    hosts = ("localhost", f"localhost:{service_port}", f"127.0.0.1:{service_port}")
    address = {"X-Forwarded-For": "127.0.0.1", "X-Real-IP": "127.0.0.1", "Forwarded": "for=[::1]"}
    named = [{}, *({"Host": host} for host in hosts), address]
    tokens = ({}, {"Authorization": "Bearer kairos_local_" + "A" * 43})
    return [{**guise, **token} for guise in named for token in tokens]


@contextmanager
def outside(proxy: PlainProxy, server: Server) -> Iterator[httpx.Client]:
    """A stranger's client."""
    with run_plain_proxy(proxy, server.port) as url, httpx.Client(base_url=url) as client:
        yield client


def count_admitted(
    client: httpx.Client, server: Server, settings: Settings
) -> tuple[int, dict[tuple[str, str], int]]:
    """Send every request in every guise; return their number, and those not refused with 401."""
    admitted: dict[tuple[str, str], int] = {}
    sent = 0
    for method, path, content in list_requests(settings):
        for guise in list_guises(server.port):
            status = client.request(method, path, headers=guise, **content).status_code
            sent += 1
            # Some proxies refuse a request themselves whose headers contradict each other.
            if status not in {400, 401, 403}:
                admitted[f"{method} {path}", str(guise)] = status
    return sent, admitted


@each_proxy
@pytest.mark.timeout(300)
def test_a_service_without_keys_admits_nobody_through_a_proxy(
    proxy: PlainProxy, service: Server, settings: Settings, strength: Strength, figures: Figures
) -> None:
    with outside(proxy, service) as client:
        sent, admitted = count_admitted(client, service, settings)
        refused = client.get("/v1/caller")
    figures.record("R20", f"behind {proxy.name}", requests=sent, admitted=len(admitted))
    assert admitted == {}
    assert refused.status_code == 401
    assert service.http.get("/v1/caller").json()["role"] == "admin"


@each_proxy
@pytest.mark.skipif(not RUNS_AS_ANOTHER_USER, reason="only root runs proxies as another user")
@pytest.mark.timeout(300)
def test_the_demo_admits_nobody_through_a_proxy(
    proxy: PlainProxy, demo: Server, settings: Settings, figures: Figures
) -> None:
    with outside(proxy, demo) as client:
        sent, admitted = count_admitted(client, demo, settings)
    figures.record("R20", f"the demo behind {proxy.name}", requests=sent, admitted=len(admitted))
    assert admitted == {}


def test_the_demo_shows_its_items_without_a_token(demo: Server) -> None:
    with httpx.Client(base_url=demo.url) as local:
        answer = local.post("/v1/recommendations", json=README_REQUEST)
        assert answer.status_code == 200, answer.text
        assert local.get("/v1/items").status_code == 200
        assert local.get("/v1/caller").status_code == 401
        for path in ("/v1/users", "/v1/users/u1", "/v1/models/changes", "/v1/metrics"):
            assert local.get(path).status_code == 401, path
        assert local.post("/v1/events", json={"events": []}).status_code == 401
        assert local.delete("/v1/users/u1").status_code == 401
    assert demo.http.get("/v1/users", auth=LOCAL_TOKEN).status_code == 200
