"""From a request to a ranking: find the history, have the model judge the items, tell both."""

from typing import final

from app.context import AppContext
from app.histories.service import HistoryService
from app.http.types import format_instant
from app.rankings.schemas import RankedItem, RankingAnswer, RankingRequest
from app.serving.item_overlay import ItemOverlayView
from model.inference.answers import RankedItems


@final
class RankingService:
    """Puts given items in the order of a model."""

    def __init__(self, context: AppContext) -> None:
        self._context = context

    async def rank(self, asked: RankingRequest) -> RankingAnswer:
        """The items of a request, best first, for its history at its instant.

        Raises:
            NoModelError: if no bundle is being served.
            ModelNotFoundError: if the request insists on a version that is not published.
            ModelRefusedError: if it insists on one that cannot be opened.
            UnprocessableError: if the inline history is longer than this service allows.
            DatabaseUnavailableError: if the history is stored, and cannot be read.
            OverloadedError: if too many requests wait already.
        """
        histories = HistoryService(self._context)
        bundle = await histories.bundle(asked)
        found = await histories.read_at_instant(asked)
        ranked = await self._context.infer(lambda: bundle.rank_items(found.query, asked.item_ids))
        view = self._context.item_overlay.view(bundle.version, bundle.catalog)
        return RankingAnswer(
            model_version=bundle.version,
            query_time=format_instant(found.query.query_time),
            history_used=ranked.history_used,
            unknown_item_ids=ranked.unknown_item_ids,
            fallback=None if ranked.fallback is None else "no_history",
            items=_told(ranked, view),
            warnings=ranked.warnings + found.warnings,
        )


def _told(ranked: RankedItems, view: ItemOverlayView) -> tuple[RankedItem, ...]:
    """The items the model knows, and after them those it does not."""
    known = [
        RankedItem(
            item_id=item.item_id,
            score=item.score,
            rank=rank,
            reason=item.reason,
            title=view.title(item.row),
            categories=view.categories(item.row),
        )
        for rank, item in enumerate(ranked.items, start=1)
    ]
    unknown = [
        RankedItem(item_id, None, rank, "unknown", None, ())
        for rank, item_id in enumerate(ranked.unranked_item_ids, start=len(known) + 1)
    ]
    return (*known, *unknown)
