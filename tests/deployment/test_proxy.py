"""The shipped proxy configuration in front of real replicas."""

import json
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.deployment.proxy import CONNECTIONS_PER_ADDRESS, Site, needs_nginx, site
from tests.deployment.slow import kept_slow, slow_body
from tests.processes import eventually

pytestmark = needs_nginx

ASKED = {"history": [{"item_id": "i1", "timestamp": 1_767_225_600}], "n": 3}
EVERY_FORWARDING_HEADER = {
    "X-Forwarded-For": "127.0.0.1",
    "X-Real-IP": "127.0.0.1",
    "Forwarded": "for=127.0.0.1;host=localhost",
    "X-Forwarded-Host": "localhost",
    "X-Forwarded-Port": "8000",
    "Host": "localhost",
}
SECRET_USER = "user-nobody-may-read-in-a-log"


def proxied(behind: Site) -> list[dict[str, str | int]]:
    return [json.loads(line) for line in behind.proxy.log.read_text().splitlines()]


def raw(behind: Site, request: bytes) -> bytes:
    """What the proxy answers to these very bytes."""
    with socket.create_connection(("127.0.0.1", behind.proxy.port), timeout=10) as wire:
        wire.sendall(request)
        answer = b""
        while received := wire.recv(65536):
            answer += received
    return answer


def test_every_replica_serves_some_of_the_requests(behind: Site) -> None:
    before = len(proxied(behind))
    answers = [behind.proxy.http.post("/v1/recommendations", json=ASKED) for _ in range(40)]
    assert {answer.status_code for answer in answers} == {200}
    # A line is written after its answer, and what no replica was asked names none.
    eventually(lambda: len(proxied(behind)) >= before + 40)
    asked = Counter(line["replicas"] for line in proxied(behind)[before:] if line["replicas"])
    assert set(asked) == {f"{replica.address}:{replica.port}" for replica in behind.replicas}
    assert min(asked.values()) >= 5


@pytest.mark.parametrize(
    "path",
    [
        "/metrics",
        "/metrics/",
        "//metrics",
        "/%6detrics",
        "/v1/../metrics",
        "/v1/%2e%2e/metrics",
        "/v1/..%2fmetrics",
        "/dashboard/../metrics",
        "/metrics?x=/v1/models",
        "/metrics#/v1/",
        "/./metrics",
        "/health/../metrics",
        "/problem/not_found",
        "/redoc",
        "/",
    ],
)
def test_internal_paths_cannot_be_reached_from_outside(behind: Site, path: str) -> None:
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    answer = raw(behind, request.encode())
    assert answer.startswith(b"HTTP/1.1 404 ")
    assert b"http_requests_total" not in answer


