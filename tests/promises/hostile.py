"""Hostile requests: malformed and extreme values in every location that takes a value."""

import itertools
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from tests.promises.asgi_client import Headers, RawRequest, encode_json

MIB = 1024 * 1024
JSON: Headers = ((b"content-type", b"application/json"),)

IN_BODIES: tuple[bytes, ...] = (
    rb'"\u0000"',
    rb'"a\u0000b"',
    rb'"\ud800"',
    b'"\xed\xa0\x80"',
    b'"\xff"',
    b"9223372036854775808",
    b"-9223372036854775809",
    b"18446744073709551616",
    b"9223372036854775807",
    b"1e400",
    b"-1e400",
    b"1e308",
    b"5e-324",
    b"NaN",
    b"-Infinity",
    b"9" * 5000,
    b'"0001-01-01T00:00:00Z"',
    b'"0001-01-01T00:00:00+23:59"',
    b'"9999-12-31T23:59:59.999999Z"',
    b'"9999-12-31T23:59:59.999999-23:59"',
    b"253402300800",
    b"-62135596801",
    b'{"a": 1, "a": 2}',
    b"[" * 100_000 + b"]" * 100_000,
    b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    b"[" * 900 + b"]" * 900,
    b'"' + b"x" * MIB + b'"',
    b'"' + b"x" * (MIB - 10_000) + b'"',
    b'"' + b"\\u0041" * 170_000 + b'"',
    b'"' + "🦊".encode() * 256 + b'"',
    '"\u202e\u2066"'.encode(),
    b'"__proto__"',
    b"null",
    b"true",
    b'""',
    b"[]",
    b"{}",
    b"-0.0",
)
"""Valid and invalid JSON values for any field of a body."""

IN_ADDRESSES: tuple[bytes, ...] = (
    b"%00",
    b"a%00b",
    b"%ED%A0%80",
    b"%ff%fe",
    b"%",
    b"%zz",
    b"%0d%0aX-Injected:%201",
    b"9223372036854775808",
    b"-9223372036854775809",
    b"1e400",
    b"NaN",
    b"0001-01-01T00:00:00Z",
    b"0001-01-01T00:00:00%2B23:59",
    b"9999-12-31T23:59:59.999999-23:59",
    b"9" * 5000,
    b"x" * MIB,
    b"%F0%9F%A6%8A" * 256,
    b"%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    b"..\\..\\CURRENT",
    b"a/b//c/",
    b"%2F",
    b"%25",
    b"'%20OR%201=1--",
    b"%3Cscript%3E",
    b"%7B%7D",
    b"%5B" * 2000,
)
"""Values for a path segment or a query parameter."""

HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-type", b"application/json; charset=\xff"),
    (b"content-type", b"\x00"),
    (b"content-type", b"application/" + b"x" * 60_000),
    (b"content-encoding", b"gzip, \xff"),
    (b"content-length", b"-1"),
    (b"content-length", b"9" * 5000),
    (b"content-length", b"9223372036854775808"),
    (b"content-length", b"nonsense"),
    (b"accept", b"application/xml;q=1e400"),
    (b"accept", b"\xed\xa0\x80"),
    (b"accept-encoding", b"gzip;q=NaN"),
    (b"authorization", b"Bearer \xff\xfe"),
    (b"authorization", b"Basic " + b"A" * 60_000),
    (b"authorization", b""),
    (b"host", b"["),
    (b"host", b"\xff:99999"),
    (b"x-request-id", b"\r\nX-Injected: 1"),
    (b"x-request-id", b"x" * 60_000),
    (b"x-forwarded-for", b"127.0.0.1"),
    (b"range", b"bytes=9223372036854775808-"),
    (b"if-modified-since", b"Sat, 01 Jan 0001 00:00:00 GMT"),
    (b"expect", b"100-continue"),
    (b"cookie", b"a=\x00; b=\xff"),
    (b"transfer-encoding", b"gzip, chunked"),
    (b"x-http-method-override", b"DELETE"),
    (b"upgrade", b"h2c"),
)
"""Headers for any request."""


