"""docs/api-reference.md: every operation and schema, rendered from docs/openapi.json."""

import json
from collections.abc import Iterator
from typing import Any

from tests.architecture.repository import document

PAGE = "docs/api-reference.md"
Schema = dict[str, Any]

HEAD = """# API reference

Generated from [openapi.json](openapi.json) by `make docs`; do not edit. Conventions and examples
are in [api.md](api.md).
"""


def render() -> str:
    """The whole page."""
    description = json.loads(document("docs/openapi.json"))
    lines = [HEAD, "## Operations", ""]
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            lines += [*_operation(method.upper(), path, operation), ""]
    lines += ["## Schemas", ""]
    for name, schema in sorted(description["components"]["schemas"].items()):
        lines += [*_schema(name, schema), ""]
    return "\n".join(lines).rstrip() + "\n"


def _operation(method: str, path: str, operation: Schema) -> Iterator[str]:
    yield f"### {method} {path}"
    yield ""
    yield f"`{operation['operationId']}`: {operation['summary']}."
    if text := operation.get("description"):
        yield ""
        yield " ".join(text.split())
    facts = [f"role `{operation['x-role']}`"] if "x-role" in operation else ["no key needed"]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body:
        facts.append(f"body {describe_type(body['schema'])}")
    yield ""
    yield f"Needs: {', '.join(facts)}."
    if parameters := operation.get("parameters"):
        yield ""
        yield "| parameter | in | type | default | meaning |"
        yield "| --- | --- | --- | --- | --- |"
        for one in parameters:
            default = _default(one["schema"], required=one.get("required", False))
            cells = (
                f"`{one['name']}`",
                one["in"],
                describe_type(one["schema"]),
                default,
                cell(one.get("description", "")),
            )
            yield f"| {' | '.join(cells)} |"
    yield ""
    yield "| status | body | meaning |"
    yield "| --- | --- | --- |"
    for status, response in sorted(operation["responses"].items()):
        content = response.get("content", {})
        kind = next(iter(content), "")
        schema = content.get(kind, {}).get("schema")
        body_type = describe_type(schema) if schema else kind
        yield f"| {status} | {body_type} | {cell(response['description'])} |"


def _schema(name: str, schema: Schema) -> Iterator[str]:
    yield f"### {name}"
    if text := schema.get("description"):
        yield ""
        yield " ".join(text.split())
    required = set(schema.get("required", ()))
    yield ""
    yield "| field | type | default | meaning |"
    yield "| --- | --- | --- | --- |"
    for field, inner in schema.get("properties", {}).items():
        default = _default(inner, required=field in required)
        text = cell(inner.get("description", ""))
        yield f"| `{field}` | {describe_type(inner)} | {default} | {text} |"


def describe_type(schema: Schema) -> str:
    """A schema's type in words, with its bounds; references become links."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(describe_type(one) for one in schema[key]))
    if "enum" in schema or "const" in schema:
        return " or ".join(f"`{one}`" for one in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        items = schema.get("items") or {}
        return f"list of {describe_type(items)}{_bounds(schema)}"
    if isinstance(extra := schema.get("additionalProperties"), dict):
        return f"object of {describe_type(extra)}"
    kind = schema.get("format") or schema.get("type", "any")
    return f"{kind}{_bounds(schema)}"


def _bounds(schema: Schema) -> str:
    names = {
        "minimum": "≥",
        "exclusiveMinimum": ">",
        "maximum": "≤",
        "exclusiveMaximum": "<",
        "minLength": "length ≥",
        "maxLength": "length ≤",
        "minItems": "size ≥",
        "maxItems": "size ≤",
    }
    found = [f"{sign} {schema[key]}" for key, sign in names.items() if key in schema]
    return f" ({', '.join(found)})" if found else ""


def _default(schema: Schema, *, required: bool) -> str:
    if required:
        return "required"
    return f"`{json.dumps(schema['default'])}`" if "default" in schema else ""


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
