"""Every failure is a problem document (RFC 9457)."""

import gzip
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.app.client import Client, problem

JSON = {"Content-Type": "application/json"}
PATH = "/v1/recommendations"


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/nothing", "/%00", "/v1/recommendations/", "/%ff"]
)
def test_an_unknown_path_is_a_problem(shared_client: Client, path: str) -> None:
    problem(shared_client.get(path), 404, "not_found")


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({f"field{number}": 1 for number in range(50_000)}, "#"),
        ({"history": [{f"field{number}": 1 for number in range(50_000)}]}, "#/history/0"),
    ],
)
def test_a_body_full_of_unknown_fields_is_one_error(
    shared_client: Client, body: dict[str, Any], where: str
) -> None:
    document = problem(shared_client.post(PATH, body), 422, "validation_failed")
    assert [(error["where"], error["code"]) for error in document["errors"]] == [
        (where, "too_many_fields")
    ]


@pytest.mark.parametrize("path", ["/v1/users/a%0ab", "/v1/items/%0a", "/v1/users/%0a/next-time"])
def test_an_id_with_a_line_break_is_invalid(shared_client: Client, path: str) -> None:
    problem(shared_client.get(path), 422, "validation_failed")


@pytest.mark.parametrize("method", ["GET", "DELETE", "PATCH", "BREW"])
def test_an_unsupported_method_is_a_problem(shared_client: Client, method: str) -> None:
    response = shared_client.request(method, PATH)
    assert "POST" in problem(response, 405, "method_not_allowed")["detail"]
    assert response.headers["Allow"] == "POST"


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/v1/items", "GET, HEAD, PUT"),
        ("/v1/items/a%2Fb", "DELETE, GET, HEAD"),
        ("/v1/users/a/recommendations", "GET, HEAD"),
        ("/v1/events", "POST"),
        ("/health/live", "GET, HEAD"),
        ("/docs", "GET, HEAD"),
        ("/dashboard/", "GET, HEAD"),
    ],
)
def test_a_refused_method_lists_the_allowed_methods(
    shared_client: Client, path: str, allowed: str
) -> None:
    response = shared_client.request("PATCH", path)
    detail = f"this path accepts {allowed}, but got PATCH; see /docs"
    assert problem(response, 405, "method_not_allowed")["detail"] == detail
    assert response.headers["Allow"] == allowed


@pytest.mark.parametrize("path", ["/health/live", "/v1/models", "/metrics", "/dashboard/"])
def test_head_returns_the_headers_of_get_without_a_body(shared_client: Client, path: str) -> None:
    get, head = shared_client.get(path), shared_client.request("HEAD", path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["Content-Type"] == get.headers["Content-Type"]
    route = {"method": "HEAD", "route": "/v1/events", "status": "405"}
    before = shared_client.metric("http_requests_total", **route)
    assert shared_client.request("HEAD", "/v1/events").status_code == 405
    assert shared_client.metric("http_requests_total", **route) == before + 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b'{"n": NaN}',
        b'{"n": Infinity}',
        b'{"n": -Infinity}',
        b'{"n": 1e400}',
        b'{"user_id": "\\ud800"}',
        b'{"user_id": "\xed\xa0\x80"}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"{'n': 1}",
        b"{} {}",
        b"\xef\xbb\xbf{}",
        b"9" * 5000,
    ],
)
def test_a_body_that_is_not_json_is_refused(shared_client: Client, body: bytes) -> None:
    problem(shared_client.post(PATH, content=body, headers=JSON), 400, "malformed_json")


@pytest.mark.parametrize("body", [b"[" * 500 + b"]" * 500, b'{"a":' * 500 + b"1" + b"}" * 500])
def test_a_deeply_nested_body_is_refused_by_validation(shared_client: Client, body: bytes) -> None:
    problem(shared_client.post(PATH, content=body, headers=JSON), 422, "validation_failed")


