"""What each page of the dashboard requests, and what stays or goes when one endpoint fails."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import Page, Request, Route

from tests.browser import odd_models
from tests.browser.dashboard import Dashboard

DETAIL = "the service failed on this request; find it in the log by its request_id"
UNREACHED = "the service cannot be reached"
BACKGROUND = {"GET /v1/training-runs"}
"""What every page polls beside what it shows: a failure of it says nothing, and is polled again."""

_PARTS = (
    (r"/v1/models/(?!traffic$|changes$)[^/]+", "/v1/models/{version}"),
    (r"/v1/users/[^/]+", "/v1/users/{user}"),
    (r"/v1/items/[^/]+", "/v1/items/{item}"),
)


def name_endpoints(request: Request) -> set[str]:
    """The method and the template of an API request; empty for a file of the dashboard."""
    path = urlsplit(request.url).path
    if path.startswith("/dashboard/"):
        return set()
    for pattern, template in _PARTS:
        path = re.sub(pattern, template, path)
    return {f"{request.method} {path}"}


@dataclass(frozen=True)
class Endpoint:
    """One endpoint of a view.

    Attributes:
        name: as `name_endpoints` names it.
        keeps: a selector of what other endpoints gave and stays in full view.
        removes: a selector of what showed another customer, item or version before and must go.
        says: whether the page says the problem's sentence.
        button: what requests again; None where the page does so by itself.
    """

    name: str
    keeps: str | None = None
    removes: str | None = None
    says: bool = True
    button: str | None = "Try again"


@dataclass(frozen=True)
class View:
    """A page as it is opened and, with an action, what is done on it then.

    Attributes:
        act: done once the page has settled; only requests from then on count.
        also: endpoints that are requested, too, and fail in another view.
        version: a field of `OddVersions` whose version is in the fragment.
        is_fast: whether it is tried without the slow tests.
    """

    name: str
    page: str
    endpoints: tuple[Endpoint, ...]
    fragment: dict[str, str] = field(default_factory=dict)
    version: str | None = None
    act: Callable[[Page, odd_models.OddVersions], None] | None = None
    also: tuple[str, ...] = ()
    is_fast: bool = True


class Failure:
    """Makes one endpoint fail, and no longer once `kind` is None."""

    def __init__(self, page: Page, endpoint: str) -> None:
        self.kind: str | None = None
        self._endpoint = endpoint
        page.route("**/*", self._answer)

    def _answer(self, route: Route) -> None:
        if self.kind is None or self._endpoint not in name_endpoints(route.request):
            route.continue_()
        elif self.kind == "aborted":
            route.abort()
        else:
            problem = {"title": "The service failed", "status": 500, "detail": DETAIL}
            problem |= {"type": "urn:kairos:problem:internal", "code": "internal"}
            route.fulfill(status=500, content_type="application/problem+json", json=problem)


def wait_until_idle(dashboard: Dashboard) -> None:
    """Wait until nothing is loading, whether or not it has failed."""
    dashboard.page.wait_for_selector("main[aria-busy=false]")


def _click(name: str) -> Callable[[Page, odd_models.OddVersions], None]:
    return lambda page, _: page.get_by_role("button", name=name, exact=True).click()


def _type(field_id: str, text: str) -> Callable[[Page, odd_models.OddVersions], None]:
    return lambda page, _: page.locator(f"#{field_id}").fill(text)


def _choose_customer(page: Page, _: odd_models.OddVersions) -> None:
    page.locator("#customer-search").fill(odd_models.NEWCOMER)
    page.locator("[role=option]").first.click()


def _choose_user(page: Page, _: odd_models.OddVersions) -> None:
    page.locator(f"#user-list [value={odd_models.NEWCOMER}]").click()


def _choose_item(page: Page, _: odd_models.OddVersions) -> None:
    page.locator("#similar-items a").first.click()


def _select(select: str, version: str) -> Callable[[Page, odd_models.OddVersions], None]:
    def select_version(page: Page, versions: odd_models.OddVersions) -> None:
        page.select_option(f"#{select}", getattr(versions, version))

    return select_version


def _item(keeps: str) -> tuple[Endpoint, ...]:
    return (
        Endpoint("GET /v1/items/{item}", keeps=keeps, removes="#facts .properties"),
        Endpoint("GET /v1/items/{item}/similar", keeps=keeps, removes="#similar-items tr"),
        Endpoint("GET /v1/items/{item}/popularity", keeps=keeps, removes="#popularity-plot"),
    )


_MAP = (
    Endpoint("GET /v1/models/{version}/map", removes="#map"),
    Endpoint("GET /v1/models/{version}", keeps="#map-summary"),
)
_MODELS = Endpoint("GET /v1/models")
_READ = {"user": odd_models.USER}
_ITEM = {"item": "i3"}
_LISTS = "#top-items li"
_COMPARED = "#compared-items tr"

VIEWS = (
    View(
        "the overview",
        "index.html",
        (
            Endpoint("GET /health/ready", keeps="#serving .headline"),
            Endpoint("GET /v1/models", keeps="#changing-content"),
            Endpoint("GET /v1/models/{version}", keeps="#changing-content"),
            Endpoint("GET /v1/overview/changes", keeps="#serving .headline"),
            Endpoint("GET /v1/training-runs", keeps="#latest-content"),
            Endpoint("GET /v1/models/traffic", keeps="#run-content"),
            Endpoint("GET /v1/models/changes", keeps="#run-content"),
        ),
    ),
    View(
        "customers",
        "customers.html",
        (
            Endpoint("GET /v1/users"),
            Endpoint("GET /v1/users/{user}", removes=_LISTS),
            Endpoint("GET /v1/models", keeps=_LISTS),
            Endpoint("GET /v1/models/changes", keeps=_LISTS),
            Endpoint("POST /v1/attention", removes=_LISTS),
            Endpoint("POST /v1/recommendations", keeps=_LISTS),
        ),
    ),
    View(
        "found customers",
        "customers.html",
        (Endpoint("GET /v1/users", keeps=_LISTS),),
        fragment=_READ,
        act=_type("customer-search", "new"),
    ),
    View(
        "another customer",
        "customers.html",
        (
            Endpoint("GET /v1/users/{user}", removes=_LISTS),
            Endpoint("POST /v1/attention", removes=_LISTS),
            Endpoint("POST /v1/recommendations", keeps=_LISTS, removes=".contributions"),
        ),
        fragment=_READ,
        act=_choose_customer,
        also=("GET /v1/users",),
        is_fast=False,
    ),
    View(
        "a compared version",
        "customers.html",
        (
            Endpoint("POST /v1/attention", removes=".move"),
            Endpoint("POST /v1/recommendations", keeps=_LISTS),
        ),
        fragment=_READ,
        act=_select("compare", "nonstationary"),
        also=("GET /v1/users/{user}",),
        is_fast=False,
    ),
    View(
        "baskets left out",
        "customers.html",
        (
            Endpoint(
                "POST /v1/recommendations",
                keeps=_LISTS,
                removes=".effects",
                button="Test by leaving out baskets",
            ),
        ),
        fragment=_READ,
        act=_click("Test by leaving out baskets"),
    ),
    View(
        "what if",
        "what_if.html",
        (
            _MODELS,
            Endpoint("GET /v1/users", keeps="#history-name"),
            Endpoint("GET /v1/users/{user}", removes="#events tr[data-key]"),
            Endpoint("GET /v1/models/{version}"),
            Endpoint("POST /v1/attention", removes=_COMPARED),
            Endpoint("POST /v1/rankings", keeps=_COMPARED, removes="#scores"),
        ),
    ),
    View(
        "the history of another user",
        "what_if.html",
        (
            Endpoint("GET /v1/users/{user}", removes=f"#events tr[data-key], {_COMPARED}"),
            Endpoint("POST /v1/attention", removes=_COMPARED),
            Endpoint("POST /v1/rankings", keeps=_COMPARED, removes="#scores"),
        ),
        fragment=_READ,
        act=_choose_user,
        is_fast=False,
    ),
    View(
        "an item to add",
        "what_if.html",
        (Endpoint("GET /v1/items", keeps=_COMPARED),),
        fragment=_READ,
        act=_type("add-item", "Item"),
    ),
    View("items", "items.html", (_MODELS, *_MAP), is_fast=False),
    View("an item", "items.html", (_MODELS, *_item("#map-summary"), *_MAP), fragment=_ITEM),
    View(
        "another item",
        "items.html",
        _item("#map-summary"),
        fragment=_ITEM,
        act=_choose_item,
        is_fast=False,
    ),
    View(
        "the items of another version",
        "items.html",
        (
            Endpoint(
                "GET /v1/items/{item}/similar", keeps="#map-summary", removes="#similar-items tr"
            ),
            *_MAP,
        ),
        fragment=_ITEM,
        act=_select("version", "modulated"),
        is_fast=False,
    ),
    View(
        "found items",
        "items.html",
        (Endpoint("GET /v1/items", keeps="#map-summary"),),
        act=_type("item-search", "Item"),
    ),
    View(
        "recipients of an item",
        "items.html",
        (Endpoint("GET /v1/items/{item}/recipients", keeps="#similar-items tr"),),
        fragment=_ITEM,
        act=_click("Find customers"),
    ),
    View(
        "versions",
        "models.html",
        (
            _MODELS,
            Endpoint("GET /v1/models/traffic", keeps="#versions table"),
            Endpoint("GET /v1/models/changes", keeps="#metrics-figure"),
            Endpoint("GET /v1/training-runs", keeps="#versions table"),
            Endpoint("GET /v1/models/{version}", keeps="#versions table", removes="#detail-name"),
        ),
    ),
    View("curves", "population.html", (_MODELS, Endpoint("GET /v1/models/{version}"))),
    View(
        "the curves of another version",
        "population.html",
        (Endpoint("GET /v1/models/{version}", removes="#pictures, #legend label"),),
        act=_select("version", "modulated"),
        is_fast=False,
    ),
    View(
        "examples of a curve",
        "population.html",
        (Endpoint("GET /v1/overview/examples", keeps="#pictures"),),
        act=_click("Find customers"),
    ),
    View(
        "kernels and intensities",
        "kernels.html",
        (
            _MODELS,
            Endpoint("GET /v1/models/{version}"),
            Endpoint("GET /v1/users", keeps="#first-kernel h2"),
            Endpoint("GET /v1/users/{user}", keeps="#first-kernel h2"),
            Endpoint("POST /v1/attention", keeps="#first-kernel h2"),
        ),
        version="modulated",
    ),
    View(
        "the intensities of another user",
        "kernels.html",
        (
            Endpoint("GET /v1/users/{user}", keeps="#first-kernel h2", removes="#intensity-plot"),
            Endpoint("POST /v1/attention", keeps="#first-kernel h2", removes="#intensity-plot"),
        ),
        version="modulated",
        act=_choose_user,
        is_fast=False,
    ),
    View(
        "the kernels of another version",
        "kernels.html",
        (Endpoint("GET /v1/models/{version}", removes="#first-kernel, #second-kernel"),),
        act=_select("version", "nonstationary"),
        is_fast=False,
    ),
    View(
        "operations",
        "health.html",
        (
            Endpoint("GET /health/ready", says=False, button=None),
            Endpoint("GET /v1/metrics", button=None),
            Endpoint("GET /v1/training-runs", button=None),
            Endpoint("GET /v1/models/changes", button=None),
        ),
        fragment={"interval": "1"},
    ),
)
"""Every page, and its main actions. Pages poll endpoints of `BACKGROUND` as well."""
