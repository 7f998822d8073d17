"""The generated parts of the documents. `python -m tests.architecture.tables` rewrites them."""

import inspect
import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from prometheus_client.metrics import MetricWrapperBase

from app.errors import ServiceError
from app.observability.metrics import Metrics
from app.settings import Settings
from tests.architecture import api_reference, demo_recipe, recipe_reference
from tests.architecture.repository import ROOT, document


def between_markers(page: str, name: str, table: str) -> str:
    """The text of a page with a new table between its markers."""
    begin, end = f"<!-- table: {name} -->\n", "<!-- end of table -->\n"
    before, marker, rest = page.partition(begin)
    assert marker, f"the page has no line {begin!r}"
    _, marker, after = rest.partition(end)
    assert marker, f"the page has no line {end!r} after {begin!r}"
    return f"{before}{begin}{table}\n{end}{after}"


def settings() -> str:
    """Every setting: its variable, type, default and meaning."""
    schema = Settings.model_json_schema()["properties"]
    rows = (
        (
            f"`{Settings.model_config['env_prefix']}{name.upper()}`",
            _type(schema[name]),
            _default(field.default),
            " ".join((field.description or "").split()),
        )
        for name, field in Settings.model_fields.items()
    )
    return _table(("variable", "type", "default", "what it does"), rows)


def metrics() -> str:
    """Every metric: its name, labels and meaning."""
    rows = (
        (
            f"`{metric._name}{'_total' if metric._type == 'counter' else ''}`",
            metric._type,
            ", ".join(f"`{label}`" for label in metric._labelnames),
            metric._documentation,
        )
        for metric in vars(Metrics()).values()
        if isinstance(metric, MetricWrapperBase)
    )
    return _table(("metric", "type", "labels", "meaning"), rows)


def problems() -> str:
    """Every code that a problem document may carry."""
    known = {
        (error.status, error.code, error.title, _retry_after(error))
        for error in _all_of(ServiceError)
    }
    elsewhere = re.findall(
        r'status=(\d+),\s+code="(\w+)",\s+title="([^"]+)"', document("app/http/problems.py")
    )
    known |= {(int(status), code, title, "") for status, code, title in elsewhere}
    refused = HTTPStatus.METHOD_NOT_ALLOWED
    known.add((refused, refused.name.lower(), refused.phrase.lower(), ""))
    rows = (
        (str(int(status)), f"`{code}`", title, retry_after)
        for status, code, title, retry_after in sorted(known)
    )
    return _table(("status", "code", "title", "Retry-After"), rows)


def _retry_after(error: type[ServiceError]) -> str:
    """The seconds of a code: a constant, or the least of those that each case computes."""
    if error.retry_after is None:
        return ""
    is_computed = "seconds" in inspect.signature(error.__init__).parameters
    return f"≥ {error.retry_after}" if is_computed else str(error.retry_after)


def _default(value: object) -> str:
    if value is None:
        return "unset"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _type(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        choices = [each for each in schema["anyOf"] if each["type"] != "null"]
        if len(choices) > 1:
            return " or ".join(
                "URL" if each == {"type": "string"} else _type(each) for each in choices
            )
        (schema,) = choices
    if "enum" in schema:
        return " or ".join(f"`{choice}`" for choice in schema["enum"])
    kind = str(schema.get("format", schema["type"]))
    if "exclusiveMinimum" in schema:
        return f"{kind} > {schema['exclusiveMinimum']}"
    if "maximum" in schema:
        return f"{kind}, {schema['minimum']} to {schema['maximum']}"
    return f"{kind} ≥ {schema['minimum']}" if "minimum" in schema else kind


def _all_of(parent: type[ServiceError]) -> Iterator[type[ServiceError]]:
    for child in parent.__subclasses__():
        yield child
        yield from _all_of(child)


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in lines)


TABLES = (
    ("docs/operations.md", "settings", settings),
    ("docs/operations.md", "metrics", metrics),
    ("docs/api.md", "problems", problems),
)
"""The page, the name in the markers, and the function that renders the table."""


def main() -> None:
    """Rewrite every generated table, the references of API and recipes, and the demo's recipe."""
    for name, table, render in TABLES:
        (ROOT / name).write_text(between_markers(document(name), table, render()), "utf-8")
    for page in (api_reference, recipe_reference, demo_recipe):
        (ROOT / page.PAGE).write_text(page.render(), "utf-8")


if __name__ == "__main__":
    main()
