"""The dashboard as a test sees it: what is drawn, what was answered, what went wrong."""

import socket
from typing import Any

from playwright.sync_api import Locator, Page, Response


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Dashboard:
    """One page, with everything it complained of and asked for."""

    def __init__(self, page: Page, service: str) -> None:
        self.page = page
        self.service = service
        self.complaints: list[str] = []
        self.requested: list[str] = []
        self.answers: list[dict[str, Any]] = []
        self.expected_complaint: str | None = None
        page.on("console", self._note_message)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requested.append(request.url))
        page.on("response", self._note_answer)

    def open(self, fragment: str = "") -> "Dashboard":
        """Open the page and wait until bars are drawn."""
        self.page.goto(f"{self.service}/dashboard{fragment}")
        self.settle()
        return self

    def settle(self) -> None:
        """Wait until the newest answer is on display."""
        self.page.wait_for_selector("#answer[aria-busy=false]:not(.stale)")

    @property
    def drawn_weights(self) -> list[float]:
        """The heights of the bars, oldest event first."""
        weights: list[float] = self.page.evaluate("document.getElementById('plot').data[0].y")
        return weights

    @property
    def bars_on_screen(self) -> int:
        """Bars that are really there, not only asked of the plotting library."""
        return self.page.locator("#plot .bars .point path").count()

    @property
    def top_items(self) -> list[str]:
        rows = self.page.locator("#top-items tr")
        return [str(row.get_attribute("data-item")) for row in rows.all()]

    def by_label(self, label: str) -> Locator:
        return self.page.get_by_label(label, exact=False)

    def move_slider(self, share: float) -> None:
        """Move the query time to a share of the slider's way, as a pointer would."""
        self.page.locator("#query-time-slider").evaluate(
            """(slider, share) => {
                slider.value = Math.round(share * slider.max);
                slider.dispatchEvent(new Event("input", {bubbles: true}));
            }""",
            share,
        )
        self.settle()

    def _note_message(self, message: Any) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(message.text)

    def _note_answer(self, response: Response) -> None:
        if response.url.endswith("/v1/recommendations") and response.ok:
            self.answers.append(response.json())
