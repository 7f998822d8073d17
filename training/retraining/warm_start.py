"""Warm start: begin from the weights of a trained model."""

from model.catalog import Catalog
from model.errors import TrainingError
from model.inference.predictor import Predictor
from model.recommender import Recommender, RecommenderConfig
from training.fitting.weights import copy_weights
from training.run import InitialiseWeights


def copy_champion_weights(champion: Predictor) -> InitialiseWeights:
    """Build the function that replaces fresh weights by a champion's, items matched by id.

    Items that the champion does not hold keep their fresh weights, and buffers such as the groups
    of items stay as they are.
    """

    def initialise(
        described: RecommenderConfig, recommender: Recommender, catalog: Catalog
    ) -> None:
        """Copy the weights.

        Raises:
            TrainingError: if the champion is built from other settings.
        """
        _require_same_settings(champion, described)
        copy_weights(champion.bundle.recommender, champion.catalog, recommender, catalog)

    return initialise


def _require_same_settings(champion: Predictor, described: RecommenderConfig) -> None:
    here, there = (
        _flatten(config.model_dump(mode="json", exclude={"items", "groups"}))
        for config in (described, champion.bundle.manifest.recommender)
    )
    differing = [name for name in here | there if here.get(name) != there.get(name)]
    if differing:
        differences = ", ".join(
            f"{name} is {there.get(name)!r} in the champion and {here.get(name)!r} in the recipe"
            for name in differing
        )
        raise TrainingError(
            f"a warm start requires a champion of the same architecture, but {champion.version} "
            f"differs: {differences}; run without --warm-start, or with the champion's recipe"
        )


def _flatten(nested: dict[str, object], prefix: str = "") -> dict[str, object]:
    """Flatten settings to a table by their dotted names."""
    flat: dict[str, object] = {}
    for name, value in nested.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat
