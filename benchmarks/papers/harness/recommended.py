"""The recommended recipe of a suite: for its events, with its task, filters and split fixed."""

import tomllib
from pathlib import Path

import numpy as np
import polars as pl
from pydantic import ValidationError

from benchmarks.papers.harness.plan import check_data, find_data
from benchmarks.papers.harness.provenance import digest_data
from benchmarks.papers.harness.record import write_text_atomically
from benchmarks.papers.harness.suite import RECOMMENDED, Suite
from model.errors import TrainingError
from training.config import RunConfig
from training.data.sources import read_events
from training.inspection.profile import profile_events
from training.inspection.recipe_text import format_recipe
from training.inspection.recommendation import recommend_recipe
from training.problems import format_with_remedy
from training.run import build_dataset, split_dataset


def format_recommended_recipe(suite: Suite, data: Path) -> str:
    """Format the recipe recommended for a suite as TOML, with a reason for every setting.

    Only the events before the test are read.

    Args:
        data: the folder with the data folders.

    Raises:
        TrainingError: if there is no data, or data or split of the suite's base are invalid.
    """
    base = _build_base(suite)
    split = base.split if "split" in suite.base else None
    whole = read_events(find_data(data, suite.data) / "events.parquet")
    events = _select_before_test(whole, base)
    recommendation = recommend_recipe(profile_events(events, data=base.data), base.data, split)
    return format_recipe(
        recommendation,
        f"Recommended for the events of suite {suite.name} before its test, with its data and "
        f"split; written by kairos bench papers --suite {suite.name} --recommend.",
    )


def _build_base(suite: Suite) -> RunConfig:
    """Build a recipe with the data and split of a suite's base."""
    fixed = {name: suite.base[name] for name in ("data", "split") if name in suite.base}
    try:
        return RunConfig.model_validate(fixed)
    except ValidationError as error:
        raise TrainingError(
            "data and split of a suite are known settings with values that fit, but [base] of "
            f"suites/{suite.name}.toml has others: {format_with_remedy(error)}"
        ) from error


def _select_before_test(events: pl.DataFrame, config: RunConfig) -> pl.DataFrame:
    """Select the events that are known before the test of a recipe."""
    dataset = build_dataset(config, events, None)
    split = split_dataset(config, dataset)
    known = np.flatnonzero(split.is_known_before_test)
    keys = pl.DataFrame(
        {
            "user_id": np.array(dataset.user_ids, dtype=object)[dataset.user_of[known]],
            "item_id": np.array(dataset.catalog.item_ids, dtype=object)[dataset.rows[known] - 1],
            "timestamp": dataset.times[known],
            "action": np.array(dataset.actions, dtype=object)[dataset.action_rows[known] - 1],
        },
        schema=events.select("user_id", "item_id", "timestamp", "action").schema,
    )
    return events.join(keys, on=keys.columns, how="semi", nulls_equal=True)


def recommend_for_suite(suite: Suite, data: Path, *, folder: Path | None) -> Suite:
    """Recommend a recipe for a suite, and write it beside the suite if it has changed.

    Args:
        data: the folder with the data folders.
        folder: of suites/ and recommended/; None writes nothing.

    Returns:
        The suite with this recipe.

    Raises:
        TrainingError: if there is no data; or if the recipe has changed, and the records of the
            suite are of other data.
    """
    recipe = format_recommended_recipe(suite, data)
    if folder is not None:
        file = folder / RECOMMENDED / f"{suite.name}.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_text("utf-8") != recipe:
            source = find_data(data, suite.data)
            for record in sorted((folder / "results" / suite.name).glob("*.json")):
                check_data(record, source, digest_data(source))
            write_text_atomically(file, recipe)
    return suite.model_copy(update={"recommended": tomllib.loads(recipe)})
