"""A published model in memory: the recommender with everything that serving needs beside it."""

from dataclasses import dataclass
from functools import cached_property
from typing import final

import polars as pl

from model.bundle.index import ItemIndex
from model.bundle.manifest import Manifest
from model.catalog import Catalog
from model.recommender import Recommender


@final
@dataclass(frozen=True, eq=False)
class Bundle:
    """A trained recommender with its catalogue, index and manifest.

    Safe to share between threads: nothing changes after construction.

    Attributes:
        version: the name of its directory.
        recommender: on the CPU, in evaluation mode, without gradients.
        index: the item vectors of `recommender`.
        attention_profile: the curves described in `model.bundle.attention_profile`; None where
            the model does not attend, or was published without them.
    """

    version: str
    manifest: Manifest
    catalog: Catalog
    recommender: Recommender
    index: ItemIndex
    attention_profile: pl.DataFrame | None = None

    @cached_property
    def action_rows(self) -> dict[str, int]:
        """The row of each known action in the action table, counted from 1."""
        return {name: row for row, name in enumerate(self.manifest.recommender.actions, start=1)}
