"""A page of the dashboard under test: what it draws, requests and logs."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import httpx
from playwright.sync_api import Browser, Locator, Page, Request, Response

from tests.processes import LOCAL_TOKEN, find_local_token

PATIENCE_SECONDS = 60
"""For one response of the service on a busy machine."""


def to_milliseconds(instant: str) -> int:
    """Milliseconds since 1970, as the pages count them."""
    return round(datetime.fromisoformat(instant).timestamp() * 1000)


class Dashboard:
    """One browser page, with its console errors (`complaints`), requests and responses.

    Attributes:
        requested: the URLs of all requests.
        swept_instants: the query times of the last request for a sweep.
    """

    def __init__(self, page: Page, service: str, *, holds_token: bool = True) -> None:
        self.page = page
        self.service = service
        self.complaints: list[str] = []
        self.requested: list[str] = []
        self.swept_instants: list[str] = []
        self._answers: list[Response] = []
        self.expected_complaint: str | None = None
        if holds_token:
            self._hold_local_token()
        page.on("console", self._note_message)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", self._note_request)
        page.on("response", self._note_answer)

    def assert_clean(self) -> None:
        """Fail on unexpected console messages, and on requests to other hosts."""
        expected = re.compile(self.expected_complaint or r"(?!)")
        unexpected = [text for text in self.complaints if not expected.search(text)]
        assert not unexpected, unexpected
        own = f"{self.service}/"
        assert [url for url in self.requested if not url.startswith(own)] == []

    def _hold_local_token(self) -> None:
        """Have every page of the service start with its local token, as after its link."""
        token = find_local_token(httpx.URL(self.service).port or 80)
        if token is not None:
            key = json.dumps({"value": token, "role": "admin", "name": "loopback"})
            # Blank pages, which the script runs on as well, have no storage.
            self.page.add_init_script(
                "if (location.protocol.startsWith('http')) "
                "sessionStorage.getItem('kairos-read-key') ?? "
                f"sessionStorage.setItem('kairos-read-key', {json.dumps(key)})"
            )

    def open(self, fragment: str = "", *, view: str = "") -> "Dashboard":
        """Open a page, such as "items.html", and wait until it has settled."""
        self.page.goto(f"{self.service}/dashboard/{view}{fragment}")
        self.settle()
        return self

    def show(self, view: str) -> "Dashboard":
        """Open a view, unless it is on display with its default state."""
        if self.page.url.removesuffix("#") != f"{self.service}/dashboard/{view}":
            self.open(view=view)
        return self

    def settle(self) -> None:
        """Wait until the response to the last request is on display."""
        self.page.wait_for_selector("main[aria-busy=false]:not(.stale)")

    def wait_until(self, condition: str, argument: Any = None) -> None:
        """Wait until a JavaScript function of `argument` returns true.

        Instead of `page.wait_for_function`, which evaluates its text at each look: the policy of
        the page refuses that from the second look on.
        """
        self.page.evaluate(
            f"""(argument) => new Promise((resolve, reject) => {{
                const condition = {condition};
                const until = performance.now() + {PATIENCE_SECONDS * 1000};
                const look = () => {{
                    if (condition(argument)) resolve();
                    else if (performance.now() > until) reject(new Error(`never: ${{condition}}`));
                    else setTimeout(look, 10);
                }};
                look();
            }})""",
            argument,
        )

    def traces(self, chart: str) -> list[dict[str, Any]]:
        """The traces of a chart by its element's id, as JSON."""
        self.page.wait_for_selector(f"#{chart}.js-plotly-plot")
        traces: list[dict[str, Any]] = self.page.evaluate(
            "(id) => JSON.parse(JSON.stringify(document.getElementById(id).data))", chart
        )
        return traces

    def hover_over(self, point: Locator, tip: str) -> None:
        """Hover over a point of a chart until its tooltip shows; the layout may still move."""
        for _ in range(40):
            point.scroll_into_view_if_needed()
            box = point.bounding_box()
            if box is not None:
                middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
                self.page.mouse.move(middle[0] + 1, middle[1])
                self.page.mouse.move(*middle)
                self.page.wait_for_timeout(150)
            if self.page.locator(tip).is_visible():
                return
        raise AssertionError(f"{tip} did not show")

    def api(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """The JSON of a response, requested without a browser; `path` from "/v1/..."."""
        url = f"{self.service}{path}"
        method = "GET" if body is None else "POST"
        answer = httpx.request(method, url, json=body, timeout=PATIENCE_SECONDS, auth=LOCAL_TOKEN)
        return answer.raise_for_status().json()

    @property
    def answer_count(self) -> int:
        """The number of recommendations that were received."""
        return len(self._answers)

    @property
    def last_answer(self) -> dict[str, Any]:
        """The JSON of the last recommendation that was received."""
        answer: dict[str, Any] = self._answers[-1].json()
        return answer

    @property
    def top_items(self) -> list[str]:
        """The ids of the recommended items on display, best first."""
        rows = self.page.locator("#top-items li:not(.lost)")
        return [str(row.get_attribute("data-item")) for row in rows.all()]

    def table(self, card: str) -> list[list[str]]:
        """The rows of the table behind a chart, by the id of its `<details>`."""
        details = self.page.locator(f"#{card}")
        if details.get_attribute("open") is None:
            details.locator("summary").click()
        details.locator("table").wait_for()
        rows: list[list[str]] = details.locator("tbody tr").evaluate_all(
            "(rows) => rows.map((row) => [...row.cells].map((cell) => cell.innerText))"
        )
        return rows

    @property
    def query_time(self) -> str:
        """The point in time on display, to the second."""
        shown = self.page.locator("#query-time-field").input_value()
        # The browser leaves out seconds that are zero.
        return f"{shown}:00Z" if len(shown) == len("2025-03-01T12:00") else f"{shown}Z"

    @property
    def swept_milliseconds(self) -> list[int]:
        """The swept instants as the slider has them."""
        return [to_milliseconds(instant) for instant in self.swept_instants]

    @property
    def shares(self) -> list[str]:
        """The share of the attention of each event on the Customers page, oldest first."""
        return [row[3] for row in self.table("baskets-table")]

    def by_label(self, label: str) -> Locator:
        return self.page.get_by_label(label, exact=False)

    def move_slider(self, share: float) -> None:
        """Move the slider to a share of its range, as a pointer would."""
        self.page.locator("#query-time-slider").evaluate(
            """(slider, share) => {
                const [first, last] = [slider.min, slider.max].map(Number);
                slider.value = Math.round(first + share * (last - first));
                slider.dispatchEvent(new Event("input", {bubbles: true}));
            }""",
            share,
        )
        self.settle()

    def _note_request(self, request: Request) -> None:
        self.requested.append(request.url)
        if request.url.endswith("/v1/attention"):
            self.swept_instants = request.post_data_json["query_times"]

    def _note_message(self, message: Any) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(message.text)

    def _note_answer(self, response: Response) -> None:
        if response.url.endswith("/v1/recommendations") and response.ok:
            # Its body is read later: the page may draw it before this handler had it.
            self._answers.append(response)


@contextmanager
def watched_dashboard(browser: Browser, service: str) -> Iterator[Dashboard]:
    """A dashboard on a page with a fresh profile; fails at the end if it is not clean."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    dashboard = Dashboard(context.new_page(), service)
    yield dashboard
    dashboard.assert_clean()
    context.close()
