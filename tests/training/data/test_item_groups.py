import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from model.errors import TrainingError
from tests.tiny import DAY, FIRST_AT, event_log
from tests.training.data.drawn_datasets import datasets
from training.data.dataset import Dataset
from training.data.item_groups import GroupMembership, assign_groups


def all_of(dataset: Dataset) -> NDArray[np.bool_]:
    return np.ones(len(dataset), dtype=np.bool_)


def items_by_group(dataset: Dataset, membership: GroupMembership) -> dict[str, set[str]]:
    """The groups of every item, by name."""
    return {
        item_id: {membership.names[group] for group in np.flatnonzero(membership.values[row])}
        for row, item_id in enumerate(dataset.catalog.item_ids, start=1)
    }


def shelves(**categories: list[str]) -> Dataset:
    """One event of every item, two of "a"."""
    happened = [("u", item_id, FIRST_AT) for item_id in ("a", *categories)]
    items = pl.DataFrame(
        {
            "item_id": list(categories),
            "title": [None] * len(categories),
            "categories": list(categories.values()),
        },
        schema={"item_id": pl.String, "title": pl.String, "categories": pl.List(pl.String)},
    )
    return Dataset.of(event_log(happened), items)


def two_tastes(seed: int = 0) -> Dataset:
    """People who read only even items, and people who read only odd ones."""
    rng = np.random.default_rng(seed)
    happened = [
        (f"u{user}", f"i{2 * rng.integers(8) + user % 2}", FIRST_AT + event * DAY)
        for user in range(30)
        for event in range(10 + 5 * (user % 2))
    ]
    return Dataset.of(event_log(happened))


def test_rare_categories_are_in_the_group_other() -> None:
    dataset = shelves(a=["x"], b=["x", "y"], c=["y"], d=["z"], e=[])
    membership = assign_groups(dataset, all_of(dataset), groups=3, source="categories")
    assert membership.names == ("x", "y", "other")
    assert items_by_group(dataset, membership) == {
        "a": {"x"},
        "b": {"x", "y"},
        "c": {"y"},
        "d": {"other"},
        "e": {"other"},
    }


def test_the_training_events_say_which_categories_are_frequent() -> None:
    dataset = shelves(a=["x"], b=["y"], c=["y"], d=["z"])
    only_a = dataset.rows == dataset.catalog.row("a")
    assert assign_groups(dataset, only_a, groups=2, source="categories").names == ("x", "other")


def test_no_group_is_kept_for_others_where_there_are_none() -> None:
    dataset = shelves(a=["x"], b=["y"])
    assert assign_groups(dataset, all_of(dataset), groups=2, source="categories").names == (
        "x",
        "y",
    )


def test_too_few_categories_are_refused_with_what_would_do() -> None:
    dataset = shelves(a=["x"], b=["y"], c=[])
    with pytest.raises(TrainingError, match=r"has 2; .*set modulation.groups to 3"):
        assign_groups(dataset, all_of(dataset), groups=4, source="categories")


def test_items_read_by_the_same_people_are_one_cluster() -> None:
    dataset = two_tastes()
    membership = assign_groups(dataset, all_of(dataset), groups=2, source="clusters")
    # There are more events of odd items.
    assert items_by_group(dataset, membership) == {
        item_id: {"cluster 1" if int(item_id[1:]) % 2 else "cluster 2"}
        for item_id in dataset.catalog.item_ids
    }


def test_clusters_are_the_same_every_time() -> None:
    dataset = two_tastes()
    first, second = (
        assign_groups(dataset, all_of(dataset), groups=5, source="clusters") for _ in range(2)
    )
    assert np.array_equal(first.values, second.values)


def test_clusters_know_nothing_of_events_outside_training() -> None:
    dataset, other = two_tastes(), two_tastes()
    is_training = dataset.user_of < 20
    other.rows[~is_training] = 1
    found, expected = (
        assign_groups(log, is_training, groups=3, source="clusters") for log in (other, dataset)
    )
    assert np.array_equal(found.values, expected.values)


def test_more_clusters_than_items_to_tell_apart_are_refused() -> None:
    dataset = Dataset.of(event_log([("u", "a", FIRST_AT), ("u", "b", FIRST_AT + 1)]))
    with pytest.raises(TrainingError, match=r"3 clusters need .* lower modulation.groups"):
        assign_groups(dataset, all_of(dataset), groups=3, source="clusters")


@settings(max_examples=30)
@given(dataset=datasets(), seed=st.integers(0, 99))
def test_every_item_is_in_one_cluster_and_padding_in_none(dataset: Dataset, seed: int) -> None:
    is_training = np.random.default_rng(seed).random(len(dataset)) < 0.8
    membership = assign_groups(dataset, is_training, groups=1, source="clusters")
    assert membership.values.dtype == np.float32
    assert membership.values.shape == (len(dataset.catalog) + 1, 1)
    assert (membership.values[1:].sum(axis=1) == 1).all()
    assert not membership.values[0].any()
