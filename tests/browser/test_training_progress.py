"""The banner's line about a running training, and its notice that another model serves."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Locator, Route, expect

from app.db.database import Database
from app.training_runs.journal import DatabaseJournal
from model.store.store import BundleStore
from tests.app import tiny_bundle
from tests.browser.dashboard import Dashboard
from tests.processes import Server, processes

PROGRESS = {"phase": "fit", "fit": None, "epoch": None, "epochs": None, "share": 0.0}
EPOCH = {"fit": "fit", "epoch": 2, "epochs": 3, "share": 0.4}


@pytest.fixture
def server(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service with one model."""
    directory = tmp_path_factory.mktemp("training")
    tiny_bundle.publish(directory / "bundles", seed=1)
    with processes(directory, directory / "bundles") as start:
        yield start()


@pytest.fixture
def journal(server: Server) -> Iterator[DatabaseJournal]:
    """The record of the training beside the service."""
    directory = server.log.parent
    database = Database(f"sqlite:///{directory / 'kairos.db'}", threads=1, queue=0)
    yield DatabaseJournal(BundleStore(directory / "bundles"), database, actor="cli:test")
    database.close()


def begin(journal: DatabaseJournal, run_id: str = "run-1") -> None:
    journal.begin(run_id, started_at=journal.now(), champion=None, report={})


def record(journal: DatabaseJournal, **more: object) -> None:
    journal.record_progress("run-1", {**PROGRESS, "seconds_left": None, **more})


def finish(journal: DatabaseJournal, result: str, candidate: str | None = None) -> None:
    journal.finish(
        "run-1",
        finished_at=journal.now(),
        result=result,
        candidate=candidate,
        reason="",
        report={},
    )


def line(dashboard: Dashboard) -> Locator:
    return dashboard.page.locator("#training")


def test_every_page_shows_how_far_a_training_is(
    server: Server, journal: DatabaseJournal, look_at: Callable[[str], Dashboard]
) -> None:
    begin(journal)
    record(journal, **EPOCH, seconds_left=170.0)
    dashboard = look_at(server.url)
    for page in ("index.html", "models.html", "health.html"):
        dashboard.page.goto(f"{server.url}/dashboard/{page}")
        expect(line(dashboard)).to_have_text("Training: 40 %, about 3 min left")
    record(journal, phase="evaluate")
    expect(line(dashboard)).to_have_text("Training: evaluating the model")
    finish(journal, "kept")
    expect(line(dashboard)).to_be_hidden()


def test_it_says_where_events_are_only_counted(
    server: Server, journal: DatabaseJournal, look_at: Callable[[str], Dashboard]
) -> None:
    begin(journal)
    record(journal, **EPOCH)
    dashboard = look_at(server.url)

    def count(route: Route) -> None:
        models = dashboard.api("/v1/models")["models"]
        route.fulfill(json={"models": [{**model, "encoder": "counting"} for model in models]})

    dashboard.page.route("**/v1/models", count)
    dashboard.page.goto(f"{server.url}/dashboard/items.html")
    expect(line(dashboard)).to_have_text("Training: 40 %; until then events are only counted")


def test_a_notice_tells_that_another_model_serves(
    server: Server, journal: DatabaseJournal, look_at: Callable[[str], Dashboard]
) -> None:
    begin(journal)
    record(journal, **EPOCH)
    dashboard = look_at(server.url)
    dashboard.page.goto(f"{server.url}/dashboard/models.html")
    expect(line(dashboard)).to_have_text("Training: 40 %")
    dashboard.page.evaluate(
        "document.addEventListener('kairos:model-changed', (event) => {"
        " document.body.dataset.changed = event.detail.version; })"
    )
    version = tiny_bundle.publish(server.log.parent / "bundles", seed=2, activate=False)
    journal.activate(version, "better")
    finish(journal, "promoted", version)
    expect(line(dashboard)).to_contain_text(f"Model {version} now serves")
    assert dashboard.page.evaluate("document.body.dataset.changed") == version
    line(dashboard).get_by_role("button", name="Show it").click()
    expect(dashboard.page.locator("#model-version")).to_have_text(version)
    expect(line(dashboard)).to_be_hidden()


def test_a_page_without_a_key_asks_for_no_run(
    server: Server, look_at: Callable[..., Dashboard]
) -> None:
    dashboard = look_at(server.url, holds_token=False)
    dashboard.expected_complaint = "401"
    dashboard.page.goto(f"{server.url}/dashboard/items.html")
    dashboard.page.wait_for_timeout(2500)
    assert not [url for url in dashboard.requested if "training-runs" in url]
