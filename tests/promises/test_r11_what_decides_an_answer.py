"""R11: what had happened by the query time decides an answer, and attention is what it claims."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from app.http.types import format_instant
from app.settings import Settings
from model.batch import collate
from model.clock import MICROSECONDS_PER_SECOND
from model.encoders import EncoderConfig
from model.history import Event, Query
from model.inference.predictor import Predictor
from model.inference.ranking import rank_rows
from model.inference.selection import Selection
from tests.app import tiny_bundle
from tests.app.client import Client, running
from tests.app.tiny_bundle import FIRST_AT, ITEM_IDS
from tests.promises.figures import Figures
from tests.promises.strength import Strength
from tests.zoo import ATTENDS, METHODS

QUERY_AT = 40 * 86_400
"""The query time, in seconds after `FIRST_AT`, as every instant here."""
LONGEST = 12

Happened = tuple[str, int]
"""An item, and when."""

ENCODER: TypeAdapter[EncoderConfig] = TypeAdapter(EncoderConfig)
GROUPS = ("one", "two", "three")
KINDS = ("mercer_concat", "din", "gru4rec", "personal_frequency")
"""Attention over time, attention of each item, no attention, no weights at all."""

items = st.sampled_from((*ITEM_IDS, "unknown", "unknown/too"))
past = st.lists(
    st.tuples(items, st.integers(0, QUERY_AT)),
    min_size=1,
    max_size=LONGEST,
    # Order decides between events of one instant; it is the sender's to say.
    unique_by=lambda event: event[1],
)
later = st.lists(st.tuples(items, st.integers(QUERY_AT + 1, 2 * QUERY_AT)), max_size=4)


Holds = Callable[..., None]
"""What must hold of a service and of what was drawn."""


@dataclass
class Trying:
    """Tries properties on drawn examples, against services of several kinds of models."""

    settings: Settings
    stores: Path
    examples: int
    tried: int = 0
    broken: int = 0

    def __call__(
        self, methods: Sequence[str], drawn: st.SearchStrategy[tuple[Any, ...]], holds: Holds
    ) -> None:
        for method in methods:
            with self.serving(method) as client:
                self._try(drawn, lambda *values, client=client: holds(client, *values))

    @contextmanager
    def serving(self, method: str) -> Iterator[Client]:
        """A service whose model is of one kind."""
        encoder, store = METHODS[method]["encoder"], self.stores / method
        groups = GROUPS if "modulation" in encoder else ()
        if not store.exists():
            drawn = ENCODER.validate_python(encoder)
            tiny_bundle.publish(store, seed=1, encoder=drawn, groups=groups)
        with running(self.settings.model_copy(update={"bundle_store": store})) as client:
            yield client

    def _try(self, drawn: st.SearchStrategy[tuple[Any, ...]], holds: Holds) -> None:
        @hypothesis_settings(
            max_examples=self.examples,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        @given(drawn)
        def example(values: tuple[Any, ...]) -> None:
            self.tried += 1
            try:
                holds(*values)
            except AssertionError:
                self.broken += 1
                raise

        example()


@pytest.fixture
def trying(settings: Settings, tmp_path: Path, strength: Strength) -> Trying:
    return Trying(settings, tmp_path / "kinds", strength.of(short=6, full=100))


def test_the_order_of_arrival_does_not_matter(trying: Trying, figures: Figures) -> None:
    def holds(client: Client, happened: list[Happened], shuffled: list[Happened], cut: int) -> None:
        expected = answers(client, history=sorted(happened, key=lambda event: event[1]))
        assert answers(client, user_id=store(client, shuffled[:cut], shuffled[cut:])) == expected
        assert answers(client, history=shuffled) == expected
        half = store(client, shuffled[:cut])
        assert answers(client, user_id=half, history=shuffled[cut:]) == expected

    drawn = past.flatmap(
        lambda events: st.tuples(
            st.just(events), st.permutations(events), st.integers(0, len(events))
        )
    )
    try:
        trying(KINDS, drawn, holds)
    finally:
        keep(figures, "order of arrival", trying)


def test_events_after_the_query_time_do_not_matter(trying: Trying, figures: Figures) -> None:
    def holds(client: Client, happened: list[Happened], afterwards: list[Happened]) -> None:
        expected = answers(client, history=happened)
        assert answers(client, user_id=store(client, afterwards, happened)) == expected
        assert answers(client, history=[*afterwards, *happened]) == expected

    try:
        trying(KINDS, st.tuples(past, later), holds)
    finally:
        keep(figures, "events after the query time", trying)


def test_duplicates_do_not_matter(trying: Trying, figures: Figures) -> None:
    def holds(client: Client, happened: list[Happened], again: list[int]) -> None:
        repeated = [happened[place % len(happened)] for place in again]
        expected = answers(client, history=happened)
        user_id = store(client, happened, repeated, [*repeated, *happened])
        assert answers(client, user_id=user_id) == expected
        assert answers(client, history=[*happened, *repeated]) == expected
        assert answers(client, user_id=user_id, history=repeated) == expected

    # Several events at one instant, too: a repetition must not change which of them came first.
    crowded = st.lists(st.tuples(items, st.integers(0, 3)), min_size=1, max_size=LONGEST)
    again = st.lists(st.integers(0, LONGEST), max_size=5)
    try:
        trying(KINDS, st.tuples(crowded | past, again), holds)
    finally:
        keep(figures, "duplicates", trying)


def test_attention_is_a_share_of_what_was_read(
    trying: Trying, strength: Strength, figures: Figures
) -> None:
    attending = [name for name, attends in ATTENDS.items() if attends]
    one_of_each = {METHODS[name]["encoder"]["kind"]: name for name in attending[::-1]}
    methods = strength.of(short=[*one_of_each.values(), "self_modulating"], full=attending)
    trying.examples = strength.of(short=4, full=25)  # of each encoder, three histories each
    furthest = 0.0

    def holds(client: Client, *histories: list[Happened]) -> None:
        nonlocal furthest
        for history in histories:
            furthest = max(furthest, off_by(client, history))
        require_nothing_on_padding(
            client.app.state.context.model_manager.require_current(), histories
        )

    try:
        trying(methods, st.tuples(past, past, past), holds)
    finally:
        keep(figures, "attention", trying, encoders=len(methods), sum_off_by=furthest)
    assert furthest <= 1e-5


def keep(figures: Figures, measured: str, trying: Trying, **more: float) -> None:
    figures.keep("R11", measured, examples=trying.tried, broken=trying.broken, **more)


def off_by(client: Client, history: list[Happened]) -> float:
    """How far the weights are from a sum of 1 at worst; they are none's debt, and of the past."""
    told = ask(client, "/v1/recommendations", history, n=1, explain="heads")
    attention = told["attention"]
    if attention is None:
        assert told["history_used"] == 0
        return 0.0
    mean = [event["weight"] for event in attention["events"]]
    sums = [sum(mean)]
    for head in attention["heads"]:
        assert len(head) == told["history_used"]
        assert min(head) >= 0
        sums.append(sum(head))
    body = {"history": as_sent(history), "query_times": [at(0), at(QUERY_AT // 2), at(QUERY_AT)]}
    swept = client.post("/v1/attention", body).json()
    for instant in swept["instants"]:
        read = [weight for weight in instant["weights"] if weight is not None]
        is_past = [event["timestamp"] <= instant["query_time"] for event in swept["events"]]
        assert [weight is not None for weight in instant["weights"]] == is_past
        not_read = len(read) - instant["history_used"]
        assert read[:not_read] == [0.0] * not_read
        assert min(read, default=0.0) >= 0
        if instant["history_used"]:
            sums.append(sum(read))
    return max(abs(total - 1) for total in sums) if attention["normalised"] else 0.0


def require_nothing_on_padding(predictor: Predictor, histories: Sequence[list[Happened]]) -> None:
    """Histories of unlike lengths side by side: what stands in for the missing weighs nothing."""
    query_time = FIRST_AT + QUERY_AT * MICROSECONDS_PER_SECOND
    known = [
        predictor.look_up_history(
            Query.as_of([Event(item_id, micros(s)) for item_id, s in one], query_time)
        )
        for one in histories
    ]
    read = [history for history in known if history.events]
    if not read:
        return
    batch = collate(read, [query_time] * len(read))
    rankings = rank_rows(
        predictor.bundle.recommender, predictor.bundle.index, batch, [Selection(n=1)] * len(read)
    )
    for history, ranking in zip(read, rankings, strict=True):
        assert ranking.attention is not None
        assert not ranking.attention[:, len(history.events) :].any()


def answers(
    client: Client, *, user_id: str | None = None, history: list[Happened] | None = None
) -> list[dict[str, Any]]:
    """What every question is answered about a history, but for what differs by its nature."""
    whose: dict[str, Any] = {
        "user_id": user_id,
        "merge": user_id is not None and history is not None,
    }
    told = [
        ask(client, "/v1/recommendations", history, n=20, explain="heads", **whose),
        ask(client, "/v1/rankings", history, item_ids=[*ITEM_IDS, "unknown"], **whose),
    ]
    swept = {**whose, "query_times": [at(QUERY_AT // 3), at(QUERY_AT)], "n": 3}
    if history is not None:
        swept["history"] = as_sent(history)
    told.append(client.post("/v1/attention", swept).json())
    for answer in told:
        assert "model_version" in answer, answer
        answer.pop("recommendation_id", None)
        answer["warnings"] = [
            code for code in answer["warnings"] if code != "events_after_query_time"
        ]
    return told


def ask(client: Client, path: str, history: list[Happened] | None, **asked: Any) -> dict[str, Any]:
    body = {"query_time": at(QUERY_AT), **asked}
    if history is not None:
        body["history"] = as_sent(history)
    response = client.post(path, body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def store(client: Client, *batches: list[Happened]) -> str:
    """Send batches of events of a new user, one after the other; answers who it is."""
    user_id = str(uuid4())
    for batch in batches:
        events = [{**event, "user_id": user_id} for event in as_sent(batch)]
        response = client.post("/v1/events", {"events": events})
        assert response.json()["rejected"] == []
    return user_id


def as_sent(happened: list[Happened]) -> list[dict[str, Any]]:
    return [
        {"item_id": item_id, "action": "view", "timestamp": at(seconds)}
        for item_id, seconds in happened
    ]


def at(seconds: int) -> str:
    return format_instant(micros(seconds))


def micros(seconds: int) -> int:
    return FIRST_AT + seconds * MICROSECONDS_PER_SECOND
