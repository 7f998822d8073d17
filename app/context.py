"""The application context: the services and state of one application."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import Request

from app.auth.access import AccessControl
from app.auth.key_cache import KeyCache
from app.auth.local_token import LocalToken
from app.background import TaskSupervisor
from app.db.clock import ServiceClock
from app.db.database import Database
from app.errors import DisconnectedError, OverloadedError, OverShareError
from app.inference.costs import InferenceCosts
from app.inference.fair_queue import CallClass
from app.inference.refusals import RecentRefusals
from app.inference.requester import Requester, requester
from app.inference.scheduler import InferenceScheduler
from app.observability.metrics import Metrics
from app.overview_gate import OverviewGate
from app.serving.impressions import ImpressionBuffer
from app.serving.item_overlay import ItemOverlay
from app.serving.model_manager import ModelManager
from app.serving.shutdown import ShutdownState
from app.settings import Settings
from model.inference.predictor import Predictor
from model.inference.steps import Steps
from model.inference.workload import Workload
from model.store.store import BundleStore

Result = TypeVar("Result")

_SURPRISE = 2.0
"""A short call may compute for so many times the bound of its estimate: a garbage collection or
cold caches make no long one of it."""


@dataclass(frozen=True, slots=True)
class AppContext:
    """The services and state of one application; nothing is global.

    Attributes:
        clock: the time of requests and records; `model.clock.now` may differ between replicas.
        background_tasks: tasks that no request awaits; referenced here, as the event loop keeps
            only weak references.
        is_first_worker: whether this process does what one of several workers does for all.
    """

    settings: Settings
    metrics: Metrics
    clock: ServiceClock
    database: Database
    overviews: OverviewGate
    keys: KeyCache
    local_token: LocalToken
    access_control: AccessControl
    store: BundleStore
    item_overlay: ItemOverlay
    model_manager: ModelManager
    costs: InferenceCosts
    inference: InferenceScheduler
    refusals: RecentRefusals
    impressions: ImpressionBuffer
    background_tasks: set[asyncio.Task[None]]
    supervisor: TaskSupervisor
    shutdown: ShutdownState
    is_first_worker: bool

    async def infer(
        self,
        predictor: Predictor,
        workload: Workload,
        steps: Steps[Result],
        *,
        is_background: bool = False,
    ) -> Result:
        """Run a computation with a model on the inference threads, and learn what it costs.

        Args:
            workload: of the computation, from which its cost is estimated.
            is_background: whether no request waits for it.

        Raises:
            OverloadedError: if too many requests wait already.
            OverShareError: if too many of this caller wait, given that others do.
            DisconnectedError: if the client of a long computation disconnects; the rest of it is
                not run.
        """
        cost = self.costs.estimate(predictor, workload)
        short_seconds = self.costs.bound_short_calls(predictor)
        call_class = CallClass.SHORT if cost <= short_seconds else CallClass.LONG
        request = requester.get()
        running = self._run_or_refuse(
            steps,
            request,
            CallClass.BACKGROUND if is_background else call_class,
            cost,
            _SURPRISE * short_seconds,
            # What encodes nothing lists or draws, and may compute it for the first time.
            may_use_loop=workload.encodings > 0,
        )
        if is_background:
            result, seconds = await running
        else:
            with self.metrics.inference_in_progress.track_inprogress():
                if call_class is CallClass.LONG and request.wait_for_disconnect is not None:
                    running = self._run_while_connected(running, request.wait_for_disconnect)
                result, seconds = await running
        self.costs.add(predictor, workload, seconds)
        self.metrics.inference_cost_ratio.labels(call_class.label).observe(seconds / cost)
        return result

    async def _run_or_refuse(
        self,
        steps: Steps[Result],
        request: Requester,
        call_class: CallClass,
        cost: float,
        turn_seconds: float,
        *,
        may_use_loop: bool,
    ) -> tuple[Result, float]:
        """Run a call; remember the refusal of a long one."""
        try:
            return await self.inference.run(
                steps,
                caller=request.caller,
                call_class=call_class,
                cost=cost,
                turn_seconds=turn_seconds,
                may_use_loop=may_use_loop,
            )
        except (OverloadedError, OverShareError) as error:
            if call_class is CallClass.LONG:
                self.refusals.add(request.caller, request.body_size, error)
            raise

    async def _run_while_connected(
        self,
        running: Coroutine[Any, Any, Result],
        wait_for_disconnect: Callable[[], Awaitable[None]],
    ) -> Result:
        """Await a call, and cancel it when its client disconnects."""
        call = asyncio.ensure_future(running)
        disconnect = asyncio.ensure_future(wait_for_disconnect())
        try:
            await asyncio.wait({call, disconnect}, return_when=asyncio.FIRST_COMPLETED)
            if call.done():
                return await call
            self.metrics.inference_abandoned.inc()
            # No further step may begin once the response has been given up.
            call.cancel()
            with suppress(asyncio.CancelledError):
                await call
            raise DisconnectedError(
                "a client must wait for the response, but closed the connection before; send the "
                "request again"
            )
        finally:
            disconnect.cancel()
            call.cancel()


# Asynchronous although it awaits nothing: FastAPI runs a plain function on a thread.
async def get_context(request: Request) -> AppContext:
    """Return the context of the application that handles a request."""
    context: AppContext = request.app.state.context
    return context
