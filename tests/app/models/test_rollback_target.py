"""The version that a rollback activates, computed from the record of changes alone."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.models.activation import find_rollback_target
from app.models.repository import Activation
from app.models.schemas import ChangeKind


def build_changes(*changes: tuple[ChangeKind, str | None, str | None]) -> list[Activation]:
    """Builds changes of a kind, a version and the version that was current before."""
    return [Activation(*change) for change in changes]


@pytest.mark.parametrize(
    ("changes", "current", "before"),
    [
        pytest.param([], None, None, id="no version was ever current"),
        pytest.param([], "a", None, id="the current version has no record"),
        pytest.param([("activate", "a", None)], "a", None, id="the first version"),
        pytest.param([("activate", "b", "a")], "b", "a", id="the version that was current before"),
        pytest.param(
            [("publish", "a", None), ("retrain", "b", "a")],
            "b",
            "a",
            id="activated by a retraining",
        ),
        pytest.param(
            [("activate", "a", None), ("activate", "b", "a"), ("rollback", "a", "b")],
            "a",
            None,
            id="a rollback is not undone by another",
        ),
        pytest.param(
            [("activate", "a", None), ("activate", "b", "a"), ("activate", "b", "b")],
            "b",
            "a",
            id="activating twice is one step",
        ),
        pytest.param(
            [("activate", "a", None), ("activate", "b", "a"), ("activate", "a", "b")],
            "a",
            "b",
            id="activating an older version is a new step",
        ),
        pytest.param([("activate", "b", "a")], "c", "b", id="moved since without a record"),
        pytest.param([("activate", "b", "a")], None, "b", id="the pointer is missing"),
        pytest.param(
            [("activate", "b", "a"), ("activate", "d", "c")],
            "d",
            "c",
            id="moved in between without a record",
        ),
        pytest.param(
            [("activate", "b", "a"), ("rollback", "b", "c")],
            "b",
            "a",
            id="rolled back from an unrecorded version",
        ),
    ],
)
def test_a_rollback_activates_the_version_before(
    changes: Sequence[tuple[ChangeKind, str | None, str | None]],
    current: str | None,
    before: str | None,
) -> None:
    assert find_rollback_target(build_changes(*changes), current) == before


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("activate"), st.sampled_from("abcd")),
            st.tuples(st.just("unrecorded move"), st.sampled_from("abcd")),
            st.just(("rollback", "")),
        ),
        max_size=30,
    )
)
def test_rollbacks_pop_a_stack_of_versions_for_any_changes(steps: list[tuple[str, str]]) -> None:
    """The target equals the top of a plain stack of versions at every step.

    Of several unrecorded moves in a row, only the last one shows in the next change.
    """
    changes: list[Activation] = []
    stack: list[str] = []
    is_unrecorded = False
    for step, version in steps:
        current = stack[-1] if stack else None
        before = find_rollback_target(changes, current)
        assert before == (stack[-2] if len(stack) > 1 else None)
        if step == "rollback" and before is not None:
            changes += build_changes(("rollback", before, current))
            stack.pop()
            is_unrecorded = False
        elif step == "activate":
            changes += build_changes(("activate", version, current))
            stack += [version] if version != current else []
            is_unrecorded = False
        elif step == "unrecorded move" and version != current:
            stack = stack[:-1] if is_unrecorded else stack
            is_unrecorded = stack[-1:] != [version]
            stack += [version] if is_unrecorded else []
