"""Which requests count as coming from this machine."""

import tracemalloc

import pytest

from app.auth.loopback import get_client_network, is_loopback
from tests.app.auth.bare_requests import HERE, build_request


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8000", "127.0.0.1:8000", "[::1]:8000", "[::1]", "localhost:"]
)
def test_local_hosts_are_loopback(host: str) -> None:
    assert is_loopback(build_request({"host": host}))


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"])
def test_loopback_addresses_are_loopback(address: str) -> None:
    assert is_loopback(build_request(address=address))


@pytest.mark.parametrize(
    "address",
    ["192.0.2.1", "::ffff:192.0.2.1", "fe80::1", "0.0.0.0", "", "localhost", "2130706433", None],
)
def test_other_addresses_are_not_loopback(address: str | None) -> None:
    assert not is_loopback(build_request(address=address))


@pytest.mark.parametrize(
    "host",
    [
        "",
        "rebound.example",
        "localhost.rebound.example",
        "127.0.0.1.rebound.example:8000",
        "localhost:80@rebound.example",
        "localhost:8000:8000",
        "localhost, rebound.example",
        "localhost:²",
        "::1",
        "[::1].rebound.example",
        "[::ffff:7f00:1]:8000",
    ],
)
def test_a_foreign_name_that_resolves_here_is_not_loopback(host: str) -> None:
    assert not is_loopback(build_request({"host": host}))


def test_a_request_without_one_host_header_is_not_loopback() -> None:
    assert not is_loopback(build_request([]))
    assert not is_loopback(build_request([("host", "localhost"), ("host", "localhost")]))


@pytest.mark.parametrize(
    "header",
    [
        "forwarded",
        "via",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-real-ip",
        "x-envoy-external-address",
        "x-original-forwarded-for",
        "cf-connecting-ip",
        "true-client-ip",
        "x-forwarded",
        "x-cluster-client-ip",
        "fastly-client-ip",
        "fly-client-ip",
        "x-azure-clientip",
        "x-appengine-user-ip",
        "x-amz-cf-id",
        "cdn-loop",
        "proxy-client-ip",
        "wl-proxy-client-ip",
        "x-proxyuser-ip",
        "x-host",
    ],
)
def test_a_forwarded_request_is_not_loopback(header: str) -> None:
    assert not is_loopback(build_request({**HERE, header: "127.0.0.1"}))
    assert not is_loopback(build_request({**HERE, header: ""}))


@pytest.mark.parametrize("header", ["x-request-id", "user-agent", "cookie", "sec-fetch-dest"])
def test_headers_of_local_programs_are_loopback(header: str) -> None:
    assert is_loopback(build_request({**HERE, header: "x"}))


def test_http_1_0_counts_as_forwarded() -> None:
    assert not is_loopback(build_request(http_version="1.0"))


@pytest.mark.parametrize(
    ("header", "value", "is_own"),
    [
        ("origin", "http://localhost:8000", True),
        ("origin", "https://localhost:8000", True),
        ("origin", "http://localhost:3000", False),
        ("origin", "https://elsewhere.example", False),
        ("origin", "null", False),
        ("sec-fetch-site", "same-origin", True),
        ("sec-fetch-site", "none", True),
        ("sec-fetch-site", "same-site", False),
        ("sec-fetch-site", "cross-site", False),
    ],
)
def test_a_request_from_a_foreign_page_is_not_loopback(
    header: str, value: str, is_own: bool
) -> None:
    assert is_loopback(build_request({**HERE, header: value})) == is_own


def test_one_customers_ipv6_addresses_are_one_network() -> None:
    networks = [
        get_client_network(build_request(address=each)) for each in ("2001:db8::1", "2001:db8::2:1")
    ]
    assert networks == ["2001:db8::/64"] * 2
    assert get_client_network(build_request(address="2001:db8:0:1::1")) != networks[0]
    assert get_client_network(build_request(address="::ffff:192.0.2.1")) == "192.0.2.1"
    assert get_client_network(build_request(address=None)) == get_client_network(
        build_request(address="?")
    )


@pytest.mark.parametrize("start", ["x", "fe80::1%"])
def test_long_addresses_of_a_forwarding_header_are_not_kept(start: str) -> None:
    tracemalloc.start()
    for number in range(8):
        request = build_request(address=f"{start}{number}" + "z" * 60_000)
        assert get_client_network(request) == "unknown"
        assert not is_loopback(request)
    del request
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 60_000
