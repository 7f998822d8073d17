"""A request's filters as a bundle's constraints."""

from app.recommendations.schemas import RecommendationRequest
from app.serving.item_overlay import ItemOverlay
from model.inference.answers import Constraints
from model.inference.predictor import Predictor


def constraints_of(
    asked: RecommendationRequest, bundle: Predictor, shelf: ItemOverlay, query_time: int
) -> Constraints:
    """Which items of a bundle's catalogue may be answered at an instant (epoch microseconds)."""
    view = shelf.view(bundle.version, bundle.catalog)
    return Constraints(
        n=asked.n,
        exclude_seen=asked.exclude_seen,
        exclude=frozenset(asked.exclude_item_ids),
        include=frozenset(asked.include_item_ids) if asked.include_item_ids else None,
        strict=asked.strict,
        diversity=asked.diversity,
        allowed=view.allowed(
            query_time,
            any_categories=asked.categories.any,
            no_categories=asked.categories.none,
            available_only=asked.available_only,
        ),
    )
