"""Which version a rollback leads to, by the record of changes alone."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.models.activation import rollback_target
from app.models.repository import Change
from app.models.schemas import ChangeKind


def recorded(*changes: tuple[ChangeKind, str | None, str | None]) -> list[Change]:
    """Changes by kind, version and the version that was found."""
    return [Change(0, "somebody", kind, version, found, None) for kind, version, found in changes]


@pytest.mark.parametrize(
    ("changes", "current", "before"),
    [
        pytest.param([], None, None, id="nothing was ever served"),
        pytest.param([], "a", None, id="no record of what is served"),
        pytest.param([("activate", "a", None)], "a", None, id="the first version"),
        pytest.param([("activate", "b", "a")], "b", "a", id="what was found counts"),
        pytest.param(
            [("publish", "a", None), ("retrain", "b", "a")], "b", "a", id="whatever made it current"
        ),
        pytest.param(
            [("activate", "a", None), ("activate", "b", "a"), ("rollback", "a", "b")],
            "a",
            None,
            id="what was rolled back is not gone back to",
        ),
        pytest.param(
            [("activate", "a", None), ("activate", "b", "a"), ("activate", "b", "b")],
            "b",
            "a",
            id="twice the same is one step",
        ),
        pytest.param(
            [("activate", "a", None), ("activate", "b", "a"), ("activate", "a", "b")],
            "a",
            "b",
            id="an older one named again is a step forward",
        ),
        pytest.param(
            [("activate", "b", "a"), ("traffic", "b", "b")], "b", "a", id="traffic is no step"
        ),
        pytest.param([("activate", "b", "a")], "c", "b", id="moved since without a word"),
        pytest.param([("activate", "b", "a")], None, "b", id="the pointer is gone"),
        pytest.param(
            [("activate", "b", "a"), ("activate", "d", "c")],
            "d",
            "c",
            id="moved in between without a word",
        ),
        pytest.param(
            [("activate", "b", "a"), ("rollback", "b", "c")], "b", "a", id="rolled back from there"
        ),
    ],
)
def test_a_rollback_leads_to(
    changes: Sequence[tuple[ChangeKind, str | None, str | None]],
    current: str | None,
    before: str | None,
) -> None:
    assert rollback_target(recorded(*changes), current) == before


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("activate"), st.sampled_from("abcd")),
            st.tuples(st.just("move without a word"), st.sampled_from("abcd")),
            st.just(("rollback", "")),
        ),
        max_size=30,
    )
)
def test_rollbacks_retrace_the_way_whatever_it_was(steps: list[tuple[str, str]]) -> None:
    """The record, replayed at every step, says what a plain stack of the versions says.

    Of moves without a word, only the last one before a change can be known of.
    """
    changes: list[Change] = []
    way: list[str] = []
    is_unsaid = False
    for step, version in steps:
        current = way[-1] if way else None
        before = rollback_target(changes, current)
        assert before == (way[-2] if len(way) > 1 else None)
        if step == "rollback" and before is not None:
            changes += recorded(("rollback", before, current))
            way.pop()
            is_unsaid = False
        elif step == "activate":
            changes += recorded(("activate", version, current))
            way += [version] if version != current else []
            is_unsaid = False
        elif step == "move without a word" and version != current:
            way = way[:-1] if is_unsaid else way
            is_unsaid = way[-1:] != [version]
            way += [version] if is_unsaid else []
