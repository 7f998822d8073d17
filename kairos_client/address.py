"""Where the service is, and who asks."""

import os
import re
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import httpx

from kairos_client.errors import InvalidError
from kairos_client.exchange import Send

KEY_VARIABLE = "KAIROS_API_KEY"
POOL = httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=2.0)
"""Connections of our own. They rest for less than the 5 seconds after which the service closes
them: a request on one that is just being closed is lost, and who knows whether it was read."""

_PRINTABLE = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class Address:
    """The root of the service's paths, and the headers of every request."""

    root: str
    headers: dict[str, str]

    def __repr__(self) -> str:
        # Headers hold the key, which must not get into logs.
        return f"Address({self.root!r})"

    @classmethod
    def of(cls, base_url: str, api_key: str | None) -> "Address":
        """The address of a service; without a key, the one that the environment has, if any.

        Raises:
            InvalidError: if the URL is not one of HTTP, or the key cannot be part of a header.
        """
        url = _url(base_url)
        if (
            url is None
            or url.scheme not in {"http", "https"}
            or not url.host
            or url.query
            or url.fragment
        ):
            raise InvalidError(
                f"a base URL is http or https and a host, with a path at most, but got "
                f"{base_url!r}; write it like http://127.0.0.1:8000",
                code="base_url",
            )
        headers = {"Accept": "application/json", "User-Agent": f"kairos-client/{_version()}"}
        key = os.environ.get(KEY_VARIABLE) if api_key is None else api_key
        if key:
            if not _PRINTABLE.fullmatch(key):
                raise InvalidError(
                    f"an API key is printable ASCII without spaces, but this one of {len(key)} "
                    "characters is not; see that it was read without its line break",
                    code="api_key",
                )
            headers["Authorization"] = f"Bearer {key}"
        return cls(base_url.rstrip("/"), headers)

    def request(
        self, http: httpx.Client | httpx.AsyncClient, send: Send, timeout: float
    ) -> httpx.Request:
        """The request of a step; no wait for the network goes beyond the deadline."""
        call = send.call
        body = {} if call.content is None else {"Content-Type": "application/json"}
        return http.build_request(
            call.method,
            self.root + call.path,
            content=call.content,
            headers=self.headers | body,
            timeout=max(0.001, min(timeout, send.ends_at - time.monotonic())),
        )


def _url(text: str) -> httpx.URL | None:
    try:
        return httpx.URL(text)
    except httpx.InvalidURL:
        return None


def _version() -> str:
    try:
        return version("kairos")
    except PackageNotFoundError:
        return "unknown"
