"""From a request to a sweep: find the history, ask the model at every instant, tell both."""

from dataclasses import replace
from typing import final

from app.attention.schemas import (
    AttentionAnswer,
    AttentionAtInstant,
    AttentionRequest,
    SweptEvent,
)
from app.context import AppContext
from app.histories.service import HistoryService
from app.http.types import format_instant
from app.recommendations.presenter import to_recommended_items
from app.serving.item_overlay import ItemOverlayView, Mask
from model.history import Event, Query
from model.inference.answers import Constraints, Sweep, SweptInstant
from model.inference.predictor import Predictor
from model.inference.sweep import AllowedAt


@final
class AttentionService:
    """Says how attention, and with it the answer, moves while the clock runs."""

    def __init__(self, context: AppContext) -> None:
        self._context = context

    async def sweep(self, asked: AttentionRequest) -> AttentionAnswer:
        """The weights, and the best items, at each instant of a request.

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
        found = await histories.read(asked, max(asked.query_times))
        return await self._context.infer(
            lambda: self._answer(bundle, found.query, asked, found.warnings)
        )

    def _answer(
        self, bundle: Predictor, query: Query, asked: AttentionRequest, warnings: tuple[str, ...]
    ) -> AttentionAnswer:
        view = self._context.item_overlay.view(bundle.version, bundle.catalog)
        constraints = Constraints(n=asked.n, exclude_seen=asked.exclude_seen and asked.n > 0)
        sweep = bundle.sweep(
            query, asked.query_times, constraints, allowed_at=_allowed_by(view) if asked.n else None
        )
        longest = self._context.settings.max_history
        if asked.user_id is not None and len(query.history) >= longest:
            sweep = _warned_of_a_cut(sweep, query, bundle.bundle.manifest.max_history)
        return _account(sweep, bundle, view, warnings)


def _allowed_by(view: ItemOverlayView) -> AllowedAt:
    """What the shelf allows at an instant; equal masks are one, as a sweep holds all it gets."""
    masks: dict[bytes, Mask] = {}

    def allowed_at(instant: int) -> Mask | None:
        mask = view.allowed(instant)
        return None if mask is None else masks.setdefault(mask.tobytes(), mask)

    return allowed_at


def _warned_of_a_cut(sweep: Sweep, query: Query, max_history: int) -> Sweep:
    """A sweep of which each instant says so if events before the first one read may be missing.

    A stored history is read as of the last instant, and cut to the most recent events; an earlier
    instant alone would have had older ones to read.
    """
    instants = tuple(
        replace(instant, warnings=(*instant.warnings, "history_truncated"))
        if instant.history_used < max_history and query.history[-1].at > instant.query_time
        else instant
        for instant in sweep.instants
    )
    warnings = dict.fromkeys(code for instant in instants for code in instant.warnings)
    return replace(sweep, instants=instants, warnings=tuple(warnings))


def _account(
    sweep: Sweep, bundle: Predictor, view: ItemOverlayView, warnings: tuple[str, ...]
) -> AttentionAnswer:
    attends = any(instant.weights is not None for instant in sweep.instants)
    if sweep.events and not attends:
        warnings += ("attention_unavailable",)
    return AttentionAnswer(
        model_version=bundle.version,
        layer="last",
        aggregation="mean_heads",
        normalised=sweep.normalised,
        groups=sweep.groups,
        unknown_item_ids=sweep.unknown_item_ids,
        events=tuple(
            _told(event, row, view) for event, row in zip(sweep.events, sweep.rows, strict=True)
        ),
        instants=tuple(
            AttentionAtInstant(
                query_time=format_instant(instant.query_time),
                history_used=instant.history_used,
                fallback=instant.fallback,
                weights=_weights(instant, sweep.events) if attends else None,
                intensities=instant.intensities,
                items=to_recommended_items(instant.items, view),
                warnings=instant.warnings,
            )
            for instant in sweep.instants
        ),
        warnings=sweep.warnings + warnings,
    )


def _told(event: Event, row: int, view: ItemOverlayView) -> SweptEvent:
    return SweptEvent(
        item_id=event.item_id,
        title=view.title(row),
        timestamp=format_instant(event.at),
        action=event.action,
        categories=view.categories(row),
    )


def _weights(instant: SweptInstant, events: tuple[Event, ...]) -> tuple[float | None, ...]:
    """One weight per event of the sweep; None for what had not happened yet."""
    weights = instant.weights or (0.0,) * len(events)
    return tuple(
        weight if event.at <= instant.query_time else None
        for event, weight in zip(events, weights, strict=True)
    )
