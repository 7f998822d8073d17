"""R16: the gate refuses shuffled labels, NaN, and models below popularity, with its numbers."""

import json
import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from model.store.store import BundleStore
from tests import tiny
from tests.cli.world import kairos
from tests.processes import ROOT
from tests.promises.figures import Figures
from tests.promises.strength import Strength
from tests.training.ring import ring_world, shuffle_items, write_events
from training.retraining.report import RunReport

pytestmark = pytest.mark.timeout(3_600)

SMALL = """
profile_histories = 0
export_encoder = false

[data]
predict = "next_event"

[split]
kind = "by_time"
test = 0.15
validation = 0.15

[encoder]
kind = "self_attention"
dim = 16
heads = 2
layers = 1
feed_forward = 16
max_history = 8
repeats = false

[encoder.time_encoding]
kind = "mercer"
periods = 2

[gate]
questions = 20
p95_seconds = 30.0

[fit]
tokens = 400
"""
DEMO = SMALL.replace("next_event", "next_basket").replace(
    "[split]", 'ignored_actions = ["cancel"]\n\n[split]'
)


def use_counting_encoder(recipe: str, kind: str) -> str:
    """Change a recipe to a counting model, which needs no epochs."""
    return re.sub(
        r"\[encoder\].*\[gate\]", f'[encoder]\nkind = "{kind}"\n\n[gate]', recipe, flags=re.S
    )


@dataclass(frozen=True)
class Shop:
    """A service's database, a store with a champion, and the events so far.

    Attributes:
        recipe: recipe of the champion, a counting model.
        attending: recipe of a model trained by gradient descent.
        crowd: events in which some items are more popular than others.
    """

    root: Path
    recipe: str
    attending: str
    events: pl.DataFrame
    crowd: pl.DataFrame

    @property
    def store(self) -> BundleStore:
        return BundleStore(self.root / "store")

    def retrain(self, name: str, events: pl.DataFrame, recipe: str) -> RunReport:
        """Run the job on events; returns its report, which equals the one in the database."""
        (self.root / f"{name}.toml").write_text(recipe)
        output = kairos(
            *("retrain", "--recipe", self.root / f"{name}.toml", "--threads", "2"),
            *("--events", write_events(events, self.root / f"{name}.parquet")),
            *("--database", f"sqlite:///{self.root / 'kairos.db'}"),
            *("--store", self.store.root, "--runs", self.root / "runs"),
        ).stdout
        report = RunReport.read(Path(output.splitlines()[1]).parent)
        assert report is not None
        assert self._read_recorded(report.run_id) == report.model_dump(mode="json")
        return report

    def retrain_refused(self, name: str, events: pl.DataFrame, recipe: str) -> RunReport:
        """Run the job, and check that its challenger is refused and not published."""
        champion, versions = self.store.read_current(), self.store.list_versions()
        report = self.retrain(name, events, recipe)
        assert report.result == "kept"
        assert report.decision is not None
        assert not report.decision.promote
        assert (self.store.read_current(), self.store.list_versions()) == (champion, versions)
        return report

    def _read_recorded(self, run_id: str) -> object:
        with closing(sqlite3.connect(self.root / "kairos.db")) as connection:
            query = "SELECT report FROM training_runs WHERE run_id = ?"
            ((report,),) = connection.execute(query, (run_id,))
        return json.loads(report)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, strength: Strength) -> Shop:
    """A champion trained on all but the latest fifth of the events: of every fourth customer of
    the demo at full strength, of a small synthetic world otherwise.
    """
    directory = tmp_path_factory.mktemp("shop")
    if strength.is_full:
        events = pl.read_parquet(ROOT / "demo" / "events.parquet")
        customers = events["user_id"].unique().sort()[::4]
        events = events.filter(pl.col("user_id").is_in(customers.implode()))
        shop = Shop(
            directory, use_counting_encoder(DEMO, "personal_frequency"), DEMO, events, events
        )
    else:
        events = ring_world(users=80)
        shop = Shop(
            directory,
            use_counting_encoder(SMALL, "markov"),
            SMALL,
            events,
            generate_popular_events(),
        )
    yesterday = events.filter(pl.col("timestamp") < pl.col("timestamp").quantile(0.8))
    report = shop.retrain("yesterday", yesterday, shop.recipe)
    assert report.result == "promoted", report.reason
    return shop


