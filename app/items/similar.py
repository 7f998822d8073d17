"""Which items are alike, by the vectors a model has learned."""

from typing import final

from app.context import AppContext
from app.errors import ItemNotFoundError, NoItemSpaceError
from app.histories.schemas import HistoryRequest
from app.histories.service import HistoryService
from app.items.schemas import SimilarItem, SimilarItems
from model import errors
from model.clock import now


@final
class SimilarItemService:
    """Says which items are alike."""

    def __init__(self, context: AppContext) -> None:
        self._context = context

    async def similar(self, item_id: str, *, n: int, model_version: str | None) -> SimilarItems:
        """The items most like one, among those that are available now.

        Raises:
            ItemNotFoundError: if the model does not know the item.
            NoItemSpaceError: if the model learns no item vectors.
            NoModelError: if no bundle is being served.
            ModelNotFoundError: if the request insists on a version that is not published.
            ModelRefusedError: if it insists on one that cannot be opened.
            OverloadedError: if too many requests wait already.
        """
        bundle = await HistoryService(self._context).bundle(
            HistoryRequest(model_version=model_version)
        )
        view = self._context.item_overlay.view(bundle.version, bundle.catalog)
        try:
            found = await self._context.infer(
                lambda: bundle.similar(item_id, n, allowed=view.allowed(now()))
            )
        except errors.UnknownItemError as error:
            raise ItemNotFoundError(str(error)) from error
        except errors.NoItemSpaceError as error:
            raise NoItemSpaceError(str(error)) from error
        return SimilarItems(
            item_id=item_id,
            model_version=bundle.version,
            items=tuple(
                SimilarItem(
                    item_id=item.item_id,
                    score=item.score,
                    rank=rank,
                    title=view.title(item.row),
                    categories=view.categories(item.row),
                )
                for rank, item in enumerate(found, start=1)
            ),
        )
