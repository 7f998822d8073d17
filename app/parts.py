"""The parts one application is made of, and how a request reaches them."""

from dataclasses import dataclass

from fastapi import Request

from app.db.database import Database
from app.metrics import Metrics
from app.serving import Serving
from app.settings import Settings
from app.work import BoundedPool
from model.bundle.store import BundleStore


@dataclass(frozen=True, slots=True)
class Parts:
    """What the services stand on; one set per application, nothing global."""

    settings: Settings
    metrics: Metrics
    database: Database
    store: BundleStore
    serving: Serving
    inference: BoundedPool


# Asynchronous although it waits for nothing: FastAPI would send a plain function to a thread.
async def parts_of(request: Request) -> Parts:
    """The parts of the application that a request came to."""
    parts: Parts = request.app.state.parts
    return parts
