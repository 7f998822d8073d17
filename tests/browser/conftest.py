"""A real service process, and a real browser that looks at its dashboard."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser import world
from tests.browser.dashboard import Dashboard, free_port

STARTED_WITHIN_SECONDS = 40


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def chromium() -> str:
    """Where the browser is."""
    fixed = Path("/usr/bin/chromium")
    found = str(fixed) if fixed.exists() else shutil.which("chromium")
    if found is None:
        pytest.skip("no chromium at /usr/bin/chromium or on PATH; install it to test the dashboard")
    return found


@pytest.fixture(scope="session")
def service(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a service with a bundle and a few users."""
    directory = tmp_path_factory.mktemp("service")
    world.publish(directory / "bundles")
    url = f"http://127.0.0.1:{free_port()}"
    with (directory / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "app.server"],
            env={
                **os.environ,
                "KAIROS_PORT": url.rpartition(":")[2],
                "KAIROS_DATABASE_URL": f"sqlite:///{directory / 'kairos.db'}",
                "KAIROS_BUNDLE_STORE": str(directory / "bundles"),
            },
            stdout=log,
            stderr=log,
        )
        try:
            _wait_until_ready(url, process, directory / "log")
            world.fill(url)
            yield url
        finally:
            process.terminate()
            process.wait(timeout=20)


def _wait_until_ready(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    give_up_at = time.monotonic() + STARTED_WITHIN_SECONDS
    while time.monotonic() < give_up_at and process.poll() is None:
        try:
            if httpx.get(f"{url}/health/ready").is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise AssertionError(f"the service did not start: {log.read_text()[-3000:]}")


# Not for the whole session: while Playwright runs, an event loop runs in this thread, and commands
# that other tests call could not start theirs.
@pytest.fixture(scope="package")
def browser(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium,
            headless=True,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page with a fresh profile."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield context.new_page()
    context.close()


@pytest.fixture
def dashboard(page: Page, service: str) -> Iterator[Dashboard]:
    """The dashboard, watched: no test may leave console errors or talk to another host."""
    dashboard = Dashboard(page, service)
    yield dashboard
    expected = re.compile(dashboard.expected_complaint or r"(?!)")
    assert [text for text in dashboard.complaints if not expected.search(text)] == []
    assert [url for url in dashboard.requested if not url.startswith(f"{service}/")] == []
