"""Erased users are left out of every copy of their events."""

import hashlib
from pathlib import Path

import polars as pl
import pytest

from training.data.columns import EVENT_SCHEMA
from training.data.erasures import Erasures
from training.data.sources import read_events

ERASED_AT = 1_000_000


def erasures(**until: int) -> Erasures:
    return Erasures(
        {hashlib.sha256(user_id.encode()).hexdigest(): at for user_id, at in until.items()}
    )


def events(*rows: tuple[str, int]) -> pl.DataFrame:
    """Events of users at instants, each of an item named after its index."""
    return pl.DataFrame(
        [(user_id, f"i{index}", at, "view", None) for index, (user_id, at) in enumerate(rows)],
        EVENT_SCHEMA,
        orient="row",
    )


def left(found: pl.DataFrame) -> list[str]:
    return found["item_id"].to_list()


def test_events_up_to_the_erasure_are_dropped_later_ones_kept() -> None:
    happened = events(("ü", ERASED_AT), ("v", 0), ("ü", ERASED_AT + 1), ("ü", 0), ("v", ERASED_AT))
    kept = erasures(ü=ERASED_AT).drop_erased(happened)
    assert left(kept) == ["i1", "i2", "i4"]
    assert kept.schema == EVENT_SCHEMA


@pytest.mark.parametrize("erased", [Erasures({}), erasures(other=ERASED_AT)])
def test_without_an_erased_user_nothing_changes(erased: Erasures) -> None:
    happened = events(("u", 0), ("v", 1))
    assert erased.drop_erased(happened).equals(happened)
    assert erased.drop_erased(happened.clear()).is_empty()


def test_a_file_is_read_without_the_erased_users_it_is_given(tmp_path: Path) -> None:
    file = tmp_path / "events.parquet"
    events(("u", 0), ("v", 0), ("u", 2 * ERASED_AT)).write_parquet(file)
    assert left(read_events(file)) == ["i0", "i1", "i2"]
    assert left(read_events(file, erasures=erasures(u=ERASED_AT))) == ["i1", "i2"]
    assert left(read_events(file, ERASED_AT, erasures=erasures(u=ERASED_AT))) == ["i1"]
