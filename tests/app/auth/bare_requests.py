"""Builds requests for access control, without a service around it."""

from starlette.requests import Request

HERE = {"host": "localhost:8000"}


def build_request(
    headers: dict[str, str] | list[tuple[str, str]] | None = None,
    *,
    address: str | None = "127.0.0.1",
    query: str = "",
    http_version: str = "1.1",
) -> Request:
    sent = HERE if headers is None else headers
    pairs = sent.items() if isinstance(sent, dict) else sent
    return Request(
        {
            "type": "http",
            "method": "GET",
            "path": "/v1/items",
            "query_string": query.encode(),
            "http_version": http_version,
            "client": None if address is None else (address, 50_000),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in pairs],
        }
    )