def test_an_absolute_request_target_reaches_no_internal_path(behind: Site) -> None:
    answer = raw(
        behind, b"GET http://api/metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )
    assert answer.startswith(b"HTTP/1.1 404 ")


def test_metrics_are_open_inside(behind: Site) -> None:
    page = httpx.get(f"{behind.replicas[0].url}/metrics")
    assert "http_requests_total" in page.text


@pytest.fixture(scope="module")
def keyless(tmp_path_factory: pytest.TempPathFactory, published: Path) -> Iterator[Site]:
    """A replica for which no key was ever made, behind the proxy."""
    settings = {"KAIROS_REQUESTS_PER_SECOND": "5"}
    directory = tmp_path_factory.mktemp("keyless")
    with site(directory, published, replicas=1, has_key=False, **settings) as running:
        yield running


def test_forged_loopback_headers_are_refused(keyless: Site) -> None:
    inside = keyless.replicas[0].url
    assert httpx.get(f"{inside}/v1/models", headers={"Host": "localhost"}).status_code == 200
    through = f"{keyless.proxy.url}/v1/models"
    assert httpx.get(through).status_code == 401
    assert httpx.get(through, headers={"Host": "localhost"}).status_code == 401
    assert httpx.get(through, headers=EVERY_FORWARDING_HEADER).status_code == 401


def test_a_client_is_limited_by_its_address_not_its_headers(keyless: Site) -> None:
    def caller(address: str) -> httpx.Client:
        transport = httpx.HTTPTransport(local_address=address)
        return httpx.Client(transport=transport, base_url=keyless.proxy.url, timeout=30)

    with caller("127.0.0.51") as many, caller("127.0.0.52") as one:
        for turn in range(200):
            says = {"X-Forwarded-For": f"203.0.113.{turn}"}
            if many.get("/v1/models", headers=says).status_code == 429:
                break
        else:
            pytest.fail("whoever says to be somebody else each time is never limited")
        says = {"X-Forwarded-For": "127.0.0.51"}
        assert one.get("/v1/models", headers=says).status_code == 401


def test_a_body_beyond_the_limit_is_refused_like_the_service(behind: Site) -> None:
    answer = behind.proxy.http.post("/v1/events", content=b" " * (2**20 + 1))
    assert answer.status_code == 413
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "body_too_large"
    assert answer.json()["request_id"] == answer.headers["X-Request-ID"]
    inside = httpx.post(
        f"{behind.replicas[0].url}/v1/events",
        content=b" " * (2**20 + 1),
        headers={"X-API-Key": behind.key, "Content-Type": "application/json"},
    )
    assert inside.json().keys() == answer.json().keys()
    assert inside.json()["type"] == answer.json()["type"]


def test_a_body_up_to_the_limit_reaches_the_service(behind: Site) -> None:
    answer = behind.proxy.http.post(
        "/v1/events", content=b" " * 2**20, headers={"Content-Type": "application/json"}
    )
    assert answer.json()["code"] == "malformed_json"


@pytest.mark.parametrize("size", [9_000, 40_000])
def test_a_header_beyond_the_limit_is_refused(behind: Site, size: int) -> None:
    answer = behind.proxy.http.get("/v1/models", headers={"X-Long": "x" * size})
    assert answer.status_code == 431
    assert answer.json()["code"] == "head_too_large"


def test_a_path_beyond_the_limit_is_refused(behind: Site) -> None:
    answer = behind.proxy.http.get("/v1/users/" + "x" * 9_000)
    assert answer.status_code == 414
    assert answer.json()["code"] == "uri_too_long"


def test_what_is_not_http_is_refused(behind: Site) -> None:
    answer = raw(behind, b"GET /v1/models HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"urn:kairos:problem:malformed_request" in answer


def test_two_lengths_of_one_body_are_refused(behind: Site) -> None:
    request = (
        b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
        b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n"
        b"GET /metrics HTTP/1.1\r\n\r\n"
    )
    answer = raw(behind, request)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1


def test_proxy_service_and_client_share_a_request_id(behind: Site) -> None:
    answer = behind.proxy.http.get("/v1/models", headers={"X-Request-ID": "seen-by-all"})
    assert answer.headers["X-Request-ID"] == "seen-by-all"
    eventually(lambda: "seen-by-all" in behind.replicas[0].server.log.read_text())
    eventually(lambda: proxied(behind)[-1]["request_id"] == "seen-by-all")
    injected = behind.proxy.http.get("/v1/models", headers={"X-Request-ID": 'a","b":"c'})
    assert injected.headers["X-Request-ID"] != 'a","b":"c'
    assert all("b" not in line for line in proxied(behind))


def test_an_id_with_slashes_reaches_the_service_as_it_was_sent(behind: Site) -> None:
    stored = {"items": [{"item_id": "a/b//c", "title": "three"}]}
    assert behind.proxy.http.put("/v1/items", json=stored).is_success
    assert behind.proxy.http.get("/v1/items/a%2Fb%2F%2Fc").json()["title"] == "three"


def test_ids_and_keys_are_in_no_log_of_the_proxy(behind: Site) -> None:
    behind.proxy.http.get(f"/v1/users/{SECRET_USER}")
    behind.proxy.http.get(f"/{SECRET_USER}")
    behind.proxy.http.post(f"/v1/users/{SECRET_USER}", content=b" " * 2**21)
    log = behind.proxy.log.read_text()
    assert SECRET_USER not in log
    assert behind.key not in log


def test_one_address_cannot_take_every_connection(behind: Site) -> None:
    address = "127.0.0.77"
    slowness = slow_body(behind.key)
    with kept_slow(behind.proxy.port, slowness, CONNECTIONS_PER_ADDRESS, [address]):
        transport = httpx.HTTPTransport(local_address=address)
        with httpx.Client(transport=transport, base_url=behind.proxy.url) as one_more:
            eventually(lambda: one_more.get("/health/live").status_code == 429)
            refused = one_more.get("/health/live")
        assert refused.json()["code"] == "too_many_connections"
        assert refused.headers["Retry-After"] == "1"
        assert behind.proxy.http.get("/health/live").status_code == 200


def test_without_replicas_the_proxy_sends_502_with_retry_after(behind: Site) -> None:
    found, behind.names.addresses[:] = list(behind.names.addresses), []
    try:
        eventually(lambda: behind.proxy.http.get("/health/live").status_code == 502)
        answer = behind.proxy.http.get("/health/live")
        assert answer.json()["code"] == "replica_failed"
        assert answer.headers["Retry-After"] == "2"
    finally:
        behind.names.addresses[:] = found
    eventually(lambda: behind.proxy.http.get("/health/live").status_code == 200)
