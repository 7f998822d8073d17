"""The attention behind a ranking, as values."""

from model.batch import KnownHistory
from model.bundle.bundle import Bundle
from model.history import Query
from model.inference.answers import AttentionOverHistory, OcclusionUnit
from model.inference.occlusion import measure_occlusion
from model.inference.ranking import Ranking
from model.inference.steps import Steps


def explain_ranking(
    bundle: Bundle,
    query: Query,
    history: KnownHistory,
    ranking: Ranking,
    *,
    occlude: OcclusionUnit | None,
    occluded_row: int | None,
) -> Steps[AttentionOverHistory | None]:
    """Present the attention of a ranking, in steps; None where the model does not attend.

    Args:
        occlude: what to leave out in turn, to measure occlusion as well; None for nothing.
        occluded_row: of which row; None for the best of the ranking.
    """
    if ranking.attention is None:
        return None
    if occluded_row is None and len(ranking.rows):
        occluded_row = int(ranking.rows[0])
    weights = ranking.attention.mean(0)
    intensities = None
    if ranking.intensity is not None:
        groups = bundle.manifest.recommender.groups
        intensities = tuple(zip(groups, ranking.intensity.tolist(), strict=True))
    occlusion = None
    if occlude is not None and occluded_row is not None:
        occlusion = yield from measure_occlusion(
            bundle, query, history, weights.numpy(), occluded_row, occlude
        )
    return AttentionOverHistory(
        events=history.events,
        rows=tuple(history.rows.tolist()),
        weights=tuple(weights.tolist()),
        heads=tuple(tuple(head) for head in ranking.attention.tolist()),
        normalised=bundle.recommender.encoder.is_normalised,
        of_item_id=None if ranking.of_row is None else bundle.catalog.item_id(ranking.of_row),
        intensities=intensities,
        occlusion=occlusion,
    )
