"""The runbook has a section per alert, and the page of promises shows the recorded figures."""

import json
import re
from pathlib import Path

import pytest

from tests.architecture.repository import ROOT, document
from tests.promises.claims import CLAIMS
from tests.promises.table import render_table, replace_table

RUNBOOK = "docs/runbook.md"
PROMISES_PAGE = "docs/promises.md"
ALERTS = sorted(
    {
        alert
        for file in (ROOT / "docker" / "prometheus").glob("*.yml")
        for alert in re.findall(r"^\s*- alert: (\w+)", file.read_text("utf-8"), re.M)
    }
)


def test_the_table_of_promises_equals_the_records() -> None:
    page = document(PROMISES_PAGE)
    assert page == replace_table(page, render_table()), "run python -m tests.promises.table"


@pytest.mark.parametrize("promise", CLAIMS)
def test_every_promise_has_a_row(promise: str) -> None:
    assert f"\n| {promise} | {CLAIMS[promise]} | " in document(PROMISES_PAGE)


def test_a_promise_has_its_figures_or_is_not_yet_measured(tmp_path: Path) -> None:
    record = {
        "claim": CLAIMS["R5"],
        "figures": {"failed": 0, "p99_ratio": 1.71828, "requests": 12345, "ok": True},
        "device": "a machine",
        "measured_on": "2026-11-21",
    }
    earlier = record | {"claim": "no 5xx"}
    (tmp_path / "R05.json").write_text(json.dumps({"one way": record, "another": earlier}))
    rows = render_table(tmp_path).splitlines()
    assert (
        "| one way | failed 0, p99 ratio 1.718, requests 12,345, ok yes | 2026-11-21, a machine |"
        in rows[6]
    )
    assert rows[7].startswith("| | | another |")
    assert rows[7].endswith("a machine; not yet measured since it claimed: no 5xx |")
    assert sum("| not yet measured |" in row for row in rows) == len(CLAIMS) - 1


def test_alerts_are_shipped() -> None:
    assert len(ALERTS) >= 10


@pytest.mark.parametrize("alert", ALERTS)
def test_every_alert_has_its_section_in_the_runbook(alert: str) -> None:
    section = document(RUNBOOK).partition(f"\n### {alert}\n")[2].partition("\n### ")[0]
    assert len(section.split()) >= 15, f"describe under '### {alert}' what to check and what to do"


def test_the_runbook_has_no_alert_that_is_not_shipped() -> None:
    assert {*re.findall(r"^### (Kairos\w+)$", document(RUNBOOK), re.M)} == {*ALERTS}


def test_the_table_of_the_log_has_every_logged_line() -> None:
    call = re.compile(r"\b_?log(?:ger)?(?:\.(\w+))?\)?\(\s*\"(\w+)\"")
    logged = {
        event
        for file in (ROOT / "app").rglob("*.py")
        for level, event in call.findall(file.read_text("utf-8"))
        # Those at `debug` are for developers.
        if level != "debug"
    }
    section = document("docs/operations.md").partition("\n## Logs\n")[2].partition("\n## ")[0]
    described = {
        event
        for line in re.findall(r"^\| (`.+?`) \| ", section, re.M)
        for event in re.findall(r"`(\w+)`", line)
    }
    assert len(logged) > 20
    assert described == logged
