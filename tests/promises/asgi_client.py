"""Raw bytes to an ASGI application, and a check of the response against its description."""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from starlette.types import Message

from app.auth.key_cache import Key, digest_key, generate_key
from app.http.problems import MEDIA_TYPE, Problem
from app.keys.repository import KeyRepository
from app.keys.service import refresh_keys
from model.clock import now
from tests.app.client import Client

Headers = tuple[tuple[bytes, bytes], ...]

# A path with an extra slash may match another route, or none.
_EXTRA_SLASH = re.compile(rb"%2f|//|/$")
_RULE_VALUE_REMEDY = re.compile(r".+, but .+; .+[^.]", re.S)
_NO_ROUTE = {404: b'"not_found"', 405: b'"method_not_allowed"'}


@dataclass(frozen=True)
class RawRequest:
    """An HTTP request as bytes."""

    method: str
    target: bytes
    headers: Headers = ()
    body: bytes = b""

    def __str__(self) -> str:
        return f"{self.method} {self.target[:200]!r} {self.body[:300]!r} {self.headers!r:.200}"


@dataclass(frozen=True)
class RawResponse:
    """An HTTP response as bytes."""

    status: int
    headers: Mapping[str, str]
    content: bytes


@dataclass
class AsgiClient:
    """Sends raw requests to a running application, by default with an admin key."""

    client: Client

    def __post_init__(self) -> None:
        key_id, self.key = generate_key()
        key = Key(
            key_id=key_id,
            name="tests",
            role="admin",
            digest=digest_key(self.key),
            requests_per_second=None,
            created_at=now(),
            expires_at=None,
            revoked_at=None,
        )
        context = self.client.app.state.context

        async def add_key() -> None:
            await context.database.write(
                lambda session: KeyRepository(session).add(key, actor="nobody")
            )
            await refresh_keys(context)

        self.client.portal.call(add_key)

    def send(self, request: RawRequest) -> RawResponse:
        """Send a request, with an admin key and a host where it has none of its own."""
        names = {name.lower() for name, _ in request.headers}
        defaults: Headers = (
            () if b"authorization" in names else ((b"x-api-key", self.key.encode()),)
        )
        defaults += () if b"host" in names else ((b"host", b"localhost"),)
        return self.client.portal.call(self._send, request, (*request.headers, *defaults))

    async def _send(self, request: RawRequest, headers: Headers) -> RawResponse:
        path, _, query = request.target.partition(b"?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "scheme": "http",
            "method": request.method,
            "path": unquote(path.decode("ascii")),  # as uvicorn does
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": [(name.lower(), value) for name, value in headers],
            "client": ("127.0.0.1", 1),
            "server": ("localhost", 80),
            "state": {},
        }
        pending = [{"type": "http.request", "body": request.body, "more_body": False}]
        sent: list[Message] = []

        is_answered = asyncio.Event()

        async def receive() -> Message:
            if pending:
                return pending.pop()
            # As a client that waits for its response.
            await is_answered.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            sent.append(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                is_answered.set()

        await self.client.app(scope, receive, send)
        headers_received = {
            name.decode().lower(): value.decode() for name, value in sent[0]["headers"]
        }
        content = b"".join(message.get("body", b"") for message in sent[1:])
        return RawResponse(sent[0]["status"], headers_received, content)


def find_fault(
    request: RawRequest, response: RawResponse, operation: Mapping[str, Any]
) -> str | None:
    """Describe how a response departs from its operation's description; None if it conforms."""
    summary = f"status {response.status}: {response.content[:500]!r}"
    described = operation["responses"].get(str(response.status))
    media = response.headers.get("content-type", "").partition(";")[0]
    if response.status in _NO_ROUTE and _NO_ROUTE[response.status] in response.content:
        return None if _EXTRA_SLASH.search(request.target.lower()) else summary
    if described is None or response.status >= 500:
        return summary
    if response.status < 400:
        content = described.get("content", {})
        return None if media in content or not (content or media) else f"media type {media!r}"
    return summary if media != MEDIA_TYPE else _find_problem_fault(response, described)


def _find_problem_fault(response: RawResponse, described: Mapping[str, Any]) -> str | None:
    problem = Problem.model_validate_json(response.content)
    codes = re.findall(r"`(\w+)`", described["description"])
    if problem.code not in codes or problem.status != response.status:
        return f"code {problem.code!r} with status {response.status}, where {codes} are documented"
    if problem.request_id != response.headers["x-request-id"]:
        return "the request_id of another request"
    is_complete = _RULE_VALUE_REMEDY.fullmatch(problem.detail)
    return None if is_complete else f"no rule, value and remedy: {problem.detail[:500]!r}"


def list_operations(description: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """List the operations of an OpenAPI description by `METHOD /path`."""
    return {
        f"{method.upper()} {path}": operation
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    }


def encode_json(value: object) -> bytes:
    """Encode a value as JSON in ASCII; lone surrogates are escaped."""
    return json.dumps(value).encode()
