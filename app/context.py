"""The parts one application is made of, and how a request reaches them."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from fastapi import Request

from app.auth.access import AccessControl
from app.auth.key_cache import KeyCache
from app.db.database import Database
from app.observability.metrics import Metrics
from app.serving.impressions import ImpressionBuffer
from app.serving.item_overlay import ItemOverlay
from app.serving.model_manager import ModelManager
from app.serving.shutdown import ShutdownState
from app.settings import Settings
from app.thread_pool import BoundedPool
from model.store.store import BundleStore

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class AppContext:
    """What the services stand on; one set per application, nothing global.

    Attributes:
        background_tasks: work that nobody waits for, held so that it is not lost half done.
    """

    settings: Settings
    metrics: Metrics
    database: Database
    keys: KeyCache
    access_control: AccessControl
    store: BundleStore
    item_overlay: ItemOverlay
    model_manager: ModelManager
    inference: BoundedPool
    impressions: ImpressionBuffer
    background_tasks: set[asyncio.Task[None]]
    shutdown: ShutdownState

    async def infer(self, work: Callable[[], Answer]) -> Answer:
        """Have the inference pool do some work, and account for the wait.

        Raises:
            OverloadedError: if too many requests wait already.
        """
        asked_at = time.perf_counter()

        def answer() -> Answer:
            self.metrics.inference_queue_seconds.observe(time.perf_counter() - asked_at)
            return work()

        with self.metrics.inference_in_progress.track_inprogress():
            return await self.inference.run(answer)


# Asynchronous although it waits for nothing: FastAPI would send a plain function to a thread.
async def get_context(request: Request) -> AppContext:
    """The parts of the application that a request came to."""
    context: AppContext = request.app.state.context
    return context
