"""The application context: the services and state of one application."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from fastapi import Request

from app.auth.access import AccessControl
from app.auth.key_cache import KeyCache
from app.auth.local_token import LocalToken
from app.background import TaskSupervisor
from app.db.clock import ServiceClock
from app.db.database import Database
from app.observability.metrics import Metrics
from app.serving.impressions import ImpressionBuffer
from app.serving.item_overlay import ItemOverlay
from app.serving.model_manager import ModelManager
from app.serving.shutdown import ShutdownState
from app.settings import Settings
from app.thread_pool import BoundedPool
from model.store.store import BundleStore

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class AppContext:
    """The services and state of one application; nothing is global.

    Attributes:
        clock: the time of requests and records; `model.clock.now` may differ between replicas.
        background_tasks: tasks that no request awaits; referenced here, as the event loop keeps
            only weak references.
    """

    settings: Settings
    metrics: Metrics
    clock: ServiceClock
    database: Database
    keys: KeyCache
    local_token: LocalToken
    access_control: AccessControl
    store: BundleStore
    item_overlay: ItemOverlay
    model_manager: ModelManager
    inference: BoundedPool
    impressions: ImpressionBuffer
    background_tasks: set[asyncio.Task[None]]
    supervisor: TaskSupervisor
    shutdown: ShutdownState

    async def infer(self, work: Callable[[], Result]) -> Result:
        """Run `work` on the inference pool, and record how long it waited for a thread.

        Raises:
            OverloadedError: if too many requests wait already.
        """
        submitted_at = time.perf_counter()

        def measure_and_run() -> Result:
            self.metrics.inference_queue_seconds.observe(time.perf_counter() - submitted_at)
            return work()

        with self.metrics.inference_in_progress.track_inprogress():
            return await self.inference.run(measure_and_run)


# Asynchronous although it awaits nothing: FastAPI runs a plain function on a thread.
async def get_context(request: Request) -> AppContext:
    """Return the context of the application that handles a request."""
    context: AppContext = request.app.state.context
    return context
