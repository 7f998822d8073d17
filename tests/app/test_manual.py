"""docs/api.md, tried out: every request it shows, in the order it shows them."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.settings import Settings
from model.bundle.store import BundleStore
from model.encoders.rmtpp import RMTPPConfig
from tests.app import tiny_bundle
from tests.app.client import Client, running

MANUAL = Path(__file__).parents[2] / "docs" / "api.md"
EXAMPLES = re.findall(
    r"```sh\n(curl .*?)```(?:\n\n```json\n(.*?)```)?", MANUAL.read_text("utf-8"), re.S
)
VERSION = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{12}")


@pytest.fixture
def says_when(settings: Settings, tmp_path: Path) -> Iterator[Client]:
    """A service on the same database whose model also says when."""
    store = tmp_path / "says_when"
    tiny_bundle.publish(store, seed=1, encoder=RMTPPConfig(dim=8, hidden=8))
    with running(settings.model_copy(update={"bundle_store": store})) as client:
        yield client


def test_every_request_of_the_manual_is_answered_as_it_says(
    client: Client, says_when: Client
) -> None:
    store: BundleStore = client.app.state.parts.store
    tiny_bundle.publish(store.root, seed=2, activate=False)
    versions = dict(zip(versions_of(EXAMPLES), sorted(store.versions()), strict=True))
    assert len(EXAMPLES) >= 12
    for command, shown in EXAMPLES:
        real_command = VERSION.sub(lambda found: versions[found[0]], command)
        method, path, body = as_request(real_command)
        asked = says_when if "/next-time" in path else client
        response = asked.request(method, path, json=body)
        expected = 204 if method == "DELETE" else 200
        assert response.status_code == expected, f"{command}: {response.text}"
        if shown:
            same_fields(json.loads(shown), response.json(), path)


def versions_of(examples: list[tuple[str, str]]) -> list[str]:
    """The versions that requests name, oldest first."""
    return sorted({*VERSION.findall(" ".join(command for command, _ in examples))})


def as_request(command: str) -> tuple[str, str, object]:
    words = shlex.split(command)
    (url,) = (word for word in words if word.startswith("$KAIROS"))
    body = json.loads(words[words.index("-d") + 1]) if "-d" in words else None
    method = words[words.index("-X") + 1] if "-X" in words else "GET" if body is None else "POST"
    return method, url.removeprefix("$KAIROS"), body


def same_fields(shown: Any, real: Any, place: str) -> None:
    """Objects have the fields shown, no fewer and no more; lists and the manifest are shortened."""
    if place.endswith(".manifest"):
        assert shown.keys() <= real.keys()
    elif isinstance(shown, dict) and isinstance(real, dict):
        assert shown.keys() == real.keys(), place
        for name, value in shown.items():
            same_fields(value, real[name], f"{place}.{name}")
    elif isinstance(shown, list) and isinstance(real, list):
        for one, other in zip(shown, real, strict=False):
            same_fields(one, other, place)
