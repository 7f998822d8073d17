"""Sweeps: the attention and the recommendations of one history at many query times."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Literal, cast

import orjson

from app.attention.schemas import (
    AttentionAnswer,
    AttentionAtInstant,
    AttentionRequest,
    SweptEvent,
)
from app.context import AppContext
from app.errors import UnprocessableError
from app.histories.service import read_sweep_query, select_predictor
from app.http.types import format_instant, format_instants
from app.recommendations.presenter import to_recommended_items
from app.serving.item_overlay import ItemOverlayView, Mask
from model.errors import UnknownHeadError
from model.inference.answers import Constraints, Sweep, SweptInstant
from model.inference.steps import Steps
from model.inference.sweep import AllowedAt
from model.inference.workload import count_sweep


async def sweep_history(context: AppContext, request: AttentionRequest) -> bytes:
    """Compute the attention weights and the best items at each query time of a request.

    Returns an `AttentionAnswer` as JSON: a long one is serialized on the inference threads, in
    steps, and not on the event loop at once.

    Raises:
        NoModelError: if no model is active.
        ModelNotFoundError: if the request pins a version that is not published.
        ModelRefusedError: if it pins a version that cannot be opened.
        UnprocessableError: if the inline history is longer than the settings allow, or the model
            lacks the head.
        DatabaseUnavailableError: if the history is stored and cannot be read.
        OverloadedError: if too many requests are waiting.
    """
    predictor = await select_predictor(context, request)
    excludes_seen = request.exclude_seen and request.n > 0
    (query, history_warnings), limits = await read_sweep_query(
        context,
        request,
        request.query_times,
        needs_seen_items=excludes_seen,
        query_time_withheld=request.query_time_withheld,
    )
    overlay = context.item_overlay.get_view(predictor.version, predictor.catalog)
    constraints = Constraints(n=request.n, exclude_seen=excludes_seen)

    def sweep_and_serialize() -> Steps[bytes]:
        sweep = yield from predictor.sweep_in_steps(
            query,
            request.query_times,
            constraints,
            allowed_at=_share_equal_masks(overlay) if request.n else None,
            limits=limits,
            head=None if request.head is None else request.head - 1,
        )
        times = None if request.weights_of == "read" else [event.at for event in sweep.events]
        return (
            yield from _serialize(
                sweep,
                predictor.version,
                overlay,
                history_warnings,
                times,
                aggregation="mean_heads" if request.head is None else "head",
            )
        )

    workload = count_sweep(
        predictor.bundle,
        [event.at for event in query.history],
        request.query_times,
        request.n,
        withheld=request.query_time_withheld,
    )
    try:
        return await context.infer(predictor, workload, sweep_and_serialize())
    except UnknownHeadError as error:
        raise UnprocessableError(f"#/head: {error}") from error


def _share_equal_masks(overlay: ItemOverlayView) -> AllowedAt:
    """Select the rows that the overlay allows at an instant; equal masks share one array."""
    masks: dict[bytes, Mask] = {}

    def look_up_mask(instant: int) -> Mask | None:
        mask = overlay.select_allowed(instant)
        return None if mask is None else masks.setdefault(mask.tobytes(), mask)

    return look_up_mask


def _serialize(
    sweep: Sweep,
    model_version: str,
    overlay: ItemOverlayView,
    warnings: tuple[str, ...],
    aligned_times: Sequence[int] | None,
    *,
    aggregation: Literal["mean_heads", "head"],
) -> Steps[bytes]:
    """Serialize the response, one instant in a step.

    Args:
        aligned_times: of the events, ascending; the weights of an instant are then those of all
            events, and otherwise of those that it reads.
    """
    attends = any(instant.weights is not None for instant in sweep.instants)
    if sweep.events and not attends:
        warnings += ("attention_unavailable",)
    instants: list[orjson.Fragment] = []
    for instant in sweep.instants:
        response = AttentionAtInstant(
            query_time=format_instant(instant.query_time),
            history_used=instant.history_used,
            fallback=instant.fallback,
            first_event=instant.first_event,
            weights=(
                instant.weights
                if aligned_times is None or not attends
                else _align_weights(instant, aligned_times)
            ),
            intensities=instant.intensities,
            items=to_recommended_items(instant.items, overlay),
            warnings=instant.warnings,
        )
        instants.append(orjson.Fragment(orjson.dumps(response)))
        yield
    timestamps = format_instants([event.at for event in sweep.events])
    answer = AttentionAnswer(
        model_version=model_version,
        layer="last",
        aggregation=aggregation,
        normalised=sweep.normalised,
        groups=sweep.groups,
        unknown_item_ids=sweep.unknown_item_ids,
        events=tuple(
            SweptEvent(
                item_id=event.item_id,
                title=overlay.title(row),
                timestamp=timestamp,
                action=event.action,
                categories=overlay.categories(row),
            )
            for event, row, timestamp in zip(sweep.events, sweep.rows, timestamps, strict=True)
        ),
        instants=cast(tuple[AttentionAtInstant, ...], tuple(instants)),
        warnings=sweep.warnings + warnings,
    )
    return orjson.dumps(answer)


def _align_weights(instant: SweptInstant, event_times: Sequence[int]) -> tuple[float | None, ...]:
    """List one weight per event of the sweep; None for events after the instant.

    Args:
        event_times: ascending.
    """
    past = bisect_right(event_times, instant.query_time)
    read = instant.weights or ()
    after = past - instant.first_event - len(read)
    weights = (0.0,) * instant.first_event + read + (0.0,) * after
    return weights + (None,) * (len(event_times) - past)
