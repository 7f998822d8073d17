"""The shipped proxy configuration in front of real replicas."""

import json
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from tests.deployment.proxy import CONNECTIONS_PER_ADDRESS, Site, needs_nginx, start_site
from tests.deployment.slow_clients import run_slow_clients, slow_body
from tests.processes import eventually, find_local_token

pytestmark = needs_nginx

REQUEST = {"history": [{"item_id": "i1", "timestamp": 1_767_225_600}], "n": 3}
EVERY_FORWARDING_HEADER = {
    "X-Forwarded-For": "127.0.0.1",
    "X-Real-IP": "127.0.0.1",
    "Forwarded": "for=127.0.0.1;host=localhost",
    "X-Forwarded-Host": "localhost",
    "X-Forwarded-Port": "8000",
    "Host": "localhost",
}
SECRET_USER = "user-nobody-may-read-in-a-log"


def read_log(site: Site) -> list[dict[str, str | int]]:
    return [json.loads(line) for line in site.proxy.log.read_text().splitlines()]


def send_bytes(site: Site, request: bytes) -> bytes:
    """The proxy's response to a request of these bytes."""
    with socket.create_connection(("127.0.0.1", site.proxy.port), timeout=10) as tcp:
        tcp.sendall(request)
        response = b""
        while received := tcp.recv(65536):
            response += received
    return response


def test_every_replica_serves_some_of_the_requests(site: Site) -> None:
    before = len(read_log(site))
    responses = [site.proxy.http.post("/v1/recommendations", json=REQUEST) for _ in range(40)]
    assert {response.status_code for response in responses} == {200}
    # A line is written after its response; it names no replica if none was involved.
    eventually(lambda: len(read_log(site)) >= before + 40)
    counts = Counter(line["replicas"] for line in read_log(site)[before:] if line["replicas"])
    assert set(counts) == {f"{replica.address}:{replica.port}" for replica in site.replicas}
    assert min(counts.values()) >= 5


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
def test_internal_paths_cannot_be_reached_from_outside(site: Site, path: str) -> None:
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    response = send_bytes(site, request.encode())
    assert response.startswith(b"HTTP/1.1 404 ")
    assert b"http_requests_total" not in response


