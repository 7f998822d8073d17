"""The map of a model's items."""

from collections import Counter

from app.context import AppContext
from app.errors import NoItemSpaceError
from app.models.schemas import MappedItem, ModelMap
from app.serving.item_overlay import ItemOverlayView
from model import errors
from model.inference.item_map import MOST_ITEMS
from model.inference.predictor import Predictor
from model.inference.steps import Steps
from model.inference.workload import count_listing

_DIGITS = 6
_MOST_CATEGORIES = 100
_STEP_ITEMS = 256
"""Items that are described in one step."""


async def draw_map(context: AppContext, version: str, *, items: int) -> ModelMap:
    """Return the most popular items of a version in two dimensions.

    Raises:
        ModelNotFoundError: if no bundle of that version is published.
        ModelRefusedError: if it cannot be opened.
        NoItemSpaceError: if the model learns no item vectors.
        StoreUnavailableError: if the store cannot be read.
        OverloadedError: if too many requests wait for the model already.
    """
    predictor = await context.model_manager.open_version(version)
    view = context.item_overlay.get_view(predictor.version, predictor.catalog)
    try:
        return await context.infer(
            predictor,
            # The categories are those of all items of the map.
            count_listing(len(predictor.catalog), min(MOST_ITEMS, len(predictor.catalog))),
            _to_response(predictor, view, items, at=context.clock.now()),
        )
    except errors.NoItemSpaceError as error:
        raise NoItemSpaceError(str(error)) from error


def _to_response(
    predictor: Predictor, view: ItemOverlayView, most: int, *, at: int
) -> Steps[ModelMap]:
    catalog, item_map = predictor.catalog, predictor.item_map
    yield
    # An item that is unavailable now keeps its position; only deleted items are left out.
    allowed = view.select_allowed(at, available_only=False)
    mapped: list[MappedItem] = []
    counts: Counter[str] = Counter()
    rows, points = item_map.rows.tolist(), item_map.points.tolist()
    for number, (row, (x, y)) in enumerate(zip(rows, points, strict=True), start=1):
        if allowed is None or allowed[row]:
            counts.update(set(view.categories(row)))
            if number <= most:
                mapped.append(
                    MappedItem(
                        item_id=catalog.item_id(row),
                        title=view.title(row),
                        categories=view.categories(row),
                        x=round(x, _DIGITS),
                        y=round(y, _DIGITS),
                        events=int(catalog.popularity[row - 1]),
                    )
                )
        if number % _STEP_ITEMS == 0:
            yield
    return ModelMap(
        model_version=predictor.version,
        method=item_map.method,
        explained=item_map.explained,
        neighbours_kept=item_map.neighbours_kept,
        categories=tuple(sorted(counts, key=lambda name: (-counts[name], name)))[:_MOST_CATEGORIES],
        items=tuple(mapped),
    )
