"""Similar items, by the item vectors of a model."""

from app.context import AppContext
from app.errors import ItemNotFoundError, NoItemSpaceError
from app.histories.schemas import HistoryRequest
from app.histories.service import select_predictor
from app.items.schemas import SimilarItem, SimilarItems
from model import errors
from model.inference.steps import start
from model.inference.workload import count_listing


async def find_similar_items(
    context: AppContext, item_id: str, *, n: int, model_version: str | None
) -> SimilarItems:
    """Find the items most similar to one, among those that are available now.

    Raises:
        ItemNotFoundError: if the model's catalog lacks the item.
        NoItemSpaceError: if the model learns no item vectors.
        NoModelError: if no model is active.
        ModelNotFoundError: if the request pins a version that is not published.
        ModelRefusedError: if it pins a version that cannot be opened.
        OverloadedError: if too many requests are waiting.
    """
    predictor = await select_predictor(context, HistoryRequest(model_version=model_version))
    overlay = context.item_overlay.get_view(predictor.version, predictor.catalog)
    try:
        similar = await context.infer(
            predictor,
            count_listing(len(predictor.catalog), n),
            start(
                lambda: predictor.find_similar_in_steps(
                    item_id, n, allowed=overlay.select_allowed(context.clock.now())
                )
            ),
        )
    except errors.UnknownItemError as error:
        raise ItemNotFoundError(str(error)) from error
    except errors.NoItemSpaceError as error:
        raise NoItemSpaceError(str(error)) from error
    return SimilarItems(
        item_id=item_id,
        model_version=predictor.version,
        items=tuple(
            SimilarItem(
                item_id=item.item_id,
                score=item.score,
                rank=rank,
                title=overlay.title(item.row),
                categories=overlay.categories(item.row),
            )
            for rank, item in enumerate(similar, start=1)
        ),
    )
