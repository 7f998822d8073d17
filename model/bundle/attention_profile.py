"""How attention on the last event fades, over a population: the curves a bundle brings along."""

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

view: "observed" where histories were asked about when their next event really came, "predicted"
    where each was asked about every interval.
by, name: whose curve: of all histories, or of those whose last event had this action or category.
interval_days: from the last event to the query time; of an observed point, the geometric mean of
    those of its histories.
mean, sd, count: of the weight on the last event, mean over heads, over so many histories.
"""


def write_profile(profile: pl.DataFrame, file: Path) -> None:
    """Write the curves; their columns must be those of `SCHEMA`."""
    profile.cast(SCHEMA).write_parquet(file)  # type: ignore[arg-type]


def read_profile(file: Path) -> pl.DataFrame:
    """Read curves written by `write_profile`.

    Raises:
        BundleError: if the file does not hold them.
    """
    try:
        return pl.read_parquet(file).select(SCHEMA.keys()).cast(SCHEMA)  # type: ignore[arg-type]
    except (pl.exceptions.PolarsError, OSError) as error:
        raise BundleError(
            f"an attention profile must hold the columns {', '.join(SCHEMA)}, but {file.name} "
            f"does not ({str(error).splitlines()[0]}); publish again"
        ) from error
