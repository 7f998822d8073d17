"""Asking an application exactly what one means to: bytes in, and a judgement of the answer."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from starlette.types import Message

from app.auth.key_cache import Key, digest_key, new_key
from app.http.problems import MEDIA_TYPE, Problem
from app.keys.repository import KeyRepository
from app.keys.service import refresh_keys
from model.clock import now
from tests.app.client import Client

Headers = tuple[tuple[bytes, bytes], ...]

# A path with a slash too many may be the address of something else, or of nothing.
_LEADS_ASTRAY = re.compile(rb"%2f|//|/$")
_RULE_VALUE_REMEDY = re.compile(r".+, but .+; .+[^.]", re.S)
_ASTRAY = {404: b'"not_found"', 405: b'"method_not_allowed"'}


@dataclass(frozen=True)
class Asked:
    """A request, as it stands on the wire."""

    method: str
    target: bytes
    headers: Headers = ()
    body: bytes = b""

    def __str__(self) -> str:
        return f"{self.method} {self.target[:200]!r} {self.body[:300]!r} {self.headers!r:.200}"


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    content: bytes


@dataclass
class Asking:
    """Sends requests to a running application, with a key that opens everything."""

    client: Client

    def __post_init__(self) -> None:
        key_id, self.key = new_key()
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

        async def make() -> None:
            await context.database.write(lambda session: KeyRepository(session).add(key))
            await refresh_keys(context)

        self.client.portal.call(make)

    def send(self, asked: Asked) -> Answer:
        """The answer to a request, to which the key is added where it names none itself."""
        names = {name.lower() for name, _ in asked.headers}
        ours: Headers = () if b"authorization" in names else ((b"x-api-key", self.key.encode()),)
        ours += () if b"host" in names else ((b"host", b"localhost"),)
        return self.client.portal.call(self._send, asked, (*asked.headers, *ours))

    async def _send(self, asked: Asked, headers: Headers) -> Answer:
        path, _, query = asked.target.partition(b"?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "scheme": "http",
            "method": asked.method,
            "path": unquote(path.decode("ascii")),  # as uvicorn does
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": [(name.lower(), value) for name, value in headers],
            "client": ("127.0.0.1", 1),
            "server": ("localhost", 80),
            "state": {},
        }
        unread = [{"type": "http.request", "body": asked.body, "more_body": False}]
        sent: list[Message] = []

        async def receive() -> Message:
            return unread.pop() if unread else {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            sent.append(message)

        await self.client.app(scope, receive, send)
        told = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
        content = b"".join(message.get("body", b"") for message in sent[1:])
        return Answer(sent[0]["status"], told, content)


def fault(asked: Asked, answer: Answer, operation: Mapping[str, Any]) -> str | None:
    """What is wrong with an answer by the description of its operation; None if nothing."""
    told = f"status {answer.status}: {answer.content[:500]!r}"
    described = operation["responses"].get(str(answer.status))
    media = answer.headers.get("content-type", "").partition(";")[0]
    if answer.status in _ASTRAY and _ASTRAY[answer.status] in answer.content:
        return None if _LEADS_ASTRAY.search(asked.target.lower()) else told
    if described is None or answer.status >= 500:
        return told
    if answer.status < 400:
        content = described.get("content", {})
        return None if media in content or not (content or media) else f"an answer in {media!r}"
    return told if media != MEDIA_TYPE else _fault_of_problem(answer, described)


def _fault_of_problem(answer: Answer, described: Mapping[str, Any]) -> str | None:
    problem = Problem.model_validate_json(answer.content)
    codes = re.findall(r"`(\w+)`", described["description"])
    if problem.code not in codes or problem.status != answer.status:
        return f"code {problem.code!r} with status {answer.status}, where {codes} are documented"
    if problem.request_id != answer.headers["x-request-id"]:
        return "a problem of another request"
    told = _RULE_VALUE_REMEDY.fullmatch(problem.detail)
    return None if told else f"no rule, value and remedy: {problem.detail[:500]!r}"


def operations(description: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Every operation of an API's description, by `METHOD /path`."""
    return {
        f"{method.upper()} {path}": operation
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    }


def as_json(value: object) -> bytes:
    """JSON, lone surrogates and all."""
    return json.dumps(value).encode()