def record(figures: Figures, measured: str, report: RunReport) -> None:
    """Record the decision of the gate and its metrics."""
    assert report.decision is not None
    failed = [check.name for check in report.decision.checks if not check.passed]
    metrics = {}
    if report.comparison is not None:
        rows, leads = report.comparison.rows, report.comparison.leads
        metrics = {f"{name}_ndcg10": round(row["ndcg@10"], 4) for name, row in rows.items()}
        metrics |= {
            "questions": report.comparison.questions,
            "lead_over_champion_low": round(leads["champion"].low, 4),
        }
    figures.record(
        "R16", measured, result=report.result, failed=", ".join(failed) or "none", **metrics
    )


def list_failed(report: RunReport) -> set[str]:
    assert report.decision is not None
    return {check.name for check in report.decision.checks if not check.passed}


def test_shuffled_labels_are_refused(shop: Shop, figures: Figures) -> None:
    report = shop.retrain_refused("shuffled", shuffle_items(shop.events), shop.recipe)
    record(figures, "every label shuffled", report)
    assert "popularity" in list_failed(report)


def test_labels_shuffled_in_the_training_part_are_refused(shop: Shop, figures: Figures) -> None:
    is_test = pl.col("timestamp") >= shop.events["timestamp"].quantile(0.85)
    broken = pl.concat([shuffle_items(shop.events.filter(~is_test)), shop.events.filter(is_test)])
    report = shop.retrain_refused("half shuffled", broken, shop.recipe)
    record(figures, "labels shuffled in what is learned from", report)
    assert list_failed(report) & {"champion", "popularity"}


def test_a_nan_loss_is_refused(shop: Shop, figures: Figures) -> None:
    wild = shop.attending + "warmup_steps = 0\nlearning_rate = 1e30\n"
    report = shop.retrain_refused("wild", shop.events, wild)
    record(figures, "a loss that is no number", report)
    assert list_failed(report) == {"sound"}
    assert "the loss must stay finite" in str(report.reason)


def test_nan_weights_are_refused(shop: Shop, figures: Figures) -> None:
    # One step, from a finite loss to NaN weights.
    recipe = SMALL.replace("tokens = 400", "tokens = 1000000")
    exploding = recipe + "epochs = 1\nwarmup_steps = 0\nlearning_rate = 1e30\n"
    report = shop.retrain_refused("exploded", ring_world(users=80), exploding)
    record(figures, "weights that are no numbers", report)
    assert list_failed(report) == {"sound"}
    assert "the loss" not in str(report.reason)


def test_a_model_below_popularity_is_refused(shop: Shop, figures: Figures) -> None:
    untrained = shop.attending.replace("tokens = 400", "tokens = 20000")
    untrained += "epochs = 1\nlearning_rate = 1e-12\n"
    report = shop.retrain_refused("untrained", shop.crowd, untrained)
    record(figures, "worse than popularity", report)
    assert "popularity" in list_failed(report)
    assert report.comparison is not None
    rows = report.comparison.rows
    assert rows["challenger"]["ndcg@10"] < rows["popular_all_time"]["ndcg@10"]


def test_a_model_on_par_with_the_champion_is_promoted(shop: Shop, figures: Figures) -> None:
    report = shop.retrain("today", shop.events, shop.recipe)
    record(figures, "the champion's recipe on newer events", report)
    assert report.result == "promoted", report.reason
    assert shop.store.read_current() == report.candidate


def generate_popular_events() -> pl.DataFrame:
    """Generate events by popularity alone, without any other pattern."""
    rng = np.random.default_rng(0)
    odds = 1 / np.arange(1, 101)
    past_events = [
        (f"u{user}", f"i{item}", tiny.FIRST_AT + int(day * tiny.DAY))
        for user in range(80)
        for item, day in zip(
            rng.choice(100, size=20, p=odds / odds.sum()),
            np.sort(rng.uniform(0, 60, 20)),
            strict=True,
        )
    ]
    return tiny.event_log(past_events)
