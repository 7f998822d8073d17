"""What holds for every test: the same random numbers, one thread, no deadline on a slow machine."""

import inspect
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import structlog
import torch
from hypothesis import settings

# The same examples every time: a change that passed here passes everywhere. The slow tests try more
# of them (`thorough`); fresh ones are drawn with `--hypothesis-profile=explore`.
settings.register_profile("fast", deadline=None, derandomize=True, max_examples=30)
settings.register_profile("thorough", deadline=None, derandomize=True, max_examples=100)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile("fast")

torch.set_num_threads(1)

# Every application builds its schemas anew, and for each looks the docstrings up in the source.
_get_source_lines = inspect.getsourcelines
_get_lines_of_class = cache(_get_source_lines)


def _get_source_lines_once(object: Any) -> tuple[list[str], int]:
    return _get_lines_of_class(object) if isinstance(object, type) else _get_source_lines(object)


inspect.getsourcelines = _get_source_lines_once

# By default, structlog formats an exception with all local variables, which takes seconds.
structlog.configure(
    processors=[
        *structlog.get_config()["processors"][:-1],
        structlog.dev.ConsoleRenderer(
            colors=False, exception_formatter=structlog.dev.plain_traceback
        ),
    ]
)


SLOW_FOLDERS = {
    *("benchmarks", "client", "deployment", "e2e", "kairos", "operations", "promises"),
    "training/retraining",
}
"""Proxies, processes, every model end to end, retraining: `make test-all`, not `make test`."""

SLOW_FIXTURES = {
    *("bundle_store", "database_url", "migrated_database_url", "postgresql_server", "world"),
}
"""A service, a database or a trained model for one test: half a second each, and a thousand tests.
What a service answers is tested fast where tests share one (`shared_client`)."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of slow folders, and those that start what is slow, as slow."""
    here = Path(__file__).parent
    for item in items:
        above = {folder.as_posix() for folder in item.path.relative_to(here).parents}
        if "scale" in above:  # a tier of its own, with packages of its own
            item.add_marker(pytest.mark.scale)
            continue
        if "browser" in above:  # a tier of its own, of which few are slow
            continue
        if not SLOW_FOLDERS.isdisjoint(above) or not SLOW_FIXTURES.isdisjoint(
            getattr(item, "fixturenames", ())
        ):
            item.add_marker(pytest.mark.slow)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The one option of these tests."""
    parser.addoption(
        "--full-strength",
        action="store_true",
        help="try the promises in earnest: half an hour, on an idle machine",
    )


@pytest.fixture(autouse=True)
def _same_random_numbers() -> None:
    torch.manual_seed(0)
    np.random.seed(0)
