"""The map of a model's items, with what is known of each."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

from pydantic import ConfigDict

from app.context import AppContext
from app.errors import NoItemSpaceError
from app.http.types import RESPONSE_CONFIG
from app.serving.item_overlay import ItemOverlayView
from model import errors
from model.clock import now
from model.inference.predictor import Predictor

_DIGITS = 6


@dataclass(frozen=True, slots=True)
class MappedItem:
    """An item on a map."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    item_id: str
    title: str | None
    categories: tuple[str, ...]
    x: float
    """Along the axis of the greatest variance, from the centre of the map."""
    y: float
    """Along the axis of the second greatest."""
    events: int
    """How many events of it the model was trained on."""


@dataclass(frozen=True, slots=True)
class ModelMap:
    """The items of a model as points of a plane: those that are alike lie together."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    model_version: str
    method: Literal["pca"]
    """How the plane was found: by the principal components of the items' unit vectors."""
    explained: tuple[float, float]
    """The share of the variance of these vectors that lies along x and along y."""
    items: tuple[MappedItem, ...]
    """The most popular first; deleted ones are left out."""


@final
class MapService:
    """Draws the items of a model."""

    def __init__(self, context: AppContext) -> None:
        self._context = context

    async def draw(self, version: str, *, items: int) -> ModelMap:
        """The most popular items of a version, in two dimensions.

        Raises:
            ModelNotFoundError: if no bundle of that version is published.
            ModelRefusedError: if it cannot be opened.
            NoItemSpaceError: if the model learns no item vectors.
            StoreUnavailableError: if the store cannot be read.
            OverloadedError: if too many requests wait for the model already.
        """
        bundle = await self._context.model_manager.open_version(version)
        view = self._context.item_overlay.view(bundle.version, bundle.catalog)
        try:
            return await self._context.infer(lambda: _told(bundle, view, items))
        except errors.NoItemSpaceError as error:
            raise NoItemSpaceError(str(error)) from error


def _told(bundle: Predictor, view: ItemOverlayView, most: int) -> ModelMap:
    catalog, drawn = bundle.catalog, bundle.item_map
    # What is not available now has its place all the same: only what is gone is left out.
    allowed = view.allowed(now(), available_only=False)
    places = [
        (int(row), point)
        for row, point in zip(drawn.rows[:most], drawn.points[:most].tolist(), strict=True)
        if allowed is None or allowed[row]
    ]
    return ModelMap(
        model_version=bundle.version,
        method="pca",
        explained=drawn.explained,
        items=tuple(
            MappedItem(
                item_id=catalog.item_id(row),
                title=view.title(row),
                categories=view.categories(row),
                x=round(x, _DIGITS),
                y=round(y, _DIGITS),
                events=int(catalog.popularity[row - 1]),
            )
            for row, (x, y) in places
        ),
    )
