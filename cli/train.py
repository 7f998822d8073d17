"""The `kairos train` command."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import polars as pl
import torch
import typer
from rich.markup import escape

from cli.console import console, exit_on_error, print_message, print_report
from cli.inspect import describe_source
from cli.options import (
    Device,
    Erased,
    Events,
    Items,
    OptionalRecipe,
    Threads,
    load_bundle_keys,
    load_erasures,
)
from model.bundle.signature import NO_KEYS, BundleKeys
from model.clock import now
from model.errors import KairosError
from training.config import RunConfig
from training.data.erasures import Erasures
from training.data.limited_users import drop_excess
from training.data.plausible_times import drop_implausible
from training.data.sources import format_location, is_database, is_file_url, read_events, read_items
from training.device import AUTO, parse_device
from training.distributed import ALONE, ProcessGroup, join_group
from training.inspection.profile import profile_events
from training.inspection.recipe_text import format_recipe
from training.inspection.recommendation import recommend_recipe
from training.preparation.events import PreparedEvents, is_prepared, read_training_events
from training.progress import TrainingProgress
from training.ray_processes import run_on_ray
from training.run import Outcome, train

INSPECTED_EVENTS = 5_000_000
"""Most prepared events that are inspected for a recommended recipe."""


def train_command(
    events: Events,
    output: Annotated[Path, typer.Option(help="Directory for checkpoint, report and bundle.")],
    recipe: OptionalRecipe = None,
    items: Items = None,
    erased: Erased = None,
    seed: Annotated[int | None, typer.Option(help="Replaces the recipe's seed.")] = None,
    threads: Threads = 2,
    device: Device = "cpu",
    engine: Annotated[
        Literal["local", "ray"],
        typer.Option(help="ray trains by processes of Ray: of RAY_ADDRESS, or of this machine."),
    ] = "local",
    workers: Annotated[int, typer.Option(help="Processes of Ray that train together.", min=1)] = 1,
) -> None:
    """Fit a recipe on events, evaluate it, and write a bundle.

    Without a recipe, the events are inspected and the recommended one is used; it is written into
    the output directory as recipe.toml.

    Run the same command again to resume an interrupted run.

    Several processes train one model if torchrun starts the command; docs/operations.md has how.
    """
    with exit_on_error(), join_group() as group:
        # Of several processes one prints.
        console.quiet = not group.is_leader
        erasures = load_erasures(erased)
        if recipe is None:
            config = group.run_on_leader(lambda: _recommend_config(events, erasures, output))
        else:
            config = RunConfig.read(recipe)
        if seed is not None:
            config = config.replace_fit({"seed": seed})
        keys = load_bundle_keys()

        if engine == "local" and workers > 1:
            raise KairosError(
                "without Ray, torchrun starts the processes that train together, but got --workers "
                f"{workers}; add --engine ray, or run torchrun --nproc-per-node {workers} -m "
                "cli.main train with the other options"
            )
        work = _Training(config, events, items, output, threads, erasures, device, keys)
        if engine == "local":
            outcome = work(group)
        else:
            outcome = run_on_ray(
                work.locate(),
                output.resolve(),
                processes=workers,
                uses_gpus=None if device == AUTO else device.startswith("cuda"),
                threads=threads,
            )
        if not group.is_leader:
            return
        print_report(outcome.report)
        print_message(
            f"best epoch {outcome.best_epoch}, {outcome.seconds:.0f} s; publish the bundle below "
            "with kairos publish"
        )
        typer.echo(outcome.bundle)


@dataclass(frozen=True)
class _Training:
    """What every process of a training does; it can be sent to other machines."""

    config: RunConfig
    events: str
    items: str | None
    output: Path
    threads: int
    erasures: Erasures | None
    device: str
    keys: BundleKeys

    def locate(self) -> "_Training":
        """Return the same with absolute paths, for processes that run in another directory."""
        return replace(
            self,
            events=_locate(self.events),
            items=None if self.items is None else _locate(self.items),
            output=self.output.resolve(),
        )

    def __call__(self, group: ProcessGroup) -> Outcome:
        console.quiet = not group.is_leader
        return run_training(
            self.config,
            self.events,
            self.items,
            self.output,
            threads=self.threads,
            erasures=self.erasures,
            device=parse_device(self.device, local_rank=group.local_rank),
            group=group,
            keys=self.keys,
        )


def _locate(location: str) -> str:
    if is_database(location):
        relative = location.removeprefix("sqlite:///")
        return location if relative == location else f"sqlite:///{Path(relative).absolute()}"
    return location if is_file_url(location) else str(Path(location).absolute())


def _recommend_config(events: str, erasures: Erasures | None, output: Path) -> RunConfig:
    """Inspect the events, and write the recommended recipe into the output directory."""
    profile = profile_events(_read_to_inspect(events, erasures))
    recommendation = recommend_recipe(profile)
    file = output / "recipe.toml"
    output.mkdir(parents=True, exist_ok=True)
    source = format_location(events)
    file.write_text(format_recipe(recommendation, describe_source(profile, source)), "utf-8")
    predict = recommendation.config.data.predict
    print_message(f"no recipe given: using the recommended one ({predict}), {escape(str(file))}")
    if profile.findings:
        titles = ", ".join(finding.title for finding in profile.findings)
        print_message(f"to check: {titles}; kairos inspect describes them")
    return recommendation.config


def _read_to_inspect(events: str, erasures: Erasures | None) -> pl.DataFrame:
    """Read the events; of prepared ones, all events of so many users as fit into memory."""
    if not is_prepared(events):
        return read_events(events, erasures=erasures)
    prepared = PreparedEvents.open(events)
    sample = prepared.read_sample(INSPECTED_EVENTS)
    if len(sample) < prepared.manifest.events:
        print_message(f"inspecting {len(sample):,} of {prepared.manifest.events:,} events")
    return sample if erasures is None else erasures.drop_erased(sample)


def run_training(
    config: RunConfig,
    events: str,
    items: str | None,
    output: Path,
    *,
    threads: int,
    erasures: Erasures | None = None,
    device: torch.device | None = None,
    group: ProcessGroup = ALONE,
    keys: BundleKeys = NO_KEYS,
) -> Outcome:
    """Read the data and train with a progress bar."""
    torch.set_num_threads(threads)
    item_table = None if items is None else read_items(items)
    read = read_training_events(events, now(), erasures)
    if isinstance(read, pl.DataFrame):
        plausible, left_out = drop_implausible(read, now())
        _, excess = drop_excess(plausible)
    else:
        left_out, excess = read.left_out, read.excess
    if left_out.total:
        print_message(f"[yellow]left out[/] {left_out.describe()}; kairos inspect describes them")
    if excess.events:
        print_message(f"[yellow]left out[/] {excess.describe()}; kairos inspect names the users")
    with TrainingProgress(config.fit.monitor, console) as progress:
        return train(
            config,
            read,
            item_table,
            output,
            progress=progress,
            device=device,
            keys=keys,
            group=group,
        )
