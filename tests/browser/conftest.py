"""Fixtures: service processes, and a browser that opens their dashboard."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from model.wide import WideConfig
from tests.app import tiny_bundle
from tests.browser import odd_models, world
from tests.browser import shop as demo_shop
from tests.browser.dashboard import Dashboard
from tests.processes import Server, eventually, processes

PATIENCE_SECONDS = 900
"""For one test: the first that uses the shop waits for its models to be trained."""

_BROWSERS = ("chromium-headless-shell", "chromium", "/usr/bin/chromium")
"""The first that is installed. The shell is the same engine without windows: a quarter faster."""

# Browsers and services share the processors, so expectations may take long.
expect.set_options(timeout=20_000)

OpenShop = Callable[..., Server]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.timeout(PATIENCE_SECONDS))


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of the browser."""
    found = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if found is None:
        pytest.skip(
            f"none of {', '.join(_BROWSERS)} is installed; install one to test the dashboard"
        )
    return found


@pytest.fixture(scope="session")
def service(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a service with an untrained bundle, a hostile title and a few users."""
    directory = tmp_path_factory.mktemp("service")
    world.publish(directory / "bundles")
    with processes(directory, directory / "bundles") as start:
        url = start().url
        world.fill(url)
        yield url


@pytest.fixture(scope="session")
def shop(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a service with a subset of the demo and three trained versions; read only."""
    with ExitStack() as stack:
        yield _open_shop(stack, tmp_path_factory).url


@pytest.fixture
def open_shop(
    chromium: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Server]]:
    """Starts a copy of the shop with some settings, which a test may change."""
    with ExitStack() as stack:
        yield lambda **settings: _open_shop(stack, tmp_path_factory, **settings)


@pytest.fixture(scope="module")
def module_shop(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A copy of the shop for one module, whose tests may change what they restore."""
    with ExitStack() as stack:
        yield _open_shop(stack, tmp_path_factory)


def _open_shop(
    stack: ExitStack, tmp_path_factory: pytest.TempPathFactory, **settings: str
) -> Server:
    base = tmp_path_factory.getbasetemp()
    # Parallel test processes have separate directories within one.
    shared = base.parent if base.name.startswith("popen-") else base
    built = demo_shop.build(shared / "shop")
    own = tmp_path_factory.mktemp("shop-of-its-own")
    shutil.copytree(built / "bundles", own / "bundles")
    shutil.copy(built / "kairos.db", own)
    start = stack.enter_context(processes(own, own / "bundles"))
    return start(wait=True, **settings)


# Not session-scoped: while Playwright runs, an event loop runs in this thread, and commands of
# other tests could not start their own.
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


@pytest.fixture(scope="module")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A fresh profile, whose cache spares every test of a file the download of plotly.js."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A fresh tab, without the keys of other tabs."""
    page = context.new_page()
    yield page
    page.close()


@pytest.fixture
def look_at(page: Page) -> Iterator[Callable[..., Dashboard]]:
    """Opens the dashboard of a service by its URL, with the checks of `dashboard`."""
    watched: list[Dashboard] = []

    def look(service: str, *, holds_token: bool = True) -> Dashboard:
        watched.append(Dashboard(page, service, holds_token=holds_token))
        return watched[-1]

    yield look
    for dashboard in watched:
        dashboard.assert_clean()


@pytest.fixture
def dashboard(look_at: Callable[[str], Dashboard], service: str) -> Dashboard:
    """The dashboard of `service`. A test fails on console errors and requests to other hosts."""
    return look_at(service)


@pytest.fixture(scope="session")
def odd_service(
    chromium: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, odd_models.OddVersions]]:
    """The URL of a service with unusual versions, and their names; read only."""
    directory = tmp_path_factory.mktemp("odd-models")
    versions = odd_models.publish(directory / "bundles")
    with processes(directory, directory / "bundles") as start:
        url = start().url
        odd_models.fill(url)
        yield url, versions


@pytest.fixture(scope="session")
def wide_service(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a service with a model that has a wide part; read only."""
    directory = tmp_path_factory.mktemp("wide")
    tiny_bundle.publish(directory / "bundles", seed=3, wide=WideConfig())
    with processes(directory, directory / "bundles") as start:
        url = start().url
        odd_models.fill(url)
        yield url


@pytest.fixture(scope="session")
def empty_service(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service without a published version; only looked at."""
    directory = tmp_path_factory.mktemp("empty")
    with processes(directory, directory / "bundles") as start:
        server = start(wait=False)
        eventually(lambda: server.process.poll() is None and _is_live(server))
        yield server


def _is_live(server: Server) -> bool:
    try:
        return server.http.get("/health/live").is_success
    except httpx.TransportError:
        return False


@pytest.fixture
def odd_versions(odd_service: tuple[str, odd_models.OddVersions]) -> odd_models.OddVersions:
    """The versions of `odd_dashboard`."""
    return odd_service[1]


@pytest.fixture
def odd_dashboard(
    look_at: Callable[[str], Dashboard], odd_service: tuple[str, odd_models.OddVersions]
) -> Dashboard:
    """The dashboard of `odd_service`, with the same checks."""
    return look_at(odd_service[0])


@pytest.fixture
def wide_dashboard(look_at: Callable[[str], Dashboard], wide_service: str) -> Dashboard:
    """The dashboard of `wide_service`, with the same checks."""
    return look_at(wide_service)


@pytest.fixture
def shop_dashboard(look_at: Callable[[str], Dashboard], shop: str) -> Dashboard:
    """The dashboard of `shop`, with the same checks."""
    return look_at(shop)
