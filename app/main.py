"""The application, put together: `create_app(settings)` is the only way in."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version

import structlog
from fastapi import FastAPI
from sqlalchemy.exc import OperationalError
from starlette.middleware import Middleware

from app.dashboard.router import router as dashboard
from app.db.database import Database
from app.events.router import router as events
from app.health.router import router as health
from app.items.router import router as items
from app.metrics import Metrics
from app.middleware import BodyCap, CrashBarrier, Measured, RequestIds
from app.models.router import router as models
from app.openapi import TAGS, describe_problems
from app.parts import Parts
from app.problems import install_handlers
from app.recommendations.router import router as recommendations
from app.serving import Serving
from app.settings import Settings
from app.users.router import router as users
from app.work import BoundedPool
from migrations.run import upgrade
from model.bundle.store import BundleStore

_SCHEMA_PATIENCE_SECONDS = 10.0
_SCHEMA_RETRY_SECONDS = 2.0

_log = structlog.get_logger()


def create_app(settings: Settings) -> FastAPI:
    """An application that runs by these settings; what it holds hangs on `app.state.parts`."""
    metrics = Metrics()
    store = BundleStore(settings.bundle_store)
    parts = Parts(
        settings=settings,
        metrics=metrics,
        database=Database(
            settings.database_url,
            threads=settings.database_threads,
            queue=settings.database_queue,
        ),
        store=store,
        serving=Serving(store, metrics),
        inference=BoundedPool(
            "inference", threads=settings.inference_threads, queue=settings.inference_queue
        ),
    )
    app = FastAPI(
        title="Kairos",
        summary="Time-aware recommendations that say which past events they rest on.",
        version=version("kairos"),
        openapi_tags=TAGS,
        lifespan=_lifespan,
        redirect_slashes=False,
        middleware=[
            Middleware(RequestIds),
            Middleware(Measured, metrics=metrics),
            Middleware(CrashBarrier),
            Middleware(BodyCap, max_bytes=settings.max_body_bytes),
        ],
    )
    app.state.parts = parts
    install_handlers(app)
    for router in (recommendations, events, items, users, models, health, dashboard):
        app.include_router(router)
    describe_problems(app)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    parts: Parts = app.state.parts
    async with _background(_keep_schema(parts.settings)) as schema:
        # Usually done in no time. A database that is down must not keep the service down, though:
        # requests with an inline history need none.
        await asyncio.wait({schema}, timeout=_SCHEMA_PATIENCE_SECONDS)
        await parts.serving.refresh()
        async with _background(parts.serving.follow(parts.settings.poll_interval_seconds)):
            yield
    parts.inference.close()
    parts.database.close()


@asynccontextmanager
async def _background(work: Coroutine[None, None, None]) -> AsyncIterator[asyncio.Task[None]]:
    """Run `work` beside the block, and cancel what is left of it at the end."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _keep_schema(settings: Settings) -> None:
    """Bring the schema up to date, trying until the database answers."""
    if not settings.migrate_on_start:
        return
    while True:
        try:
            await asyncio.to_thread(upgrade, settings.database_url)
        except OperationalError as error:
            _log.warning("database_unavailable", doing="migrate", error=str(error.orig))
            await asyncio.sleep(_SCHEMA_RETRY_SECONDS)
        else:
            return
