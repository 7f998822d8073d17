"""The `kairos evaluate` command."""

from pathlib import Path
from typing import Annotated

import torch
import typer
from pydantic import ValidationError

from cli.console import exit_on_error, print_message, print_report
from cli.options import RECIPE_HELP, Erased, Events, Threads, load_bundle_keys, load_erasures
from cli.publish import find_bundle
from model.bundle.manifest import Manifest
from model.errors import ProvenanceError
from model.store.opening import open_predictor
from training.config import RunConfig
from training.data.sources import read_events
from training.evaluation.counting import tune_counting
from training.evaluation.live_counts import count_live
from training.evaluation.report import build_report
from training.run import build_dataset


def evaluate_command(
    events: Events,
    bundle: Annotated[Path, typer.Option(help="A bundle, or the output directory of train.")],
    recipe: Annotated[
        str | None, typer.Option(help=f"{RECIPE_HELP} By default the recipe of the bundle.")
    ] = None,
    erased: Erased = None,
    threads: Threads = 2,
) -> None:
    """Evaluate a bundle and the reference rankers on the test questions of a recipe."""
    with exit_on_error():
        torch.set_num_threads(threads)
        predictor = open_predictor(find_bundle(bundle), load_bundle_keys())
        if recipe is None:
            config = _read_recipe_of(predictor.bundle.manifest)
        else:
            config = RunConfig.read(recipe)
        if predictor.bundle.manifest.provenance.get("refitted_after_measuring"):
            print_message(
                "[yellow]this bundle was refitted on all events, including the test's; "
                "its manifest has the metrics that were measured before[/]"
            )
        table = read_events(events, erasures=load_erasures(erased))
        split = config.split.split(build_dataset(config, table, None), config.data.predict)
        counting = tune_counting(split, exclude_seen=config.data.exclude_seen)
        recommender = predictor.bundle.recommender
        split = split.reindex(predictor.catalog, predictor.bundle.manifest.recommender.actions)
        report = build_report(
            recommender,
            split,
            config.data,
            max_history=predictor.bundle.manifest.max_history,
            live=count_live(recommender, split.dataset),
            counting=counting,
        )
        print_report(report)


def _read_recipe_of(manifest: Manifest) -> RunConfig:
    """Read the recipe that a bundle was trained with.

    Raises:
        ProvenanceError: if the bundle does not record one that this release can read.
    """
    try:
        return RunConfig.model_validate(manifest.provenance.get("recipe"))
    except ValidationError as error:
        raise ProvenanceError(
            "without --recipe, the bundle must record the recipe it was trained with, but this one "
            "has none that this release can read; pass --recipe"
        ) from error
