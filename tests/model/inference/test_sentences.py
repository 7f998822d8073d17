"""The sentence of an item says what was counted, and nothing else."""

import pytest

from model.history import Event
from model.inference.answers import (
    Contribution,
    ContributionKind,
    ItemFacts,
    Reason,
    Reasons,
    ScoredItem,
)
from model.inference.sentences import choose_words, write_sentence

SHOP = choose_words([Event("i1", 0, "purchase"), Event("i1", 1, "cancel")])
NEUTRAL = choose_words([Event("i1", 0, "purchase"), Event("i1", 1, "view")])


def write(
    contributions: dict[ContributionKind, float],
    *,
    action: str | None = "purchase",
    times: int = 0,
    last_days: int | None = None,
    counted: tuple[int | None, int | None] = (None, None),
    followed: str | None = None,
    reason: Reason = "model",
    score: float = 0.0,
    is_shop: bool = True,
) -> str:
    facts = ItemFacts(
        action=action if times else None,
        times=times,
        last_days=last_days,
        recent_events=counted[0],
        earlier_events=counted[1],
        trained_events=1_234,
        follows_row=None,
    )
    ordered = sorted(contributions.items(), key=lambda one: (one[0] != "average", -one[1]))
    reasons = Reasons(tuple(Contribution(kind, value) for kind, value in ordered), facts)
    item = ScoredItem(1, "i1", score, reason)
    return write_sentence(item, reasons, SHOP if is_shop else NEUTRAL, followed)


OWN: dict[ContributionKind, float] = {"average": -9, "repeats": 8, "state": 1}


@pytest.mark.parametrize(
    ("action", "times", "last_days", "expected"),
    [
        ("purchase", 4, 37, "Bought 4 times, last 37 days ago."),
        ("purchase", 1, 1, "Bought once, 1 day ago."),
        ("order", 2, 0, "Bought 2 times, last less than a day ago."),
        ("view", 1, 0, "Viewed once, less than a day ago."),
        ("add_to_cart", 3, 2, "Put in the basket 3 times, last 2 days ago."),
        ("view_order_details", 1, 2, "In this customer's history once, 2 days ago."),
        ("to_read", 1, 2, "In this customer's history once, 2 days ago."),
        ("item_page_view", 1, 2, "Viewed once, 2 days ago."),
        ("ProductViewed", 2, 2, "Viewed 2 times, last 2 days ago."),
        ("abandoned_purchase", 3, 2, "In this customer's history 3 times, last 2 days ago."),
        ("buy_later", 1, 2, "In this customer's history once, 2 days ago."),
        ("never_read", 1, 2, "In this customer's history once, 2 days ago."),
        ("display", 3, 2, "In this customer's history 3 times, last 2 days ago."),
        (None, 1_000, 2, "In this customer's history 1,000 times, last 2 days ago."),
    ],
)
def test_own_events_are_named_by_their_action(
    action: str | None, times: int, last_days: int, expected: str
) -> None:
    assert write(OWN, action=action, times=times, last_days=last_days) == expected


@pytest.mark.parametrize(
    ("counted", "trend"),
    [
        ((80, 40), "; chosen by all customers twice as often as in the four weeks before"),
        ((84, 40), "; chosen by all customers 2.1 times as often as in the four weeks before"),
        ((10, 40), "; chosen by all customers 75% less often than in the four weeks before"),
        ((4, 2), ""),
        ((44, 40), ""),
        ((10_000, 9_000), ""),
        ((40, 0), ""),
        ((None, None), ""),
    ],
)
def test_a_trend_is_named_if_it_is_large_and_no_chance(
    counted: tuple[int | None, int | None], trend: str
) -> None:
    written = write(OWN, times=4, last_days=37, counted=counted)
    assert written == f"Bought 4 times, last 37 days ago{trend}."


@pytest.mark.parametrize(
    ("contributions", "expected"),
    [
        ({"state": 2, "bias": 1}, "Fits what this customer bought most recently."),
        ({"state": 1, "bias": 2}, "Chosen more often than most items."),
        ({"popularity": 2, "state": 1}, "Popular with all customers in the latest data."),
        ({"calendar": 2, "state": 1}, "Fits the time of the day, the week or the year."),
        ({"repeats": 2, "state": 1}, "In this customer's history, but taken back since."),
        (
            {"followers": 2, "state": 1},
            "Among what customers choose after Tea pot.",
        ),
        ({"neighbours": 2, "state": 1}, "Chosen by similar customers."),
        (
            {"state": -1, "bias": -2},
            "Ranked by the model, but nothing in particular speaks for it.",
        ),
    ],
)
def test_a_new_item_is_described_by_its_largest_contribution(
    contributions: dict[ContributionKind, float], expected: str
) -> None:
    assert write({"average": -9.0, **contributions}, followed="Tea pot") == expected


def test_words_of_a_shop_need_a_history_of_purchases() -> None:
    state: dict[ContributionKind, float] = {"average": 0, "state": 1}
    assert write(state, is_shop=False) == "Fits what this user chose most recently."
    assert choose_words([]) == choose_words([Event("i1", 0)]) == NEUTRAL


def test_popularity_that_reaches_the_query_time_is_of_that_time() -> None:
    popular: dict[ContributionKind, float] = {"average": -9, "popularity": 2}
    assert write(popular, counted=(3, 3)) == "Popular with all customers at this time."


def test_a_model_without_an_average_only_ranks() -> None:
    expected = "Ranked by how well it fits what this customer bought most recently."
    assert write({"state": -3, "bias": 1}) == expected


def test_what_it_followed_is_named_beside_own_events_if_large() -> None:
    def write_with(followers: float) -> str:
        contributions: dict[ContributionKind, float] = {"average": 0, "repeats": 4}
        contributions["followers"] = followers
        return write(contributions, times=1, last_days=3, followed="Tea pot")

    assert write_with(0.1) == "Bought once, 3 days ago."
    assert write_with(2.0) == (
        "Bought once, 3 days ago; among what customers choose after Tea pot."
    )


def test_similar_users_are_named_beside_own_events_if_large() -> None:
    def write_with(neighbours: float) -> str:
        contributions: dict[ContributionKind, float] = {"average": 0, "repeats": 4}
        contributions["neighbours"] = neighbours
        return write(contributions, times=1, last_days=3, counted=(80, 40))

    trend = "; chosen by all customers twice as often as in the four weeks before."
    assert write_with(0.1) == f"Bought once, 3 days ago{trend}"
    assert write_with(2.0) == f"Bought once, 3 days ago; chosen by similar customers{trend}"


def test_a_popular_item_has_its_count() -> None:
    popular: dict[ContributionKind, float] = {"popularity": 12}
    assert write(popular, reason="popular", score=12.0) == (
        "Chosen 12 times by all customers in the last week of the data."
    )
    assert write({"popularity": 0}, reason="popular", score=0.0) == (
        "Chosen 1,234 times by all customers in the training data."
    )