@pytest.mark.parametrize(
    "declared", ["", "text/plain", "application/x-www-form-urlencoded", "json", "nonsense; ;"]
)
def test_a_body_that_is_not_declared_as_json_is_refused(
    shared_client: Client, declared: str
) -> None:
    response = shared_client.post(PATH, content=b"{}", headers={"Content-Type": declared})
    problem(response, 415, "unsupported_media_type")


@pytest.mark.parametrize("declared", ["application/json; charset=utf-8", "application/ld+json"])
def test_any_declaration_of_json_is_accepted(shared_client: Client, declared: str) -> None:
    response = shared_client.post(PATH, content=b"{}", headers={"Content-Type": declared})
    assert response.status_code == 200


def test_a_compressed_body_is_refused_unread(shared_client: Client) -> None:
    compressed = gzip.compress(b" " * 10_000_000)
    response = shared_client.post(
        PATH, content=compressed, headers={**JSON, "Content-Encoding": "gzip"}
    )
    problem(response, 415, "unsupported_media_type")


def test_a_body_with_a_declared_length_beyond_the_limit(shared_client: Client) -> None:
    response = shared_client.post(PATH, content=b" " * (1024 * 1024 + 1), headers=JSON)
    assert "1048576" in problem(response, 413, "body_too_large")["detail"]


def test_a_body_that_grows_beyond_the_limit_is_not_kept(shared_client: Client) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 1024:
            sent += 1
            yield b" " * 65536

    problem(shared_client.post(PATH, content=endless(), headers=JSON), 413, "body_too_large")
    # The service reads and discards as much again, so that the client receives the response.
    assert sent == 2 * 17


def test_a_body_of_exactly_the_limit_is_read(shared_client: Client) -> None:
    body = b"{}" + b" " * (1024 * 1024 - 2)
    assert shared_client.post(PATH, content=body, headers=JSON).status_code == 200


def test_an_unexpected_exception_is_a_problem(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "the user's secret"

    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError(secret)

    monkeypatch.setattr("app.users.router.list_known_users", fail)
    response = client.get("/v1/users")
    assert secret not in str(problem(response, 500, "internal_error"))
    route = {"method": "GET", "route": "/v1/users", "status": "500"}
    assert client.metric("http_requests_total", **route) == 1


def test_a_validation_error_abbreviates_the_value(shared_client: Client) -> None:
    response = shared_client.post(PATH, {"user_id": "x" * 1_000_000})
    detail = problem(response, 422, "validation_failed")["detail"]
    assert "(1000000 characters)" in detail
    assert len(response.content) < 1000


def test_many_validation_errors_are_listed_up_to_a_limit(shared_client: Client) -> None:
    document = problem(
        shared_client.post(PATH, {"history": [{"x": n} for n in range(30)]}),
        422,
        "validation_failed",
    )
    assert len(document["errors"]) == 20


def test_a_harmless_request_id_is_kept(shared_client: Client) -> None:
    def returned_id(sent: str) -> str:
        return shared_client.get("/health/live", headers={"X-Request-ID": sent}).headers[
            "X-Request-ID"
        ]

    assert returned_id("trace-1.A_b") == "trace-1.A_b"
    assert returned_id("x" * 65) != "x" * 65
    assert returned_id("a b\tc") != "a b\tc"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/users/u1"),
        ("GET", "/v1/users"),
        ("GET", "/v1/users/u1/recommendations"),
        ("POST", PATH),
        ("POST", "/v1/events"),
        ("DELETE", "/v1/users/u1"),
        ("GET", "/v1/nothing"),
        ("GET", "/v1/users?x=1"),
        ("GET", "/health/ready"),
        ("GET", "/openapi.json"),
    ],
)
def test_no_cache_may_keep_an_answer(shared_client: Client, method: str, path: str) -> None:
    response = shared_client.request(method, path, json={})
    assert response.headers.get_list("Cache-Control") == ["no-store"]


def test_files_of_the_dashboard_are_revalidated(shared_client: Client) -> None:
    response = shared_client.get("/dashboard/shell/style.css")
    assert response.headers.get_list("Cache-Control") == ["no-cache"]
