"""The parts one application is made of, and how a request reaches them."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from fastapi import Request

from app.db.database import Database
from app.gate import Gate
from app.keyring import KeyRing
from app.leaving import Leaving
from app.metrics import Metrics
from app.serving import Serving
from app.settings import Settings
from app.shelf import Shelf
from app.shown import Shown
from app.work import BoundedPool
from model.bundle.store import BundleStore

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Parts:
    """What the services stand on; one set per application, nothing global.

    Attributes:
        background: work that nobody waits for, held so that it is not lost half done.
    """

    settings: Settings
    metrics: Metrics
    database: Database
    keys: KeyRing
    gate: Gate
    store: BundleStore
    shelf: Shelf
    serving: Serving
    inference: BoundedPool
    shown: Shown
    background: set[asyncio.Task[None]]
    leaving: Leaving

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
async def parts_of(request: Request) -> Parts:
    """The parts of the application that a request came to."""
    parts: Parts = request.app.state.parts
    return parts
