"""The attention profile of a bundle: mean attention on the last event against the time since."""

from io import BytesIO
from pathlib import Path

import polars as pl

from model.errors import BundleError

SCHEMA = {
    "view": pl.Enum(["observed", "predicted"]),
    "by": pl.Enum(["all", "action", "category"]),
    "name": pl.String,
    "interval_days": pl.Float64,
    "mean": pl.Float64,
    "sd": pl.Float64,
    "count": pl.Int64,
}
"""One line per point of a curve.

view: "observed" where the query time of each history is that of its next event, "predicted" where
    each history is queried at every interval.
by, name: the histories of the curve: all, or those whose last event has this action or category.
interval_days: from the last event to the query time; of an observed point, the geometric mean over
    its histories.
mean, sd, count: of the weight on the last event (mean over heads) over the histories.
"""


def write_profile(profile: pl.DataFrame, file: Path) -> None:
    """Write curves with the columns of `SCHEMA`."""
    profile.cast(SCHEMA).write_parquet(file)  # type: ignore[arg-type]


def read_profile(content: bytes) -> pl.DataFrame:
    """Read curves from a file written by `write_profile`.

    Raises:
        BundleError: if the file does not hold such curves.
    """
    try:
        return pl.read_parquet(BytesIO(content)).select(SCHEMA.keys()).cast(SCHEMA)  # type: ignore[arg-type]
    except (pl.exceptions.PolarsError, OSError) as error:
        raise BundleError(
            f"an attention profile must hold the columns {', '.join(SCHEMA)}, but "
            f"attention_profile.parquet does not ({str(error).splitlines()[0]}); publish again"
        ) from error
