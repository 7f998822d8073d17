"""Reading the Operations page in tests, and a second implementation of its arithmetic."""

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from uuid import uuid4

import httpx
import pytest
from playwright.sync_api import Page

from tests.browser.dashboard import Dashboard
from tests.browser.shop import CUSTOMER
from tests.processes import LOCAL_TOKEN, Server

Look = Callable[[str], Dashboard]
OpenShop = Callable[..., Server]
VIEW = "health.html"
INTERVAL_SECONDS = 5
"""Between two polls of the page that is measured."""
POINT_INTERVALS = 3
"""How many intervals a point of a chart covers."""


class MetricsRecorder:
    """Every response of GET /v1/metrics that a page received."""

    def __init__(self, page: Page) -> None:
        self.responses: list[dict[str, Any]] = []
        page.on("response", self._note)

    def _note(self, response: Any) -> None:
        if response.url.endswith("/v1/metrics") and response.ok:
            self.responses.append(response.json())

    @property
    def span(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The responses between which the page takes the newest point of its charts."""
        last = self.responses[-1]
        window = (POINT_INTERVALS + 0.5) * INTERVAL_SECONDS
        recent = [one for one in self.responses if seconds_between(one, last) <= window]
        return recent[0], last


def seconds_between(first: dict[str, Any], last: dict[str, Any]) -> float:
    return (parse_instant(last["at"]) - parse_instant(first["at"])).total_seconds()


def parse_instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def sum_samples(response: dict[str, Any], name: str, **labels: str) -> float:
    """The sum of a metric's samples whose labels match these patterns."""
    return sum(
        float(sample["value"])
        for metric in response["metrics"]
        for sample in metric["samples"]
        if sample["name"] == name
        and all(re.fullmatch(pattern, sample["labels"][key]) for key, pattern in labels.items())
    )


def rate(span: tuple[dict[str, Any], dict[str, Any]], name: str, **labels: str) -> float:
    first, last = span
    increase = sum_samples(last, name, **labels) - sum_samples(first, name, **labels)
    return increase / seconds_between(first, last)


def quantile(
    span: tuple[dict[str, Any], dict[str, Any]], level: float, name: str, **labels: str
) -> float:
    """A quantile by Prometheus's rule."""
    bounds = {
        sample["labels"]["le"]
        for metric in span[1]["metrics"]
        for sample in metric["samples"]
        if sample["name"] == f"{name}_bucket"
    }
    buckets = sorted(
        (float(le), rate(span, f"{name}_bucket", le=re.escape(le), **labels)) for le in bounds
    )
    rank = level * buckets[-1][1]
    for (low, below), (high, up_to) in pairwise([(0.0, 0.0), *buckets]):
        if up_to >= rank:
            return (
                low if math.isinf(high) else low + (high - low) * (rank - below) / (up_to - below)
            )
    raise AssertionError("the last bucket has every observation")


def open_all_rates(page: Page) -> None:
    """Open the disclosure of what is not always shown."""
    disclosure = page.locator("#all-rates")
    if disclosure.get_attribute("open") is None:
        disclosure.locator("> summary").click()


def newest(dashboard: Dashboard, chart: str) -> list[float | None]:
    """The last point of each line of a chart."""
    open_all_rates(dashboard.page)
    dashboard.page.locator(f"#chart-{chart}").scroll_into_view_if_needed()
    return [trace["y"][-1] for trace in dashboard.traces(f"chart-{chart}")]


def near(value: float) -> Any:
    return pytest.approx(value, rel=2e-3)


def pause_once(
    recorder: MetricsRecorder, dashboard: Dashboard, condition: Callable[[dict[str, Any]], bool]
) -> None:
    """Pause once a response meets the condition, and wait until it is shown."""
    page = dashboard.page
    wait_for(page, lambda: len(recorder.responses) > 1 and condition(recorder.responses[-1]))
    page.get_by_role("button", name="Pause").click()
    page.wait_for_timeout(1_000)
    last = parse_instant(recorder.responses[-1]["at"])
    wait_for(page, lambda: abs((shown_instant(page) - last).total_seconds()) < 2)


def concerns(page: Page) -> list[tuple[str, str]]:
    """The name and state of everything that the verdict says needs attention, in its order."""
    text = str(page.locator("#verdict").text_content())
    return re.findall(r"(?:: |, )([\w -]+?) \((\w+)\)", " ".join(text.split()))


def shown_instant(page: Page) -> datetime:
    text = str(page.locator("#polled").text_content())
    match = re.search(r"last at ([\d: -]+) UTC", text)
    return datetime.fromisoformat(f"{match[1]}Z") if match else datetime.min.replace(tzinfo=UTC)


def wait_for(page: Page, condition: Callable[[], bool], *, within_seconds: int = 45) -> None:
    """Wait while the browser runs: its events arrive only during calls of Playwright."""
    for _ in range(within_seconds * 10):
        if condition():
            return
        page.wait_for_timeout(100)
    pytest.fail(f"the condition did not hold within {within_seconds} seconds")


def send_traffic(url: str) -> None:
    """Twenty responses of the model, five without it, events of an hour ago, and three misses."""
    with httpx.Client(base_url=url, timeout=30, auth=LOCAL_TOKEN) as client:
        for turn in range(25):
            user = CUSTOMER if turn % 5 else f"stranger-{turn}"
            client.post("/v1/recommendations", json={"user_id": user}).raise_for_status()
        for _ in range(3):
            assert client.get("/v1/items/no-such-item").status_code == 404
        at = datetime.now(UTC).timestamp() - 5_000
        event = {"user_id": "u", "item_id": "i", "action": "view", "timestamp": int(at)}
        events = [event | {"event_id": uuid4().hex} for _ in range(8)]
        # The second time they are duplicates.
        for _ in range(2):
            client.post("/v1/events", json={"events": events}).raise_for_status()