def raw_requests(label: str, description: Mapping[str, Any]) -> Iterator[RawRequest]:
    """Generate every hostile request to one operation, `METHOD /path`: each value everywhere."""
    method, path = label.split()
    operation = description["paths"][path][method.lower()]
    parameters = operation.get("parameters", [])
    named = {one["name"]: b"i1" for one in parameters if one["in"] == "path"}
    plain = fill_path(path, named)
    queries = [one["name"].encode() for one in parameters if one["in"] == "query"]
    body, headers = b"", ()
    if "requestBody" in operation:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        whole = build_example(schema, description)
        if "model_version" in whole:
            # An unknown version would end the request before the other fields are read.
            whole["model_version"] = None
        body, headers = encode_json(whole), JSON
        for steps in [(), *_walk_paths(whole)]:
            for seed in IN_BODIES:
                yield RawRequest(method, plain, JSON, _replace_value(whole, steps, seed))
        yield from (RawRequest(method, plain, JSON, odd) for odd in _corrupt_text(body))
    for name in named:
        for seed in IN_ADDRESSES:
            yield RawRequest(method, fill_path(path, named | {name: seed}), headers, body)
    for name in [*queries, b"unknown"]:
        for seed in IN_ADDRESSES:
            yield RawRequest(method, plain + b"?" + name + b"=" + seed, headers, body)
        yield RawRequest(method, plain + b"?" + b"&".join([name + b"=1"] * 3), headers, body)
        yield RawRequest(method, plain + b"?" + name, headers, body)
    for header in HEADERS:
        others = tuple(one for one in headers if one[0] != header[0])
        yield RawRequest(method, plain, (*others, header), body)


def sample_requests(requests: list[RawRequest], most: int) -> list[RawRequest]:
    """Sample at most `most` requests, the same ones every time."""
    return Random(0).sample(requests, min(most, len(requests)))


def fill_path(path: str, named: Mapping[str, bytes]) -> bytes:
    """Fill the parameters of a path with values."""
    target = path.encode()
    for name, value in named.items():
        target = target.replace(b"{" + name.encode() + b"}", value)
    return target


def _corrupt_text(body: bytes) -> Iterator[bytes]:
    """Corrupt a body as text."""
    yield from (b"", b"\xef\xbb\xbf" + body, body + body, body[:-1], b"\x00" + body)
    # Every key of the object twice.
    if body.startswith(b"{") and len(body) > 2:
        yield body[:-1] + b"," + body[1:]
    yield body.decode().encode("utf-16")


def _replace_value(whole: object, steps: tuple[str | int, ...], seed: bytes) -> bytes:
    """Replace one value of a body by raw bytes."""
    marker = "replace this"

    def plant(value: Any, left: tuple[str | int, ...]) -> Any:
        if not left:
            return marker
        if isinstance(value, list):
            return [plant(one, left[1:]) for one in value]
        return {
            name: plant(one, left[1:]) if name == left[0] else one for name, one in value.items()
        }

    return encode_json(plant(whole, steps)).replace(encode_json(marker), seed)


def _walk_paths(value: object) -> Iterator[tuple[str | int, ...]]:
    """Generate the path to every value within a body."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield (name,)
            yield from ((name, *rest) for rest in _walk_paths(inner))
    elif isinstance(value, list):
        for inner in itertools.islice(value, 1):
            yield (0,)
            yield from ((0, *rest) for rest in _walk_paths(inner))


def build_example(
    schema: Mapping[str, Any], description: Mapping[str, Any], text: str = "i1"
) -> Any:
    """Build a value that a schema allows, with every field, and `text` in every string."""
    if "$ref" in schema:
        named = schema["$ref"].rpartition("/")[2]
        return build_example(description["components"]["schemas"][named], description, text)
    if "anyOf" in schema:
        return build_example(schema["anyOf"][0], description, text)
    match schema.get("type"):
        case "object":
            fields = schema.get("properties", {})
            return {name: build_example(inner, description, text) for name, inner in fields.items()}
        case "array":
            return [build_example(schema["items"], description, text)]
        case _:
            return _build_scalar(schema, text)


def _build_scalar(schema: Mapping[str, Any], text: str) -> Any:
    of_type = {
        "integer": int(schema.get("minimum", 1)),
        "number": schema.get("minimum", 1),
        "boolean": True,
        "string": "2026-01-01T00:00:00Z" if schema.get("format") == "date-time" else text,
    }
    return schema.get("const", schema.get("enum", [of_type.get(schema.get("type", ""))])[-1])
