"""How long the user view of the dashboard takes to be there, and to draw a sweep of 200 instants.

    python benchmarks/speed/dashboard.py --url http://127.0.0.1:8000 --user 12347

Opens the page of a running service in a real browser, with an empty cache each time, and reads
what the page measures: from navigation to the first answer on display, and from asking for a
sweep to its heat map being drawn; then sweeps once more in the open page. Writes the medians to
benchmarks/speed/results/dashboard.json. Browser and service share the machine.
"""

import argparse
import json
import os
import shutil
import statistics
import urllib.error
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page, sync_playwright

RESULTS = Path(__file__).parent / "results" / "dashboard.json"
USUAL_URL = "http://127.0.0.1:8000"
PATIENCE_MS = 120_000
_SWEPT = "#sweep[aria-busy=false]"
_MEASURED = "(name) => performance.getEntriesByName(name).map((entry) => entry.duration)"
_DRAWN = "(({z}) => [z.length, z[0].length])(document.getElementById('heat-map').data[0])"


def main() -> None:
    """Measure and record."""
    arguments = _arguments()
    if arguments.url is None and not _answers(USUAL_URL):
        print(f"nothing measured: no service at {USUAL_URL}; start one, or name it with --url")
        return
    url = arguments.url or USUAL_URL
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("a browser is needed, but there is no chromium on PATH; install it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        runs = [_run(browser, url, arguments.user) for _ in range(arguments.runs)]
        browser.close()
    record: dict[str, object] = {
        "command": f"python benchmarks/speed/dashboard.py --url {url} --user {arguments.user}",
        "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "runs": arguments.runs,
        "events": runs[0]["events"],
        "instants": runs[0]["instants"],
    }
    for figure in ("first_view_ms", "first_sweep_ms", "next_sweep_ms"):
        record[figure] = round(statistics.median(run[figure] for run in runs))
    print(json.dumps(record, indent=1))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


def _run(browser: Browser, url: str, user: str) -> dict[str, float]:
    """One visit: the figures of the page, and how much it drew."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(f"{url}/dashboard/index.html#{urlencode({'user': user})}")
    page.wait_for_selector("main[aria-busy=false]:not(.stale)")
    page.wait_for_selector(_SWEPT)
    if page.locator("#sweep-figure").is_hidden():
        raise SystemExit(f"user {user!r} has nothing to sweep: {page.inner_text('#sweep-note')}")
    (first_view,) = _measured(page, "kairos-first-view")
    (first_sweep,) = _measured(page, "kairos-sweep-drawn")
    page.get_by_label("exclude seen items").uncheck()
    page.wait_for_selector(_SWEPT)
    next_sweep = _measured(page, "kairos-sweep-drawn")[1]
    events, instants = page.evaluate(_DRAWN)
    context.close()
    return {
        "first_view_ms": first_view,
        "first_sweep_ms": first_sweep,
        "next_sweep_ms": next_sweep,
        "events": events,
        "instants": instants,
    }


def _measured(page: Page, name: str) -> list[float]:
    """The durations, in milliseconds, that the page measured under a name."""
    durations: list[float] = page.evaluate(_MEASURED, name)
    return durations


def _answers(url: str) -> bool:
    try:
        urllib.request.urlopen(f"{url}/health/ready", timeout=5).read()
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False
    return True


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help=f"a running service; default {USUAL_URL}, if there is one")
    parser.add_argument("--user", default="12347", help="whose page to open")
    parser.add_argument("--runs", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