def test_an_absolute_request_target_reaches_no_internal_path(site: Site) -> None:
    response = send_bytes(
        site, b"GET http://api/metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )
    assert response.startswith(b"HTTP/1.1 404 ")


def test_metrics_are_readable_without_the_proxy(site: Site) -> None:
    page = httpx.get(f"{site.replicas[0].url}/metrics")
    assert "http_requests_total" in page.text


@pytest.fixture(scope="module")
def keyless(tmp_path_factory: pytest.TempPathFactory, published: Path) -> Iterator[Site]:
    """A replica behind the proxy, without any API key in its database."""
    settings = {"KAIROS_REQUESTS_PER_SECOND": "5"}
    directory = tmp_path_factory.mktemp("keyless")
    with start_site(directory, published, replicas=1, has_key=False, **settings) as running:
        yield running


def test_forged_loopback_headers_are_refused(keyless: Site) -> None:
    replica = keyless.replicas[0]
    token = find_local_token(replica.port, replica.address)
    bearer = {"Authorization": f"Bearer {token}"}
    local = {**bearer, "Host": "localhost"}
    assert httpx.get(f"{replica.url}/v1/models", headers=local).status_code == 200
    outside = f"{keyless.proxy.url}/v1/models"
    for stolen in ({}, bearer):
        assert httpx.get(outside, headers=stolen).status_code == 401
        assert httpx.get(outside, headers={**stolen, "Host": "localhost"}).status_code == 401
        assert httpx.get(outside, headers={**EVERY_FORWARDING_HEADER, **stolen}).status_code == 401


def test_a_client_is_limited_by_its_address_not_its_headers(keyless: Site) -> None:
    def client(address: str) -> httpx.Client:
        transport = httpx.HTTPTransport(local_address=address)
        return httpx.Client(transport=transport, base_url=keyless.proxy.url, timeout=30)

    with client("127.0.0.51") as first, client("127.0.0.52") as second:
        for turn in range(200):
            headers = {"X-Forwarded-For": f"203.0.113.{turn}"}
            if first.get("/v1/models", headers=headers).status_code == 429:
                break
        else:
            pytest.fail("a client with a new X-Forwarded-For in each request is never limited")
        headers = {"X-Forwarded-For": "127.0.0.51"}
        assert second.get("/v1/models", headers=headers).status_code == 401


def test_a_body_beyond_the_limit_is_refused_like_the_service(site: Site) -> None:
    response = site.proxy.http.post("/v1/events", content=b" " * (2**20 + 1))
    assert response.status_code == 413
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["code"] == "body_too_large"
    assert response.json()["request_id"] == response.headers["X-Request-ID"]
    inside = httpx.post(
        f"{site.replicas[0].url}/v1/events",
        content=b" " * (2**20 + 1),
        headers={"X-API-Key": site.key, "Content-Type": "application/json"},
    )
    assert inside.json().keys() == response.json().keys()
    assert inside.json()["type"] == response.json()["type"]


def test_a_body_up_to_the_limit_reaches_the_service(site: Site) -> None:
    response = site.proxy.http.post(
        "/v1/events", content=b" " * 2**20, headers={"Content-Type": "application/json"}
    )
    assert response.json()["code"] == "malformed_json"


@pytest.mark.parametrize("size", [9_000, 40_000])
def test_a_header_beyond_the_limit_is_refused(site: Site, size: int) -> None:
    response = site.proxy.http.get("/v1/models", headers={"X-Long": "x" * size})
    assert response.status_code == 431
    assert response.json()["code"] == "head_too_large"


def test_a_path_beyond_the_limit_is_refused(site: Site) -> None:
    response = site.proxy.http.get("/v1/users/" + "x" * 9_000)
    assert response.status_code == 414
    assert response.json()["code"] == "uri_too_long"


def test_malformed_http_is_refused(site: Site) -> None:
    response = send_bytes(site, b"GET /v1/models HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")
    assert response.startswith(b"HTTP/1.1 400 ")
    assert b"urn:kairos:problem:malformed_request" in response


def test_two_lengths_of_one_body_are_refused(site: Site) -> None:
    request = (
        b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
        b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n"
        b"GET /metrics HTTP/1.1\r\n\r\n"
    )
    response = send_bytes(site, request)
    assert response.startswith(b"HTTP/1.1 400 ")
    assert response.count(b"HTTP/1.1 ") == 1


def test_proxy_service_and_client_share_a_request_id(site: Site) -> None:
    response = site.proxy.http.get("/v1/models", headers={"X-Request-ID": "seen-by-all"})
    assert response.headers["X-Request-ID"] == "seen-by-all"
    eventually(lambda: "seen-by-all" in site.replicas[0].server.log.read_text())
    eventually(lambda: read_log(site)[-1]["request_id"] == "seen-by-all")
    injected = site.proxy.http.get("/v1/models", headers={"X-Request-ID": 'a","b":"c'})
    assert injected.headers["X-Request-ID"] != 'a","b":"c'
    assert all("b" not in line for line in read_log(site))


def test_encoded_slashes_reach_the_service_unchanged(site: Site) -> None:
    ids = ("a/b//c", "a/similar", "a/../b", "a%2Fb")
    stored = {"items": [{"item_id": item_id, "title": f"title of {item_id}"} for item_id in ids]}
    assert site.proxy.http.put("/v1/items", json=stored).is_success
    for item_id in ids:
        item = site.proxy.http.get(f"/v1/items/{quote(item_id, safe='')}").json()
        assert item["title"] == f"title of {item_id}"


def test_only_pages_of_the_dashboard_are_cached(site: Site) -> None:
    disguised = "/v1/users/..%2F..%2Fdashboard%2Fleak.html"
    response = send_bytes(
        site,
        f"GET {disguised} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {site.key}\r\n"
        "Connection: close\r\n\r\n".encode(),
    )
    assert response.startswith(b"HTTP/1.1 200 ")
    assert httpx.get(f"{site.proxy.url}/dashboard/leak.html").status_code == 404
    before = len(read_log(site))
    for _ in range(2):
        assert httpx.get(f"{site.proxy.url}/dashboard/shell/api.js").is_success
    eventually(lambda: len(read_log(site)) >= before + 2)
    assert read_log(site)[-1]["cache"] == "HIT"


def test_a_cached_page_carries_the_id_of_its_own_request(site: Site) -> None:
    for number in range(3):
        headers = {"X-Request-ID": f"reader-{number}"}
        page = site.proxy.http.get("/dashboard/shell/style.css", headers=headers)
        assert page.headers.get_list("X-Request-ID") == [f"reader-{number}"]


@pytest.mark.parametrize("path", [f"/v1/users/{SECRET_USER}", "/v1/nothing", "/nothing"])
def test_no_cache_may_keep_what_is_about_callers(site: Site, path: str) -> None:
    assert site.proxy.http.get(path).headers.get_list("Cache-Control") == ["no-store"]


def test_a_failure_of_the_proxy_names_no_user(site: Site) -> None:
    """A body that nginx cannot keep in a file is logged with the path of its request."""
    bodies = site.proxy.directory / "body"
    bodies.rename(bodies.with_name("elsewhere"))
    try:
        path = f"/v1/users/{SECRET_USER}"
        response = site.proxy.http.post(path, content=b" " * 100_000)
    finally:
        bodies.with_name("elsewhere").rename(bodies)
    assert response.status_code == 502
    assert SECRET_USER not in site.proxy.log.read_text()


def test_ids_and_keys_are_in_no_log_of_the_proxy(site: Site) -> None:
    site.proxy.http.get(f"/v1/users/{SECRET_USER}")
    site.proxy.http.get(f"/{SECRET_USER}")
    site.proxy.http.post(f"/v1/users/{SECRET_USER}", content=b" " * 2**21)
    log = site.proxy.log.read_text()
    assert SECRET_USER not in log
    assert site.key not in log


def test_connections_per_address_are_limited(site: Site) -> None:
    address = "127.0.0.77"
    request = slow_body(site.key)
    with run_slow_clients(site.proxy.port, request, CONNECTIONS_PER_ADDRESS, [address]):
        transport = httpx.HTTPTransport(local_address=address)
        with httpx.Client(transport=transport, base_url=site.proxy.url) as client:
            eventually(lambda: client.get("/health/live").status_code == 429)
            refused = client.get("/health/live")
        assert refused.json()["code"] == "too_many_connections"
        assert refused.headers["Retry-After"] == "1"
        assert site.proxy.http.get("/health/live").status_code == 200


def test_without_replicas_the_proxy_sends_502_with_retry_after(site: Site) -> None:
    registered, site.name_server.addresses[:] = list(site.name_server.addresses), []
    try:
        eventually(lambda: site.proxy.http.get("/health/live").status_code == 502)
        response = site.proxy.http.get("/health/live")
        assert response.json()["code"] == "replica_failed"
        assert response.headers["Retry-After"] == "2"
    finally:
        site.name_server.addresses[:] = registered
    eventually(lambda: site.proxy.http.get("/health/live").status_code == 200)
