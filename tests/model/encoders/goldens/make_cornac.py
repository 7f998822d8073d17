"""Compute the scores of cornac's next-basket models for random histories, into cornac.json.

    python -m venv .venv-cornac
    .venv-cornac/bin/pip install cornac "similaripy<0.3"
    .venv-cornac/bin/python tests/model/encoders/goldens/make_cornac.py

Kairos needs neither package. Settings and data match the papers as far as cornac lets them:

- `TIFUKNN.fit` leaves out the last basket of every user, so users get one more here.
- `TIFUKNN.score` averages the neighbours' vectors over users and items together, which adds one
  number to all scores; the neighbours are cornac's, the mean over users is taken here.
- `UPCF.fit` sums an item's baskets in what it compares users by, where the paper has sets; they are
  marked once here. It looks at 100 similar users and 100 items at most; there are fewer here.
"""

import importlib.metadata
import json
from pathlib import Path

import numpy as np
from cornac.data import BasketDataset
from cornac.models import TIFUKNN, UPCF, GPTop

ITEMS, USERS, QUERIES = 18, 30, 8
SEED = 20

Histories = list[list[list[int]]]

TIFU_SETTINGS = [
    {"neighbours": 5, "basket_decay": 0.9, "group_decay": 0.7, "groups": 3, "own_share": 0.7},
    {"neighbours": 9, "basket_decay": 0.8, "group_decay": 0.6, "groups": 5, "own_share": 0.2},
    {"neighbours": 5, "basket_decay": 0.9, "group_decay": 0.7, "groups": 7, "own_share": 1.0},
]
UPCF_SETTINGS = [
    {"recency": 1, "locality": 1, "asymmetry": 0.25},
    {"recency": 5, "locality": 5, "asymmetry": 0.75},
    {"recency": 0, "locality": 10, "asymmetry": 0.0},
]


def draw_histories(rng: np.random.Generator, count: int) -> Histories:
    """Draw histories of 1 to 14 baskets of 1 to 4 distinct items, numbered from 0."""
    return [
        [
            sorted(rng.choice(ITEMS, size=rng.integers(1, 5), replace=False).tolist())
            for _ in range(rng.integers(1, 15))
        ]
        for _ in range(count)
    ]


def build_dataset(histories: Histories) -> BasketDataset:
    """Lay out histories for cornac, whose item numbers equal ours."""
    events = [
        (user, f"{user}-{number}", item, number)
        for user, baskets in enumerate(histories)
        for number, basket in enumerate(baskets)
        for item in basket
    ]
    items = {item: item for item in range(ITEMS)}
    return BasketDataset.build(events, fmt="UBIT", global_iid_map=items)


def round_scores(scores: list[np.ndarray]) -> list[list[float]]:
    """Round to the digits that single precision has."""
    return [[float(f"{score:.8g}") for score in of_query] for of_query in scores]


def score_tifu_knn(stored: Histories, queries: Histories, **settings: float) -> list[list[float]]:
    """Score all items for every query by cornac's TIFUKNN."""
    model = TIFUKNN(
        n_neighbors=settings["neighbours"],
        within_decay_rate=settings["basket_decay"],
        group_decay_rate=settings["group_decay"],
        n_groups=settings["groups"],
        alpha=settings["own_share"],
    )
    model.fit(build_dataset([[*baskets, [0]] for baskets in stored]))
    scores = []
    for baskets in queries:
        own = model._compute_user_vector(baskets)
        distances, near = model.tree.query(own, k=model.n_neighbors + 1)
        if settings["own_share"] < 1 and np.diff(distances)[-1] < 1e-6:
            raise ValueError("two users are equally near, so the neighbours are not defined")
        mean = model.user_vectors[near[:-1]].mean(axis=0)
        scores.append(model.alpha * own + (1 - model.alpha) * mean)
    return round_scores(scores)


def score_up_cf(
    stored: Histories,
    queries: Histories,
    *,
    recency: int,
    locality: float,
    asymmetry: float,
) -> list[list[float]]:
    """Score all items for every query by cornac's UPCF."""
    model = UPCF(recency=recency, locality=locality, asymmetry=asymmetry)
    model.fit(build_dataset(stored))
    model.user_item_matrix.data[:] = 1
    scores = [model.score(-1, baskets) for baskets in queries]
    return round_scores(scores)


def score_gp_top(stored: Histories, queries: Histories) -> list[list[float]]:
    """Score all items for every query by cornac's GPTop."""
    model = GPTop()
    model.fit(build_dataset(stored))
    scores = [model.score(-1, baskets) for baskets in queries]
    return round_scores(scores)


if __name__ == "__main__":
    rng = np.random.default_rng(SEED)
    stored, queries = draw_histories(rng, USERS), draw_histories(rng, QUERIES)
    goldens = {
        "versions": {
            package: importlib.metadata.version(package)
            for package in ("cornac", "similaripy", "numpy", "scipy")
        },
        "items": ITEMS,
        "stored": stored,
        "queries": queries,
        "tifu_knn": [
            {"settings": settings, "scores": score_tifu_knn(stored, queries, **settings)}
            for settings in TIFU_SETTINGS
        ],
        "up_cf": [
            {"settings": settings, "scores": score_up_cf(stored, queries, **settings)}
            for settings in UPCF_SETTINGS
        ],
        "gp_top": score_gp_top(stored, queries),
    }
    Path(__file__).with_name("cornac.json").write_text(json.dumps(goldens) + "\n")
