"""The `kairos evaluate` command."""

from pathlib import Path
from typing import Annotated

import torch
import typer

from cli.console import exit_on_error, print_message, print_report
from cli.options import RECIPE_HELP, Erased, Events, Threads, load_bundle_keys, load_erasures
from model.bundle.reading import find_bundle
from model.clock import now
from model.store.opening import open_predictor
from training.bundle_evaluation import evaluate_bundle, read_recipe_of
from training.config import RunConfig
from training.preparation.events import read_training_events


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
            config = read_recipe_of(predictor.bundle.manifest)
        else:
            config = RunConfig.read(recipe)
        if predictor.bundle.manifest.provenance.get("refitted_after_measuring"):
            print_message(
                "[yellow]this bundle was refitted on all events, including the test's; "
                "its manifest has the metrics that were measured before[/]"
            )
        table = read_training_events(events, now(), load_erasures(erased))
        print_report(evaluate_bundle(predictor.bundle, config, table))
