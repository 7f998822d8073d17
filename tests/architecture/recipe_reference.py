"""docs/recipes.md: every table and key of a recipe, rendered from `RunConfig`."""

import ast
import inspect
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from model.config import Config
from tests.architecture.api_reference import cell, describe_type
from training.config import RunConfig, list_shipped_recipes

PAGE = "docs/recipes.md"
Schema = dict[str, Any]

HEAD = """# Recipe reference

Generated from `RunConfig` (`training/config.py`) by `make docs`; do not edit.

A recipe is a TOML file that defines a training run. `kairos train`, `evaluate`, `retrain` and
`demo` take one as `--recipe`: a path, or the name of a shipped one in `training/recipes`:
{shipped}.

Every key has a default, so an empty file is a recipe. An unknown key, or a value that does not fit,
is refused with its name. A table that has several kinds needs its key `kind`.
[models.md](models.md) describes the kinds of encoders and time encodings, with their papers.

`kairos inspect events.parquet --recipe my.toml` writes a recipe that suits your events, with a
reason for every setting ([inspect.md](inspect.md)). `kairos train` without `--recipe` uses
the same.

This recipe is a start by hand. It predicts the next event (the shipped recipe `demo`
predicts baskets and drops events whose action is `cancel`), and splits by time, as `kairos retrain`
requires:

```toml
[data]
predict = "next_event"        # or "next_basket": all events of the next instant
ignored_actions = ["return"]  # actions that say nothing about what the user wants

[split]
kind = "by_time"

[encoder]
kind = "self_attention"
max_history = 100

[encoder.time_encoding]
kind = "mercer"

[fit]
epochs = 20
refit = true
```
"""


class Table(NamedTuple):
    """A table of a recipe: its configurations, of which `kind` selects one.

    Attributes:
        path: its name in TOML; empty for the keys before the first table.
        configs: names of the classes.
    """

    path: str
    configs: tuple[str, ...]


def render() -> str:
    """The whole page."""
    definitions = _definitions()
    lines = [HEAD.format(shipped=", ".join(f"`{name}`" for name in list_shipped_recipes()))]
    found = tables(definitions)
    # A configuration of two tables is described in the one with more kinds.
    homes = {
        config: table.path
        for table in sorted(found, key=lambda it: len(it.configs))
        for config in table.configs
    }
    defaults = {
        key: schema["default"] for key, schema in definitions["RunConfig"]["properties"].items()
    }
    for table in found:
        lines += [f"## `[{table.path}]`" if table.path else "## Keys before the first table", ""]
        if len(table.configs) > 1 and table.path in defaults:
            lines += [f'By default `kind = "{defaults[table.path]["kind"]}"`.', ""]
        for config in table.configs:
            lines += [*_section(table.path, config, definitions, homes[config]), ""]
    return "\n".join(lines).rstrip() + "\n"


def tables(definitions: dict[str, Schema]) -> list[Table]:
    """Every table, in the order of the fields; a table that several kinds share is listed once."""
    found: dict[str, dict[str, None]] = {}

    def visit(path: str, config: str) -> None:
        found.setdefault(path, {})[config] = None
        for key, schema in definitions[config]["properties"].items():
            for inner in references(schema):
                visit(f"{path}.{key}".lstrip("."), inner)

    visit("", RunConfig.__name__)
    return [Table(path, tuple(configs)) for path, configs in found.items()]


def references(schema: Schema) -> list[str]:
    """The configurations that a field may hold."""
    if "$ref" in schema:
        return [schema["$ref"].rpartition("/")[2]]
    inner = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    return [name for one in inner for name in references(one)]


def meanings(config: type[Config]) -> dict[str, str]:
    """The docstrings of the fields of a configuration."""
    (definition,) = ast.parse(inspect.getsource(config)).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for field, following in zip(definition.body, definition.body[1:], strict=False):
        match field, following:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = " ".join(text.split())
    return found


def configurations() -> dict[str, type[Config]]:
    """Every configuration class that a recipe may use, by name."""
    classes = {config.__name__: config for config in _all_of(Config)}
    return {name: classes[name] for name in _definitions()}


def _definitions() -> dict[str, Schema]:
    schema = RunConfig.model_json_schema()
    return {**schema.pop("$defs"), RunConfig.__name__: schema}


def _section(path: str, config: str, definitions: dict[str, Schema], home: str) -> Iterator[str]:
    schema = definitions[config]
    keys = dict(schema["properties"])
    if kind := keys.pop("kind", None):
        yield f'### `{path}`: `kind = "{kind["const"]}"`'
        yield ""
    if home != path:
        yield f"The keys of this kind of {_link(home)}."
        return
    if path:
        yield " ".join(schema["description"].split())
        yield ""
    # Before the first table, TOML has keys only.
    simple = {key: inner for key, inner in keys.items() if path or not references(inner)}
    if not simple:
        yield "No further keys."
        return
    texts = meanings(configurations()[config])
    yield "| key | type | default | meaning |"
    yield "| --- | --- | --- | --- |"
    for key, inner in simple.items():
        type_text = f"table {_link(f'{path}.{key}')}" if references(inner) else _type(inner)
        yield f"| `{key}` | {type_text} | {_default(inner)} | {cell(texts[key])} |"


def _link(path: str) -> str:
    return f"[`[{path}]`](#{path.replace('.', '')})"


def _type(schema: Schema) -> str:
    if "prefixItems" in schema:
        return f"list of {len(schema['prefixItems'])}: {describe_type(schema['prefixItems'][0])}"
    return describe_type(schema)


def _default(schema: Schema) -> str:
    match schema["default"]:
        case None:
            text = "none"
        case float(value):
            text = f"`{value:.4g}`"
        case {"kind": kind}:
            text = f'kind `"{kind}"`'
        case dict():
            text = "its defaults"
        case value:
            text = f"`{json.dumps(value)}`"
    return text


def _all_of(parent: type[Config]) -> Iterator[type[Config]]:
    for child in parent.__subclasses__():
        yield child
        yield from _all_of(child)
