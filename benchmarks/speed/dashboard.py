"""Loading time of the dashboard's Users page, and drawing time of a sweep of 200 query times.

    python benchmarks/speed/dashboard.py --url http://127.0.0.1:8000 --user 12347

Opens the page of a running service in Chromium and reads the page's own measurements: from
navigation to the first numbers and plots on display, and from the request of a sweep to its heat
map; then sweeps once more in the open page. First with an empty profile each time, then repeatedly
with one profile, as a returning user. No inspector is attached to the tab while it loads: with one,
V8 parses plotly.js's five megabytes several times.

Writes medians to benchmarks/speed/results/dashboard.json. Browser and service share the machine.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote, urlencode

from playwright.sync_api import Page, Playwright, sync_playwright

from kairos_client.credentials import read_local_token

RESULTS = Path(__file__).parent / "results" / "dashboard.json"
DEFAULT_URL = "http://127.0.0.1:8000"
TIMEOUT_MS = 120_000
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking")
# Waits until the browser has started, and until the page has loaded.
STARTING_SECONDS = 4.0
LOADING_SECONDS = 5.0
# V8 caches the compiled code of a script from its third run on.
WARM_UP_VISITS = 3
FIGURES = ("first_numbers_ms", "first_view_ms", "first_sweep_ms", "next_sweep_ms")
_SWEEP_DONE = "#sweep[aria-busy=false]"
_READ_DURATIONS = "(name) => performance.getEntriesByName(name).map((entry) => entry.duration)"
_READ_HEAT_MAP_SIZE = (
    "(({z}) => [z.length, z[0].length])(document.getElementById('heat-map').data[0])"
)


def main() -> None:
    """Measure and record."""
    arguments = _parse_arguments()
    if arguments.url is None and not _is_up(DEFAULT_URL):
        print(f"nothing measured: no service at {DEFAULT_URL}; start one, or name it with --url")
        return
    url = arguments.url or DEFAULT_URL
    token = read_local_token(url)
    fragment = {"user": arguments.user} | ({} if token is None else {"token": token})
    page = f"{url}/dashboard/index.html#{urlencode(fragment)}"
    with sync_playwright() as playwright:
        fresh = [_measure_first_visit(playwright, page) for _ in range(arguments.runs)]
        with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            visits = [
                _visit(playwright, page, profile) for _ in range(arguments.runs + WARM_UP_VISITS)
            ]
    record: dict[str, object] = {
        "command": f"python benchmarks/speed/dashboard.py --url {url} --user {arguments.user}",
        "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "runs": arguments.runs,
        "events": fresh[0]["events"],
        "instants": fresh[0]["instants"],
        "fresh_profile": _compute_medians(fresh),
        "coming_back": _compute_medians(visits[WARM_UP_VISITS:]),
    }
    print(json.dumps(record, indent=1))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


def _compute_medians(visits: list[dict[str, float]]) -> dict[str, int]:
    return {name: round(statistics.median(visit[name] for visit in visits)) for name in FIGURES}


def _measure_first_visit(playwright: Playwright, url: str) -> dict[str, float]:
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        return _visit(playwright, url, profile)


def _visit(playwright: Playwright, url: str, profile: str) -> dict[str, float]:
    """Open the page once; return its measurements, and the size of the sweep."""
    with _run_browser(profile) as address:
        new_tab = urllib.request.Request(f"{address}/json/new?{quote(url, ':/=&')}", method="PUT")
        urllib.request.urlopen(new_tab, timeout=10).read()
        time.sleep(LOADING_SECONDS)
        browser = playwright.chromium.connect_over_cdp(address)
        (page,) = (page for page in browser.contexts[0].pages if "/dashboard/" in page.url)
        figures = _read_figures(page)
        browser.close()
    return figures


def _read_figures(page: Page) -> dict[str, float]:
    page.set_default_timeout(TIMEOUT_MS)
    page.wait_for_selector("main[aria-busy=false]:not(.stale)")
    page.wait_for_selector(_SWEEP_DONE)
    if page.locator("#sweep-figure").is_hidden():
        raise SystemExit(f"the page must show a sweep, but shows: {page.inner_text('#sweep-note')}")
    (first_numbers,) = _read_durations(page, "kairos-first-numbers")
    (first_view,) = _read_durations(page, "kairos-first-view")
    (first_sweep,) = _read_durations(page, "kairos-sweep-drawn")
    page.get_by_label("exclude seen items").uncheck()
    page.wait_for_selector(_SWEEP_DONE)
    next_sweep = _read_durations(page, "kairos-sweep-drawn")[1]
    events, instants = page.evaluate(_READ_HEAT_MAP_SIZE)
    return {
        "first_numbers_ms": first_numbers,
        "first_view_ms": first_view,
        "first_sweep_ms": first_sweep,
        "next_sweep_ms": next_sweep,
        "events": events,
        "instants": instants,
    }


@contextmanager
def _run_browser(profile: str) -> Iterator[str]:
    """Run a browser during the block; yield the address of its debugging port."""
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("a browser is needed, but there is no chromium on PATH; install it")
    port = Path(profile) / "DevToolsActivePort"
    port.unlink(missing_ok=True)
    process = subprocess.Popen(
        [chromium, *FLAGS, "--remote-debugging-port=0", f"--user-data-dir={profile}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        time.sleep(STARTING_SECONDS)
        yield f"http://127.0.0.1:{port.read_text('utf-8').splitlines()[0]}"
    finally:
        process.terminate()
        process.wait(timeout=30)


def _read_durations(page: Page, name: str) -> list[float]:
    """Read the durations in milliseconds that the page recorded under a name."""
    durations: list[float] = page.evaluate(_READ_DURATIONS, name)
    return durations


def _is_up(url: str) -> bool:
    try:
        urllib.request.urlopen(f"{url}/health/ready", timeout=5).read()
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False
    return True


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help=f"a running service; default {DEFAULT_URL}, if there is one")
    parser.add_argument("--user", default="12347", help="the user whose page is opened")
    parser.add_argument("--runs", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
