"""The records of retraining, on either database."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from app.db.database import Database
from app.errors import DatabaseUnavailableError
from app.models.repository import ModelChangeRepository
from app.observability.metrics import Metrics
from app.training_runs.journal import DatabaseJournal
from app.training_runs.lock import AdvisoryLock
from app.training_runs.service import count_training_runs
from migrations.run import upgrade
from model.store.store import BundleStore
from tests.app import tiny_bundle
from tests.app.client import Client
from tests.processes import eventually

AT = 1_767_225_600_000_000
REPORT: dict[str, Any] = {
    "recipe": "demo",
    "comparison": {"questions": 120, "rows": {"challenger": {"ndcg@10": 0.25}}},
    "decision": {
        "promote": False,
        "checks": [
            {
                "name": "floor",
                "value": 0.25,
                "threshold": 0.3,
                "passed": False,
                "sentence": "ndcg@10 0.2500, required at least 0.3000",
            }
        ],
    },
}


@pytest.fixture
def database(client_on_either: Client) -> Iterator[Database]:
    """The service's database, opened a second time."""
    url = client_on_either.app.state.context.settings.database_url
    database = Database(url, threads=1, queue=0)
    yield database
    database.close()


@pytest.fixture
def journal(client_on_either: Client, database: Database) -> DatabaseJournal:
    return DatabaseJournal(client_on_either.app.state.context.store, database, actor="cli:night")


def begin(journal: DatabaseJournal, run_id: str, at: int = AT) -> None:
    journal.begin(run_id, started_at=at, champion="old", report={"recipe": "demo"})


def finish(journal: DatabaseJournal, run_id: str, result: str = "kept") -> None:
    journal.finish(
        run_id,
        finished_at=AT + 1_000_000,
        result=result,
        candidate="new",
        reason="ndcg@10 0.2500, required at least 0.3000",
        report=REPORT,
    )


def runs(client: Client, path: str = "/v1/training-runs") -> list[dict[str, Any]]:
    answer = client.get(path)
    assert answer.status_code == 200
    return list(answer.json()["runs"])


def test_before_the_first_run_there_is_none(client_on_either: Client) -> None:
    assert runs(client_on_either) == []


def test_a_running_run_is_listed(client_on_either: Client, journal: DatabaseJournal) -> None:
    begin(journal, "one")
    (run,) = runs(client_on_either)
    assert (run["result"], run["finished_at"], run["decision"]) == ("running", None, None)
    assert (run["champion"], run["recipe"]) == ("old", "demo")


def test_the_decision_and_its_measurements_are_stored(
    client_on_either: Client, journal: DatabaseJournal
) -> None:
    begin(journal, "one")
    finish(journal, "one")
    (run,) = runs(client_on_either)
    assert run == {
        "run_id": "one",
        "result": "kept",
        "reason": "ndcg@10 0.2500, required at least 0.3000",
        "started_at": "2026-01-01T00:00:00Z",
        "finished_at": "2026-01-01T00:00:01Z",
        "champion": "old",
        "candidate": "new",
        "recipe": "demo",
        "questions": 120,
        "metrics": {"challenger": {"ndcg@10": 0.25}},
        "decision": REPORT["decision"],
        "progress": None,
    }


def test_a_running_run_shows_how_far_it_is_until_it_ends(
    client_on_either: Client, journal: DatabaseJournal
) -> None:
    begin(journal, "one")
    progress = {"phase": "fit", "fit": "fit", "epoch": 2, "epochs": 3, "share": 0.4}
    journal.record_progress("one", {**progress, "seconds_left": 170.0})
    (run,) = runs(client_on_either)
    assert run["progress"].pop("updated_at")
    assert run["progress"] == {**progress, "seconds_left": 170.0}
    assert run["recipe"] == "demo"
    finish(journal, "one")
    (run,) = runs(client_on_either)
    assert run["progress"] is None


