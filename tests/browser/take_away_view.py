"""Steps on the menus "Take away", and what their entries give."""

import ast
import base64
import csv
import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator

from tests.browser.dashboard import Dashboard
from tests.processes import find_local_token

Row = dict[str, Any]


def open_menu(dashboard: Dashboard, card: str) -> Locator:
    """Open the menu of a card by a CSS selector, and return it."""
    menu = dashboard.page.locator(f"{card} .take-away .menu")
    menu.locator("summary").click()
    return menu


def take(dashboard: Dashboard, card: str, what: str) -> bytes:
    """Choose an entry of a card's menu, and return the file that it saves."""
    entry = open_menu(dashboard, card).get_by_role("button", name=what)
    with dashboard.page.expect_download() as download:
        entry.click()
    return Path(download.value.path()).read_bytes()


def read_text(dashboard: Dashboard, card: str, what: str) -> str:
    """Choose an entry of a card's menu, and return the text of its dialog."""
    open_menu(dashboard, card).get_by_role("button", name=what).click()
    text = dashboard.page.locator("#copied-text").input_value()
    dashboard.page.get_by_role("button", name="Close").click()
    return text


def read_rows(dashboard: Dashboard, card: str) -> list[dict[str, str]]:
    """The rows of a card's CSV file."""
    text = take(dashboard, card, "CSV").decode("utf-8-sig")
    return list(csv.DictReader(text.splitlines()))


def run_curl(dashboard: Dashboard, card: str) -> list[Any]:
    """The responses to a card's requests, sent by its commands."""
    lines = _run(dashboard, ["bash", "-c", read_text(dashboard, card, "curl")])
    return [json.loads(line) for line in lines]


def run_python(dashboard: Dashboard, card: str) -> list[Any]:
    """The responses to a card's requests, sent by its script."""
    lines = _run(dashboard, [sys.executable, "-c", read_text(dashboard, card, "Python")])
    return [ast.literal_eval(line) for line in lines]


def _run(dashboard: Dashboard, command: list[str]) -> list[str]:
    token = find_local_token(int(dashboard.service.rpartition(":")[2])) or ""
    assert token not in command[-1]
    done = subprocess.run(
        command,
        env={"KAIROS_API_KEY": token, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.splitlines()


def assert_rows(
    rows: list[dict[str, str]], expected: list[Row], *, is_ordered: bool = True
) -> None:
    """Fail unless the cells of a CSV file are these values, numbers to the last digit."""
    assert rows, "the file has no rows"
    assert list(rows[0]) == list(dict.fromkeys(name for row in expected for name in row))
    assert len(rows) == len(expected)
    if not is_ordered:
        rows = sorted(rows, key=lambda row: list(row.values())[:4])
        expected = sorted(expected, key=lambda row: [cell or "" for cell in row.values()][:4])
    for cells, values in zip(rows, expected, strict=True):
        read = {name: _parse(cell, values.get(name)) for name, cell in cells.items()}
        assert read == {name: values.get(name) for name in cells}


def _parse(cell: str, like: Any) -> Any:
    """A cell as the type of the value that is expected in it."""
    if like is None:
        return cell or None
    if isinstance(like, bool):
        return {"true": True, "false": False}[cell]
    return float(cell) if isinstance(like, int | float) else cell


def read_size(picture: bytes) -> tuple[int, int]:
    """The width and height of a PNG file in pixels."""
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", picture[16:24])
    return width, height


def count_colors(dashboard: Dashboard, picture: bytes) -> int:
    """The number of distinct colours of a PNG file, decoded by the browser."""
    count: int = dashboard.page.evaluate(
        """async (address) => {
            const image = new Image();
            image.src = address;
            await image.decode();
            const canvas = new OffscreenCanvas(image.naturalWidth, image.naturalHeight);
            const context = canvas.getContext("2d");
            context.drawImage(image, 0, 0);
            const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
            return new Set(new Uint32Array(data.buffer)).size;
        }""",
        f"data:image/png;base64,{base64.b64encode(picture).decode()}",
    )
    return count
