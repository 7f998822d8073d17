"""Why each item is in a recommendation: contributions that add up to its score, and facts."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from model.bundle.bundle import Bundle
from model.history import Query
from model.inference.answers import Contribution, Reasons, ScoredItem
from model.inference.attribution import attribute_scores
from model.inference.facts import find_facts
from model.inference.query import PreparedQuery
from model.inference.ranking import Ranking
from model.inference.steps import Steps
from model.interfaces import EncoderOutput


def add_reasons(
    bundle: Bundle,
    query: Query,
    prepared: PreparedQuery,
    encoded: EncoderOutput | None,
    ranking: Ranking | None,
    items: Sequence[ScoredItem],
) -> Steps[tuple[ScoredItem, ...]]:
    """Add its reasons to each item of a recommendation, in steps.

    The score of an item that popularity filled in is a count of events, its only contribution.

    Args:
        encoded: the history; None where it has no known event, as `ranking` is then.
        items: those of the ranking first.
    """
    contributions: list[tuple[Contribution, ...]] = []
    if prepared.batch is not None and encoded is not None and ranking is not None:
        contributions = attribute_scores(
            bundle.recommender,
            bundle.mean_item_vector,
            prepared.batch,
            encoded,
            ranking,
            prepared.history.events,
        )
        yield
    filled = items[len(contributions) :]
    contributions += [(Contribution("popularity", item.score),) for item in filled]
    rows = np.array([item.row for item in items], dtype=np.int64)
    facts = find_facts(bundle, query, prepared.history.events, rows, contributions)
    return tuple(
        replace(item, reasons=Reasons(of_item, about))
        for item, of_item, about in zip(items, contributions, facts, strict=True)
    )
