"""Every request and Python example of docs/api.md runs, in the order of the page."""

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pytest

from app.http.properties import MAX_BYTES as MOST_PROPERTY_BYTES
from app.settings import Settings
from kairos_client import KairosClient
from model.encoders.rmtpp import RMTPPConfig
from model.store.store import BundleStore
from tests.app import tiny_bundle
from tests.app.client import Client, running
from tests.client.faulty_proxy import run_faulty_proxy

MANUAL = (Path(__file__).parents[2] / "docs" / "api.md").read_text("utf-8")
EXAMPLE = re.compile(r"```(sh|python)\n(?!KAIROS=)(.*?)```(?:\n\n```json\n(.*?)```)?", re.S)
EXAMPLES = EXAMPLE.findall(MANUAL)
SNAPSHOT = json.loads((Path(__file__).parents[2] / "docs" / "openapi.json").read_text("utf-8"))
TITLES = re.findall(r"^## (.*)$", MANUAL, re.M)
VERSION = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{12}")
ITEM = re.compile(r"sku-\d+")
ADDRESS = "http://127.0.0.1:8000"
MAY_BE_MISSING = (
    *("attention_profile", "epochs", "index_recall", "p95_seconds"),
    *("initial_psi", "initial_spectrum", "initial_constant"),
    ".items.parts",
)
"""Fields of the demo's model that the model of these tests lacks."""


@pytest.fixture
def time_client(settings: Settings, tmp_path: Path) -> Iterator[Client]:
    """A service on the same database with a model of event times."""
    store = tmp_path / "event_times"
    tiny_bundle.publish(store, seed=1, encoder=RMTPPConfig(dim=8, hidden=8))
    with running(settings.model_copy(update={"bundle_store": store})) as client:
        yield client


@pytest.mark.slow
def test_every_example_of_the_manual_works(client: Client, time_client: Client) -> None:
    store: BundleStore = client.app.state.context.store
    tiny_bundle.publish(store.root, seed=2, activate=False)
    replacements = map_to_fixtures(store)
    programs: dict[str, object] = {}
    assert len(EXAMPLES) >= 30
    with run_faulty_proxy(client) as socket, ExitStack() as stack:
        stack.callback(lambda: cast(KairosClient, programs["kairos"]).close())
        for kind, shown_example, shown in EXAMPLES:
            example = re.sub(
                "|".join(replacements), lambda found: replacements[found[0]], shown_example
            )
            if kind == "python":
                exec(example.replace(ADDRESS, socket.url), programs)
            else:
                check_request(example, shown, time_client if "/next-time" in example else client)


def check_request(command: str, shown: str, client: Client) -> None:
    method, path, body = parse_curl(command)
    response = client.request(method, path, json=body)
    expected = 204 if method == "DELETE" and "/items/" in path else 200
    assert response.status_code == expected, f"{command}: {response.text}"
    if shown:
        assert_same_fields(json.loads(shown), response.json(), path)


def map_to_fixtures(store: BundleStore) -> dict[str, str]:
    """Map the versions and items of the examples to those of this service."""
    named = " ".join(example for _, example, _ in EXAMPLES)
    # The first version of the page is the current one; within a second, ids sort at random.
    current_first = sorted(
        store.list_versions(), key=lambda version: version != store.read_current()
    )
    versions = zip(sorted({*VERSION.findall(named)}), current_first, strict=True)
    items = zip(sorted({*ITEM.findall(named)}), tiny_bundle.ITEM_IDS, strict=False)
    return dict([*versions, *items])


def test_the_limits_of_the_page_are_those_of_the_code() -> None:
    _, _, table = MANUAL.partition("### Limits")
    rows = re.findall(r"^\| ([a-z ]+) \| (\d+) \|$", table.partition("###")[0], re.M)
    fields = SNAPSHOT["components"]["schemas"]
    request = fields["RecommendationRequest"]["properties"]
    assert {what: int(most) for what, most in rows} == {
        "bytes of a body": Settings.model_fields["max_body_bytes"].default,
        "events of a request": fields["EventBatch"]["properties"]["events"]["maxItems"],
        "items of a request": fields["ItemBatch"]["properties"]["items"]["maxItems"],
        "events of an inline history": request["history"]["anyOf"][0]["maxItems"],
        "items answered": request["n"]["maximum"],
        "items included or excluded": request["exclude_item_ids"]["maxItems"],
        "items ranked": fields["RankingRequest"]["properties"]["item_ids"]["maxItems"],
        "instants of a sweep": fields["AttentionRequest"]["properties"]["query_times"]["maxItems"],
        "characters of an id": request["exclude_item_ids"]["items"]["maxLength"],
        "bytes of the properties of an event or an item": MOST_PROPERTY_BYTES,
    }


def test_the_manual_lists_the_documented_conditions() -> None:
    _, _, section = MANUAL.partition("## POST /v1/recommendations")
    row = r"^\| (`\w+`(?:, `\w+`)*) \| (.*?) ?\|"
    rows = re.findall(row, section.partition("\n## ")[0], re.M)
    defaults = {field: default for names, default in rows for field in re.findall(r"\w+", names)}
    properties = SNAPSHOT["components"]["schemas"]["RecommendationRequest"]["properties"]
    assert defaults.keys() == properties.keys()
    for field, schema in properties.items():
        default = schema.get("default")
        if isinstance(default, bool | int | float):
            assert defaults[field] == json.dumps(default).removesuffix(".0"), field


def test_the_manual_lists_the_documented_operations() -> None:
    row = r"^\| \[`(\w+) (\S+)`\]\(#([a-z0-9_-]+)\) \| (\w*) ?\| `(\w+)` \|$"
    rows = re.findall(row, MANUAL, re.M)
    documented = {(method, path, role, name) for method, path, _, role, name in rows}
    assert documented == {
        (method.upper(), path, operation.get("x-role", ""), operation["operationId"])
        for path, operations in SNAPSHOT["paths"].items()
        for method, operation in operations.items()
    }
    sections = {re.sub(r"[^a-z0-9_ -]", "", title.lower()).replace(" ", "-") for title in TITLES}
    assert {anchor for _, _, anchor, _, _ in rows} <= sections


def parse_curl(command: str) -> tuple[str, str, object]:
    words = shlex.split(command)
    (url,) = (word for word in words if word.startswith("$KAIROS"))
    body = json.loads(words[words.index("-d") + 1]) if "-d" in words else None
    method = words[words.index("-X") + 1] if "-X" in words else "GET" if body is None else "POST"
    return method, url.removeprefix("$KAIROS"), body


def assert_same_fields(shown: Any, real: Any, location: str) -> None:
    """Objects have exactly the fields shown; lists and the manifest may be shortened."""
    if real is None and location.endswith(MAY_BE_MISSING):
        return
    if location.endswith(".entries.detail"):
        return  # each act has its own
    if location.endswith(".manifest"):
        assert shown.keys() <= real.keys()
    elif location.endswith((".metrics", ".actions")) and isinstance(shown, dict):
        assert {*map(type, shown.values())} == {*map(type, real.values())}
    elif isinstance(shown, dict):
        assert isinstance(real, dict), location
        assert shown.keys() == real.keys(), location
        for name, value in shown.items():
            assert_same_fields(value, real[name], f"{location}.{name}")
    elif isinstance(shown, list):
        assert isinstance(real, list), location
        for one, other in zip(shown, real, strict=False):
            assert_same_fields(one, other, location)