def test_a_run_whose_process_died_is_abandoned_by_the_next(
    client_on_either: Client, journal: DatabaseJournal
) -> None:
    begin(journal, "dead")
    begin(journal, "next", AT + 1)
    finish(journal, "next", "promoted")
    following, dead = runs(client_on_either)
    assert (following["run_id"], following["result"]) == ("next", "promoted")
    assert (dead["run_id"], dead["result"]) == ("dead", "abandoned")
    assert "next" in dead["reason"]
    assert dead["finished_at"] is not None


def test_runs_are_listed_newest_first_up_to_the_limit(
    client_on_either: Client, journal: DatabaseJournal
) -> None:
    for number in range(3):
        begin(journal, f"run {number}", AT + number)
    found = runs(client_on_either, "/v1/training-runs?limit=2")
    assert [run["run_id"] for run in found] == ["run 2", "run 1"]


@pytest.mark.parametrize("limit", ["0", "201", "many"])
def test_a_limit_out_of_range_is_refused(shared_client: Client, limit: str) -> None:
    assert shared_client.get(f"/v1/training-runs?limit={limit}").status_code == 422


def test_activating_is_recorded_as_the_service_records_it(
    client_on_either: Client, journal: DatabaseJournal, database: Database
) -> None:
    store: BundleStore = client_on_either.app.state.context.store
    before = store.read_current()
    version = tiny_bundle.publish(store.root, seed=2, activate=False)
    journal.activate(version, "run one: all checks passed")
    assert store.read_current() == version
    change = client_on_either.get("/v1/models/changes").json()["changes"][0]
    assert (change["change"], change["actor"]) == ("retrain", "cli:night")
    assert (change["version"], change["previous_version"]) == (version, before)
    assert change["reason"] == "run one: all checks passed"
    assert {*journal.list_recently_served()} == {version, before}
    changes = database.read_blocking(lambda session: ModelChangeRepository(session).list_newest(2))
    assert len(changes) == 1


def test_runs_of_other_processes_are_counted_for_prometheus(
    client_on_either: Client, journal: DatabaseJournal
) -> None:
    begin(journal, "dead")
    begin(journal, "one", AT + 1)
    finish(journal, "one", "promoted")
    begin(journal, "unfinished", AT + 2)
    # Metrics of their own: the service counts, too, every few seconds.
    metrics = Metrics()
    context = replace(client_on_either.app.state.context, metrics=metrics)
    for _ in range(2):  # the second count adds nothing
        client_on_either.portal.call(count_training_runs, context)
    read = metrics.registry.get_sample_value
    counted = {
        result: read("kairos_training_runs_total", {"result": result}) or 0
        for result in ("promoted", "abandoned", "running")
    }
    assert counted == {"promoted": 1, "abandoned": 1, "running": 0}


def test_offline_metrics_of_the_current_version_are_exported(
    client: Client, bundle_store: Path
) -> None:
    def exported_metric(version: str | None) -> float | None:
        labels = {"name": "ndcg@10", "version": str(version)}
        registry = client.app.state.context.metrics.registry
        return registry.get_sample_value("kairos_offline_metric", labels)  # type: ignore[no-any-return]

    first = BundleStore(bundle_store).read_current()
    assert exported_metric(first) == 0.25
    second = tiny_bundle.publish(bundle_store, seed=2)
    eventually(lambda: exported_metric(second) == 0.25)
    assert exported_metric(first) is None


def test_one_process_at_a_time_holds_the_advisory_lock(postgresql_url: str) -> None:
    upgrade(postgresql_url)
    with (
        AdvisoryLock(postgresql_url, "retrain: process 1 on night") as first,
        AdvisoryLock(postgresql_url, "retrain: process 2 on day") as second,
    ):
        assert first.take()
        assert not second.take()
        assert "retrain: process 1 on night, connected since 2" in second.read_holder()
        first.require()
    with AdvisoryLock(postgresql_url, "third") as third:
        assert third.take()


def test_a_lost_lock_connection_is_an_error(postgresql_url: str) -> None:
    upgrade(postgresql_url)
    with AdvisoryLock(postgresql_url, "night") as lock:
        assert lock.take()
        with psycopg.connect(postgresql_url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'night'"
            )
        with pytest.raises(DatabaseUnavailableError, match="holds a lock"):
            lock.require()
