"""The cards with a menu "Take away": texts of their pictures, and the rows of their files."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.browser import shop
from tests.browser.items_view import POPULAR
from tests.browser.take_away_rows import (
    expect_challenger,
    expect_changes,
    expect_compared,
    expect_comparison,
    expect_curves,
    expect_epochs,
    expect_intensities,
    expect_metrics,
    expect_popularity,
    expect_psi,
    expect_recipients,
    expect_rhythms,
    expect_roles,
    expect_versions,
    expect_weights,
    expect_windows,
    find_metrics,
    join_categories,
    pick,
)
from tests.browser.take_away_view import Row


@dataclass(frozen=True)
class Card:
    """A card with a menu.

    Attributes:
        labels: texts that stand in its picture, beside its title.
        expect: the rows of its CSV file, from the responses to its requests.
        is_ordered: whether they are in that order; else only as a set.
    """

    selector: str
    title: str
    labels: tuple[str, ...]
    expect: Callable[[list[Any]], list[Row]]
    is_ordered: bool = True


RUN = (
    *("run_id", "result", "reason", "started_at", "finished_at"),
    *("recipe", "champion", "candidate", "questions"),
)

PAGES: dict[str, tuple[Card, ...]] = {
    "index.html": (
        Card(
            "#service",
            "Is it healthy?",
            ("part", "database"),
            lambda answers: [{"part": part, "state": state} for part, state in answers[0].items()],
        ),
        Card(
            "#serving",
            "What serves, and how good is it?",
            ("ndcg@10", "Popular, all time"),
            lambda answers: find_metrics(answers[1]["manifest"]["metrics"], "ndcg@10"),
        ),
        Card(
            "#changing",
            "Whose list changes most with time?",
            ("user_id", "events_between"),
            lambda answers: answers[0]["users"],
        ),
        Card(
            "#challenger",
            "Is the challenger better?",
            ("difference", "model, ignoring elapsed time"),
            expect_challenger,
        ),
        Card("#latest", "What happened lately?", ("actor", "reason"), expect_changes),
    ),
    "items.html": (
        Card(
            "#popular",
            "Most popular items",
            ("rank", "sku-0001"),
            lambda answers: [
                {"rank": index + 1}
                | join_categories(pick(item, "item_id", "title", "categories", "events"))
                for index, item in enumerate(answers[0]["items"])
            ],
        ),
        Card(
            "#map-card",
            "Map of the items",
            ("other categories", "Bags"),
            lambda answers: [
                join_categories(pick(item, "item_id", "title", "categories", "events", "x", "y"))
                for item in answers[0]["items"]
            ],
        ),
    ),
    f"items.html#item={POPULAR}&items=200": (
        Card(
            "#item",
            "Similar items: ",
            ("cosine", f"Item {POPULAR}."),
            lambda answers: [
                join_categories(pick(item, "rank", "item_id", "title", "categories"))
                | {"cosine": item["score"]}
                for item in answers[0]["items"]
            ],
        ),
        Card("#popularity", "Events per week: ", ("purchase", "events"), expect_popularity),
        Card(
            "#recipients",
            "Who would be recommended: ",
            ("query_time", "user_id"),
            expect_recipients,
        ),
    ),
    "models.html": (
        Card("#serving-card", "Active versions", ("current", "rollback"), expect_roles),
        Card("#versions-card", "Versions", ("trained_at", "questions"), expect_versions),
        Card(
            "#metrics-figure", "Test metrics", ("Ignoring elapsed time", "ndcg@10"), expect_metrics
        ),
        Card("#training-figure", "Training curves", ("loss", "epoch"), expect_epochs),
        Card("#windows-figure", "Data windows", ("when (UTC)",), expect_windows),
        Card("#comparison-card", "Champion against challenger", ("own test",), expect_comparison),
        Card(
            "#clicks-card",
            "Clicks by version",
            ("share of recommendations clicked",),
            lambda answers: [{"version": one["version"]} | one["clicks"] for one in answers],
        ),
        Card(
            "#runs-card",
            "Retraining runs",
            ("candidate", "promoted"),
            lambda answers: [pick(run, *RUN) for run in answers[0]["runs"]],
        ),
        Card("#trail-card", "Audit trail", ("previous_version", "retrain"), expect_changes),
    ),
    "population.html": (
        Card(
            "#observed",
            "Attention on the last event: observed at the next event",
            ("all histories", "weight"),
            expect_curves("observed"),
        ),
        Card(
            "#predicted",
            "Attention on the last event: predicted at later times",
            ("all histories", "weight"),
            expect_curves("predicted"),
        ),
        Card(
            "#examples",
            "Example customers",
            ("user_id", "last_event_at"),
            lambda answers: answers[0]["users"],
        ),
    ),
    "kernels.html": (
        Card("#first-kernel .figures > :first-child", "psi, by interval", ("psi",), expect_psi),
        Card(
            "#first-kernel .figures > :last-child",
            "Rhythms, by period",
            ("share of all power", "before training"),
            expect_rhythms,
        ),
    ),
    "kernels.html#newest": (
        Card(
            "#intensities",
            "Intensity of each group of items for ",
            ("intensity per day", "events"),
            expect_intensities,
        ),
    ),
    f"what_if.html#user={shop.CUSTOMER}": (
        Card("#items-card", "Top 10 before and after", ("rank_before",), expect_compared),
        Card(
            "#scores-card",
            "Scores before and after",
            ("before", "after", "score"),
            lambda answers: [
                pick(row, "item_id", "title", "score_before", "score_after", "score_difference")
                for row in expect_compared(answers)
            ],
        ),
        Card(
            "#weights-card",
            "Attention weights before and after",
            ("before", "after", "weight"),
            expect_weights,
            is_ordered=False,
        ),
    ),
}
