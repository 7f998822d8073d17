"""docs/client.md: its programs run, in order, and its tables match the code."""

import inspect
import re

import pytest

import kairos_client
from kairos_client import KairosClient, KairosError, Retries
from tests.app import tiny_bundle
from tests.architecture.repository import document
from tests.client.faulty_proxy import FaultyProxy

MANUAL = document("docs/client.md")
PROGRAMS = re.findall(r"```python\n(.*?)```", MANUAL, re.S)


@pytest.mark.slow
def test_every_program_of_the_manual_runs(proxy: FaultyProxy) -> None:
    replacements = dict(zip(("sku-0002", "sku-0138"), tiny_bundle.ITEM_IDS, strict=False))
    printed: list[str] = []
    names: dict[str, object] = {
        "print": lambda *values: printed.append(" ".join(map(str, values))),
    }
    assert len(PROGRAMS) >= 6
    for program in PROGRAMS:
        code = program.replace("http://127.0.0.1:8000", proxy.url)
        for documented, actual in replacements.items():
            code = code.replace(f'"{documented}"', f'"{actual}"')
        exec(code, names)
        for expected in re.findall(r"print\(.*# (.*)$", program, re.M):
            assert printed[-1] == expected
    assert printed[0].startswith("1 Item ")
    assert printed[-1].startswith("404 item_not_found")
    for client in names.values():
        if isinstance(client, KairosClient):
            client.close()


def test_every_error_is_in_the_table() -> None:
    rows = set(re.findall(r"^\| `(\w+Error)` \|", MANUAL, re.M))
    errors = {
        name
        for name, value in vars(kairos_client).items()
        if inspect.isclass(value) and issubclass(value, KairosError)
    }
    assert rows == errors


def test_documented_arguments_and_defaults_match_the_code() -> None:
    signature = inspect.signature(KairosClient)
    rows = re.findall(r"^\| `(\w+)` \| (.*?) ?\|", MANUAL.partition("## The client")[2], re.M)
    assert [name for name, _ in rows[: len(signature.parameters)]] == [*signature.parameters]
    defaults = str(Retries()).replace(".0,", ",").replace(".0)", ")")
    assert f"`{defaults}`" in " ".join(MANUAL.split())
