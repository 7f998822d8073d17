"""Fixtures: a tiny world as frames, and a model fitted on it."""

import polars as pl
import pytest

import kairos
from tests import tiny
from tests.training.recipes import RUN


@pytest.fixture(scope="session")
def events() -> pl.DataFrame:
    return tiny.gap_world(users=30, length=8)


@pytest.fixture(scope="session")
def items() -> pl.DataFrame:
    titles = [f"Title of {item_id}" for item_id in tiny.ITEM_IDS]
    return pl.DataFrame({"item_id": tiny.ITEM_IDS, "title": titles})


@pytest.fixture(scope="session")
def model(events: pl.DataFrame, items: pl.DataFrame) -> kairos.Model:
    return kairos.fit(events, items, recipe=RUN, quiet=True)
