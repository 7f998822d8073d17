"""The `kairos evaluate` command."""

from pathlib import Path
from typing import Annotated

import torch
import typer

from cli.console import exit_on_error, print_message, print_report
from cli.options import Erased, Events, Recipe, Threads, load_erasures
from cli.publish import find_bundle
from model.store.opening import open_predictor
from training.config import RunConfig
from training.data.sources import read_events
from training.evaluation.report import build_report
from training.run import build_dataset


def evaluate_command(
    events: Events,
    recipe: Recipe,
    bundle: Annotated[Path, typer.Option(help="A bundle, or the output directory of train.")],
    erased: Erased = None,
    threads: Threads = 2,
) -> None:
    """Evaluate a bundle and the reference rankers on the test questions of a recipe."""
    with exit_on_error():
        torch.set_num_threads(threads)
        config = RunConfig.read(recipe)
        predictor = open_predictor(find_bundle(bundle))
        if predictor.bundle.manifest.provenance.get("refitted_after_measuring"):
            print_message(
                "[yellow]this bundle was refitted on all events, including the test's; "
                "its manifest has the metrics that were measured before[/]"
            )
        table = read_events(events, erasures=load_erasures(erased))
        split = config.split.split(build_dataset(config, table, None), config.data.predict)
        report = build_report(
            predictor.bundle.recommender,
            split.reindex(predictor.catalog, predictor.bundle.manifest.recommender.actions),
            config.data,
            max_history=predictor.bundle.manifest.max_history,
        )
        print_report(report)
