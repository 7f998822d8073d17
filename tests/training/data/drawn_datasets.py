"""Data sets for hypothesis: few users and instants, so that baskets and ties abound."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from tests.tiny import DAY, FIRST_AT, event_log
from training.data.dataset import Dataset

_event = st.tuples(st.integers(0, 4), st.integers(0, 8), st.integers(0, 9))


@st.composite
def datasets(draw: st.DrawFn, min_events: int = 1) -> Dataset:
    """Events of at most five users and nine items, on ten days."""
    happened = draw(st.lists(_event, min_size=min_events, max_size=60))
    return Dataset.of(
        event_log([(f"u{user}", f"i{item}", FIRST_AT + day * DAY) for user, item, day in happened])
    )


@st.composite
def datasets_of_distinct_items(draw: st.DrawFn) -> Dataset:
    """Every event has an item of its own, some of them unknown: a row names its event."""
    happened = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20)), min_size=1))
    dataset = Dataset.of(
        event_log(
            [
                (f"u{user}", f"i{number}", FIRST_AT + day * DAY)
                for number, (user, day) in enumerate(happened)
            ]
        )
    )
    is_known = draw(
        st.lists(st.sampled_from([1, 1, 1, 0]), min_size=len(dataset), max_size=len(dataset))
    )
    return replace(dataset, rows=(dataset.rows * is_known).astype(np.int32))
