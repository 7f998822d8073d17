"""Long requests that are repeated right after a refusal."""

import pytest

from app.errors import OverloadedError
from app.inference.refusals import RecentRefusals


def test_a_request_is_refused_until_it_may_be_repeated() -> None:
    now = 0.0
    refusals = RecentRefusals(clock=lambda: now)
    refusals.add("a", 80_000, OverloadedError("inference", 3, seconds=5))
    for size in (80_000, 90_000):
        with pytest.raises(OverloadedError):
            refusals.require_none("a", size)
    now = 5.0
    refusals.require_none("a", 80_000)


def test_smaller_requests_and_other_callers_are_not_refused() -> None:
    refusals = RecentRefusals(clock=lambda: 0.0)
    refusals.add("a", 80_000, OverloadedError("inference", 3))
    refusals.require_none("a", 79_999)
    refusals.require_none("b", 80_000)


def test_the_callers_that_are_remembered_are_bounded() -> None:
    refusals = RecentRefusals(clock=lambda: 0.0)
    for number in range(5000):
        refusals.add(f"caller {number}", 1, OverloadedError("inference", 3))
    refusals.require_none("caller 0", 1)
    with pytest.raises(OverloadedError):
        refusals.require_none("caller 4999", 1)
