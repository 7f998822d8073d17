"""Rankings: given items in the order of a model."""

from app.context import AppContext
from app.histories.service import read_instant_query, select_predictor
from app.http.types import format_instant
from app.rankings.schemas import RankedItem, RankingAnswer, RankingRequest
from app.serving.item_overlay import ItemOverlayView
from model.inference.answers import RankedItems
from model.inference.workload import count_ranking


async def rank_items(context: AppContext, request: RankingRequest) -> RankingAnswer:
    """Rank the items of a request, best first, for its history at its query time.

    Raises:
        NoModelError: if no model is active.
        ModelNotFoundError: if the request pins a version that is not published.
        ModelRefusedError: if it pins a version that cannot be opened.
        UnprocessableError: if the inline history is longer than the settings allow.
        DatabaseUnavailableError: if the history is stored and cannot be read.
        OverloadedError: if too many requests are waiting.
    """
    predictor = await select_predictor(context, request)
    query, history_warnings = await read_instant_query(context, request)
    ranked = await context.infer(
        predictor,
        count_ranking(predictor.bundle, len(query.history), len(request.item_ids)),
        predictor.rank_items_in_steps(query, request.item_ids),
    )
    overlay = context.item_overlay.get_view(predictor.version, predictor.catalog)
    return RankingAnswer(
        model_version=predictor.version,
        query_time=format_instant(query.query_time),
        history_used=ranked.history_used,
        unknown_item_ids=ranked.unknown_item_ids,
        fallback=None if ranked.fallback is None else "no_history",
        items=_to_ranked_items(ranked, overlay),
        warnings=ranked.warnings + history_warnings,
    )


def _to_ranked_items(ranked: RankedItems, overlay: ItemOverlayView) -> tuple[RankedItem, ...]:
    """Return the items of the model's catalog, followed by the unknown ones."""
    known = [
        RankedItem(
            item_id=item.item_id,
            score=item.score,
            rank=rank,
            reason=item.reason,
            title=overlay.title(item.row),
            categories=overlay.categories(item.row),
        )
        for rank, item in enumerate(ranked.items, start=1)
    ]
    unknown = [
        RankedItem(item_id, None, rank, "unknown", None, ())
        for rank, item_id in enumerate(ranked.unranked_item_ids, start=len(known) + 1)
    ]
    return (*known, *unknown)
