"""Beginning from the weights of a model that has learned already."""

import torch

from model.catalog import Catalog
from model.errors import TrainingError
from model.inference.predictor import Predictor
from model.recommender import Recommender, RecommenderConfig
from training.run import Prepare

_OF_ITEMS = ("items.weight", "item_bias")
"""Weights with one line per catalogue row; encoders own none."""


def beginning_from(champion: Predictor) -> Prepare:
    """Sets fresh weights to those of a champion: each item's by its id, all others as they are.

    Items that the champion does not know keep their fresh weights. What is not learned by descent,
    such as the groups of items, stays as the trainer told it.
    """

    def prepare(described: RecommenderConfig, recommender: Recommender, catalog: Catalog) -> None:
        """Take the weights over.

        Raises:
            TrainingError: if the champion is not made of the same parts.
        """
        _require_alike(champion, described)
        learned = champion.bundle.recommender.state_dict()
        rows = torch.tensor([0, *(champion.catalog.find(known) or 0 for known in catalog.item_ids)])
        is_known = rows > 0
        with torch.no_grad():
            for name, weight in recommender.named_parameters():
                if name in _OF_ITEMS:
                    weight[is_known] = learned[name][rows[is_known]]
                else:
                    weight.copy_(learned[name])

    return prepare


def _require_alike(champion: Predictor, described: RecommenderConfig) -> None:
    here, there = (
        _flat(config.model_dump(mode="json", exclude={"items", "groups"}))
        for config in (described, champion.bundle.manifest.recommender)
    )
    differing = [name for name in here | there if here.get(name) != there.get(name)]
    if differing:
        told = ", ".join(
            f"{name} is {there.get(name)!r} there and {here.get(name)!r} here" for name in differing
        )
        raise TrainingError(
            f"a warm start needs a champion made of the same parts, but {champion.version} is "
            f"not: {told}; run without --warm-start, or with the champion's recipe"
        )


def _flat(nested: dict[str, object], prefix: str = "") -> dict[str, object]:
    """Settings by their dotted names."""
    found: dict[str, object] = {}
    for name, value in nested.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found
