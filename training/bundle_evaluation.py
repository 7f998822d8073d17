"""Evaluation of a bundle on events, and the recipe that it was trained with."""

from pydantic import ValidationError

from model.bundle.bundle import Bundle
from model.bundle.manifest import Manifest
from model.errors import ProvenanceError
from training.config import RunConfig
from training.evaluation.counting import tune_counting
from training.evaluation.live_counts import count_live
from training.evaluation.report import Report, build_report
from training.preparation.events import TrainingEvents
from training.run import build_dataset, split_dataset


def evaluate_bundle(bundle: Bundle, config: RunConfig, events: TrainingEvents) -> Report:
    """Measure a bundle and the references on the test questions of a recipe.

    Args:
        config: its split chooses the questions, and its filters the events.
        events: as `training.preparation.events.read_training_events` returns them.

    Raises:
        TrainingError: if the events leave no question.
    """
    whole = build_dataset(config, events, None)
    split = split_dataset(config, whole)
    counting = tune_counting(split, exclude_seen=config.data.exclude_seen)
    actions = bundle.manifest.recommender.actions
    split = split.reindex(whole, config.data.predict, bundle.catalog, actions)
    return build_report(
        bundle.recommender,
        split,
        config.data,
        max_history=bundle.manifest.max_history,
        live=count_live(bundle.recommender, split.dataset),
        counting=counting,
    )


def read_recipe_of(manifest: Manifest) -> RunConfig:
    """Read the recipe that a bundle was trained with.

    Raises:
        ProvenanceError: if the bundle does not record one that this release can read.
    """
    try:
        return RunConfig.model_validate(manifest.provenance.get("recipe"))
    except ValidationError as error:
        raise ProvenanceError(
            "a bundle records the recipe it was trained with, but this one has none that this "
            "release can read; name the recipe"
        ) from error
