"""Erased users, whose events are left out of every copy of old events."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import polars as pl


@final
@dataclass(frozen=True, slots=True)
class Erasures:
    """The erased users, each with the instant of erasure; later events are of a new user.

    Attributes:
        until: epoch microseconds, by the SHA-256 of the user's id.
    """

    until: Mapping[str, int]

    def identify(self) -> str:
        """Return a digest of who was erased when; another erasure changes it."""
        return hashlib.sha256(repr(sorted(self.until.items())).encode()).hexdigest()

    def drop_erased(self, events: pl.DataFrame) -> pl.DataFrame:
        """Leave out the events of erased users up to their erasure."""
        if not self.until or events.is_empty():
            return events
        user_ids = events["user_id"].unique()
        erased = [
            (user_id, until)
            for user_id in user_ids
            if (until := self.until.get(hashlib.sha256(user_id.encode()).hexdigest())) is not None
        ]
        if not erased:
            return events
        schema = {"user_id": pl.String(), "erased_until": pl.Int64()}
        joined = events.join(
            pl.DataFrame(erased, schema, orient="row"),
            on="user_id",
            how="left",
            maintain_order="left",
        )
        happened_after = pl.col("timestamp").to_physical() > pl.col("erased_until")
        return joined.filter(happened_after.fill_null(value=True)).drop("erased_until")
