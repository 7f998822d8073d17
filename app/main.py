"""The application: `create_app(settings)` builds it from its parts."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from importlib.metadata import version

import structlog
from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Scope

from app.attention.router import router as attention
from app.audit.router import router as audit
from app.auth.access import MOST_NAMES, AccessControl
from app.auth.caller_id import get_body_size, identify_caller
from app.auth.key_cache import KeyCache
from app.auth.local_token import LocalToken
from app.auth.shared_limiter import SharedLimiter
from app.background import TaskSupervisor
from app.context import AppContext
from app.dashboard.router import router as dashboard
from app.db.clock import ServiceClock
from app.db.database import Database
from app.db.engine import parse_url
from app.db.erasure_log import open_erasure_log
from app.db.erasure_replay import replay_erasures
from app.db.partitions import extend_partitions
from app.events.router import router as events
from app.health.clock import synchronize_clock, warn_without_database_time
from app.health.router import metrics_router
from app.health.router import router as health
from app.http.middleware.body_drain import BodyDrainMiddleware
from app.http.middleware.body_limit import BodyLimitMiddleware
from app.http.middleware.error import ErrorMiddleware
from app.http.middleware.head import HeadMiddleware
from app.http.middleware.keep_alive_closer import KeepAliveCloser
from app.http.middleware.load_shedding import LoadSheddingMiddleware
from app.http.middleware.metrics import MetricsMiddleware
from app.http.middleware.no_store import NoStoreMiddleware
from app.http.middleware.request_id import RequestIdMiddleware
from app.http.openapi import complete_openapi
from app.http.problems import install_exception_handlers
from app.inference.costs import InferenceCosts
from app.inference.fair_queue import CallClass
from app.inference.refusals import RecentRefusals
from app.inference.scheduler import InferenceScheduler
from app.items.router import router as items
from app.items.router import writing as items_writing
from app.items.service import build_item_reader, refresh_item_overlay
from app.keys.router import router as caller
from app.keys.service import delete_old_shares, refresh_keys, settle_budgets
from app.models.router import admin_router as models_admin
from app.models.router import changes_router as model_changes
from app.models.router import router as models
from app.observability.metrics import Metrics
from app.observability.shared_metrics import MetricsShare
from app.overview.router import router as overview
from app.overview_gate import OverviewGate
from app.popularity.service import follow_popularity
from app.rankings.router import router as rankings
from app.recommendations.impression_writer import (
    count_impressions,
    expire_records,
    record_impressions,
)
from app.recommendations.router import router as recommendations
from app.serving.impressions import ImpressionBuffer
from app.serving.item_overlay import ItemOverlay
from app.serving.mirror import mirror_bundles
from app.serving.model_manager import ModelManager
from app.serving.shutdown import ShutdownState
from app.settings import Settings
from app.training_runs.router import router as training_runs
from app.training_runs.service import SECONDS_BETWEEN_COUNTS, count_training_runs
from app.users.router import erasing as users_erasing
from app.users.router import router as users
from migrations.run import NewerSchemaError, upgrade
from model.store.mirrored import MirroredStore

_MIGRATION_RETRY_SECONDS = 2.0
_SECONDS_BETWEEN_SETTLEMENTS = 1.0
_SECONDS_BETWEEN_UPKEEPS = 3600.0
"""Between looks for months of events without a partition, and for counts of ended processes."""

_TAGS = [
    {"name": "recommendations", "description": "Items for a user at an instant."},
    {"name": "events", "description": "Events of users, stored exactly once."},
    {"name": "items", "description": "Titles, categories, availability and popularity of items."},
    {"name": "users", "description": "Stored histories, and predictions for users."},
    {"name": "overview", "description": "Samples of users, to see what changes and for whom."},
    {"name": "models", "description": "Published bundles, activation, rollback and retraining."},
    {"name": "keys", "description": "API keys."},
    {"name": "audit", "description": "Acts that stay known."},
    {"name": "health", "description": "Probes and metrics."},
]

_CONVENTIONS = """
Instants are RFC 3339 with an offset from UTC, or epoch seconds; responses are in UTC. Unknown
fields and query parameters of a request are refused, and so is a parameter that is sent twice;
responses may gain fields within v1. Every failure is an RFC 9457 problem document whose `code` is
stable and whose `detail` states the rule, the value and the remedy. The same `X-Request-ID` in
responses, problems and logs identifies one request. Paths and queries are percent-encoded UTF-8; a
slash that belongs to an id is encoded, too (`%2F`).
""".strip()

_ROUTERS = (
    recommendations,
    rankings,
    attention,
    events,
    overview,
    items,
    items_writing,
    users,
    users_erasing,
    model_changes,
    models,
    models_admin,
    training_runs,
    caller,
    audit,
    health,
    metrics_router,
)

_log = structlog.get_logger()


def create_app(
    settings: Settings,
    *,
    is_demo: bool = False,
    local_token: LocalToken | None = None,
    metrics_share: MetricsShare | None = None,
) -> FastAPI:
    """Build an application; its services and state are in `app.state.context`.

    Args:
        is_demo: whether programs of this user may make the demo's requests without a token.
        local_token: that of all workers; by default the application draws one of its own.
        metrics_share: where all workers count; None if this process is the only one.
    """
    metrics, clock = Metrics(metrics_share), ServiceClock()
    # A change keeps the process from following its store, and a client waits for its response.
    store = settings.open_bundle_store(patience_seconds=settings.response_timeout_seconds)
    database = Database(
        settings.database_url,
        threads=settings.database_threads,
        queue=settings.database_queue,
        timeout_seconds=settings.database_timeout_seconds,
        write_threads=settings.database_write_threads,
        metrics=metrics,
    )
    is_shared = parse_url(settings.database_url).get_backend_name() == "postgresql"
    item_overlay = ItemOverlay(build_item_reader(database))
    keys = KeyCache(clock.now)
    local_token = LocalToken() if local_token is None else local_token
    costs = InferenceCosts()
    context = AppContext(
        settings=settings,
        metrics=metrics,
        clock=clock,
        database=database,
        overviews=OverviewGate(patience_seconds=settings.database_timeout_seconds),
        keys=keys,
        local_token=local_token,
        access_control=AccessControl(
            keys,
            local_token,
            requests_per_second=settings.requests_per_second,
            open_to_loopback=settings.open_to_loopback,
            is_demo=is_demo,
            # With SQLite all processes are of one machine, and writes are dear.
            key_limiter=SharedLimiter(most=MOST_NAMES) if is_shared else None,
        ),
        store=store,
        item_overlay=item_overlay,
        model_manager=ModelManager(
            store, metrics, item_overlay, costs, pinned_versions=settings.pinned_versions
        ),
        costs=costs,
        inference=InferenceScheduler(
            metrics,
            threads=settings.inference_threads,
            queue=settings.inference_queue,
            patience_seconds=settings.inference_patience_seconds,
            long_patience_seconds=settings.inference_long_patience_seconds,
        ),
        refusals=RecentRefusals(),
        impressions=ImpressionBuffer(metrics, longest=settings.recommendation_buffer),
        background_tasks=set(),
        supervisor=TaskSupervisor(metrics),
        shutdown=ShutdownState(),
        is_first_worker=metrics_share is None or metrics_share.worker == 1,
    )
    app = FastAPI(
        title="Kairos",
        summary="Time-aware recommendations with the attention weights of past events.",
        description=_CONVENTIONS,
        version=version("kairos"),
        license_info={"name": "MIT", "identifier": "MIT"},
        openapi_tags=_TAGS,
        lifespan=_lifespan,
        redirect_slashes=False,
        # FastAPI would derive it on the event loop, which takes a fifth of a second.
        openapi_url=None,
        # FastAPI's own pages load scripts from other hosts; `app.dashboard` has one that does not.
        docs_url=None,
        redoc_url=None,
        # FastAPI would look for an OpenTelemetry provider three times per request.
        telemetry={"tracing": False, "metrics": False, "logs": False},
        middleware=[
            Middleware(RequestIdMiddleware),
            Middleware(NoStoreMiddleware),
            Middleware(KeepAliveCloser, shutdown=context.shutdown),
            Middleware(BodyDrainMiddleware, max_bytes=settings.max_body_bytes),
            Middleware(
                LoadSheddingMiddleware,
                capacity_checks=_build_capacity_checks(context),
                metrics=metrics,
            ),
            Middleware(MetricsMiddleware, metrics=metrics),
            Middleware(HeadMiddleware),
            Middleware(ErrorMiddleware),
            Middleware(BodyLimitMiddleware, max_bytes=settings.max_body_bytes),
        ],
    )
    app.state.context = context
    app.add_route("/openapi.json", _build_openapi_endpoint(app), include_in_schema=False)
    install_exception_handlers(app)
    for router in _ROUTERS:
        # Its routes as they are: `include_router` would build each again, at the first request.
        app.router.routes.extend(router.routes)
    app.include_router(dashboard)
    complete_openapi(app)
    return app


def _build_openapi_endpoint(app: FastAPI) -> Callable[[Request], Awaitable[JSONResponse]]:
    """Build the function that responds with the OpenAPI description, derived when first needed."""
    one_at_a_time = asyncio.Lock()

    async def respond(_: Request) -> JSONResponse:
        async with one_at_a_time:
            description = await asyncio.to_thread(app.openapi)
        return JSONResponse(description)

    return respond


def _build_capacity_checks(context: AppContext) -> dict[tuple[str, str], Callable[[Scope], None]]:
    """Build the capacity checks by method and path, made before the request body is read."""

    def check_model(call_class: CallClass, scope: Scope) -> None:
        context.inference.require_capacity(identify_caller(scope), call_class)

    def check_sweep(scope: Scope) -> None:
        context.refusals.require_none(identify_caller(scope), get_body_size(scope))
        check_model(CallClass.LONG, scope)

    short = partial(check_model, CallClass.SHORT)
    return {
        ("POST", "/v1/recommendations"): short,
        ("POST", "/v1/rankings"): short,
        ("POST", "/v1/attention"): check_sweep,
        ("POST", "/v1/events"): lambda _: context.database.require_write_capacity(),
    }


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    context: AppContext = app.state.context
    async with AsyncExitStack() as stack:
        stack.callback(context.database.close)
        stack.callback(context.inference.close)
        stack.callback(context.model_manager.close)
        if isinstance(context.store, MirroredStore):
            stack.callback(context.store.close)
        await asyncio.to_thread(context.store.remove_leftovers)
        for task in _build_tasks(context):
            await stack.enter_async_context(task)
        yield


def _build_tasks(context: AppContext) -> Iterator[AbstractAsyncContextManager[None]]:
    """Build the periodic tasks of the process, in the order of their start; they end in reverse."""
    settings, run_every = context.settings, context.supervisor.run_every
    interval = settings.poll_interval_seconds
    # The service starts without its database: requests with an inline history need none.
    if settings.migrate_on_start:
        yield context.supervisor.run_until_done(
            _MIGRATION_RETRY_SECONDS, "migration", lambda: _migrate(settings.database_url)
        )
    # Before the first request, so that rows of users who were erased are never read.
    yield context.supervisor.run_until_done(
        _MIGRATION_RETRY_SECONDS, "erasures", lambda: _replay_erasures(context)
    )
    # Ends last of those that write: what the others used of the database is free by then.
    yield record_impressions(context)
    yield run_every(interval, "clock", lambda: synchronize_clock(context), is_awaited=True)
    warn_without_database_time(context)
    yield run_every(interval, "keys", lambda: refresh_keys(context), is_awaited=True)
    limiter = context.access_control.key_limiter
    if isinstance(limiter, SharedLimiter):
        yield run_every(
            _SECONDS_BETWEEN_SETTLEMENTS,
            "limits",
            lambda: settle_budgets(context, limiter),
            is_essential=False,
        )
    yield run_every(interval, "items", lambda: refresh_item_overlay(context), is_awaited=True)
    if isinstance(context.store, MirroredStore):
        mirror = partial(mirror_bundles, context.store)
        yield run_every(interval, "bundles", mirror, is_essential=False, is_awaited=True)
    yield run_every(interval, "models", context.model_manager.refresh, is_awaited=True)
    yield follow_popularity(context)
    if not context.is_first_worker:
        return
    # Once for all workers: each run would find the same rows, and the counts would be added up.
    yield run_every(
        SECONDS_BETWEEN_COUNTS,
        "training_runs",
        lambda: count_training_runs(context),
        is_essential=False,
    )
    yield expire_records(context)
    yield count_impressions(context)
    if parse_url(settings.database_url).get_backend_name() == "postgresql":
        yield run_every(
            _SECONDS_BETWEEN_UPKEEPS,
            "partitions",
            lambda: asyncio.to_thread(extend_partitions, settings.database_url),
            is_essential=False,
        )
        yield run_every(
            _SECONDS_BETWEEN_UPKEEPS,
            "shares",
            lambda: delete_old_shares(context),
            is_essential=False,
        )


async def _replay_erasures(context: AppContext) -> None:
    """Erase users again whom a restored backup brought back.

    Raises:
        DatabaseUnavailableError: if the database does not answer.
        ErasureLogError: if the log cannot be used. Somebody must act, so it counts as a failure.
    """
    settings = context.settings
    log = open_erasure_log(settings.database_url, settings.erasure_log)
    replay = await asyncio.to_thread(
        replay_erasures,
        context.database,
        log,
        # Other replicas may be erasing: each gives up after this time.
        settle_seconds=settings.database_timeout_seconds,
    )
    if replay.erasures:
        _log.warning("erasures_replayed", erasures=replay.erasures, deleted_rows=replay.rows)


async def _migrate(database_url: str) -> None:
    """Bring the schema up to date.

    Raises:
        DatabaseUnavailableError: if the database does not answer.
    """
    try:
        await asyncio.to_thread(upgrade, database_url)
    except NewerSchemaError as error:
        # During a rolling update the next version may have migrated already; migrations are
        # compatible with the version before them.
        _log.warning("database_schema_newer", error=str(error))
