"""Data sets of prepared events are those of the files they were prepared from."""

from dataclasses import fields
from hashlib import sha256
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.training.preparation.worlds import NOW, odd_world, prepare_into, write_parts
from training.data import sources
from training.data.dataset import Dataset
from training.data.erasures import Erasures
from training.data.limited_users import drop_excess
from training.data.plausible_times import drop_implausible
from training.data.sources import read_events
from training.preparation.events import PreparedEvents

FILTERS = [
    {},
    {"ignored_actions": ("cancel", "view")},
    {"min_item_events": 40},
    {"min_user_events": 90},
    {"min_item_events": 20, "min_user_events": 60, "ignored_actions": ("like",)},
]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_parts(odd_world(), tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def prepared(source: Path, tmp_path_factory: pytest.TempPathFactory) -> PreparedEvents:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "CHUNK_ROWS", 301)
        return prepare_into(source, tmp_path_factory.mktemp("prepared"))


def assert_equal(found: Dataset, expected: Dataset) -> None:
    for field in fields(Dataset):
        if field.name != "catalog":
            left, right = getattr(found, field.name), getattr(expected, field.name)
            assert type(left) is type(right)
            if isinstance(left, np.ndarray):
                assert left.dtype == right.dtype
            assert np.array_equal(left, right), field.name
    assert found.catalog.item_ids == expected.catalog.item_ids
    assert np.array_equal(found.catalog.popularity, expected.catalog.popularity)
    assert np.array_equal(found.catalog.recent_popularity, expected.catalog.recent_popularity)


@pytest.mark.parametrize("filters", FILTERS)
def test_the_data_set_is_that_of_the_file(
    source: Path, prepared: PreparedEvents, filters: dict[str, object]
) -> None:
    plausible, left_out = drop_implausible(read_events(source), NOW)
    limited, excess = drop_excess(plausible)
    assert left_out.total == 5
    assert excess.events == 50
    selected = prepared.select_plausible(NOW)
    assert (selected.left_out, selected.excess) == (left_out, excess)
    assert_equal(selected.build_dataset(**filters), Dataset.of(limited, **filters))


def test_erased_users_are_left_out_up_to_their_erasure(
    source: Path, prepared: PreparedEvents
) -> None:
    events = read_events(source)
    middle = events["timestamp"].to_physical().median()
    assert isinstance(middle, float)
    users = ("user-1é", "user-3é")
    erasures = Erasures({sha256(user.encode()).hexdigest(): int(middle) for user in users})
    remaining, _ = drop_implausible(erasures.drop_erased(events), NOW)
    limited, _ = drop_excess(remaining)
    selected = prepared.select_plausible(NOW, erasures)
    assert len(limited) < len(events) - 300
    assert_equal(selected.build_dataset(), Dataset.of(limited))


def test_plausible_times_are_not_sorted_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = odd_world()
    plausible, _ = drop_implausible(events, NOW)
    prepared = prepare_into(write_parts(plausible, tmp_path / "source"), tmp_path / "prepared")
    monkeypatch.setattr("training.preparation.events.check_times", None)
    selected = prepared.select_plausible(NOW)
    limited, _ = drop_excess(plausible)
    assert_equal(selected.build_dataset(), Dataset.of(limited))


def test_a_sample_of_all_shards_is_the_file(source: Path, prepared: PreparedEvents) -> None:
    sample = prepared.read_sample(10**9)
    assert sample.drop("value").equals(read_events(source).drop("value"))
    first = prepared.read_sample(1)
    users = set(first["user_id"])
    assert 0 < len(users) < sample["user_id"].n_unique()
    assert first.equals(sample.filter(pl.col("user_id").is_in(users)))
