"""What the first of several workers does for all."""

import asyncio
from dataclasses import replace

from app.main import create_app
from app.settings import Settings

FOR_ALL = {"training_runs", "expired_records", "uncounted_impressions"}


async def list_tasks(settings: Settings, *, is_first_worker: bool) -> set[str]:
    """List the periodic tasks of a worker, which their metric names."""
    app = create_app(settings)
    app.state.context = replace(app.state.context, is_first_worker=is_first_worker)
    async with app.router.lifespan_context(app):
        return {
            sample.labels["task"]
            for family in app.state.context.metrics.background_task_failures.collect()
            for sample in family.samples
        }


def test_one_worker_expires_and_counts_for_all(settings: Settings) -> None:
    first = asyncio.run(list_tasks(settings, is_first_worker=True))
    other = asyncio.run(list_tasks(settings, is_first_worker=False))
    assert first - other == FOR_ALL
    assert {"impressions", "models", "keys", "items", "popularity"} <= other
