"""R11: an answer depends only on events up to the query time; attention weights sum to 1."""

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
from model.inference.steps import complete
from tests.app import tiny_bundle
from tests.app.client import Client, running
from tests.app.tiny_bundle import FIRST_AT, ITEM_IDS
from tests.promises.figures import Figures
from tests.promises.strength import Strength
from tests.zoo import ATTENDS, METHODS

QUERY_AT = 40 * 86_400
"""The query time, in seconds after `FIRST_AT`, as every instant here."""
LONGEST = 12

PastEvent = tuple[str, int]
"""An item, and its time in seconds."""

ENCODER: TypeAdapter[EncoderConfig] = TypeAdapter(EncoderConfig)
GROUPS = ("one", "two", "three")
KINDS = ("mercer_concat", "din", "gru4rec", "personal_frequency")
"""Attention over time, attention of each item, no attention, no weights at all."""

items = st.sampled_from((*ITEM_IDS, "unknown", "unknown/too"))
past = st.lists(
    st.tuples(items, st.integers(0, QUERY_AT)),
    min_size=1,
    max_size=LONGEST,
)
crowded = st.lists(st.tuples(items, st.integers(0, 3)), min_size=2, max_size=LONGEST)
"""Events of few instants."""
later = st.lists(st.tuples(items, st.integers(QUERY_AT + 1, 2 * QUERY_AT)), max_size=4)


Property = Callable[..., None]
"""A property of a service and generated values; raises AssertionError if violated."""


@dataclass
class PropertyCheck:
    """Checks properties on generated examples, against services with several kinds of models."""

    settings: Settings
    stores: Path
    examples: int
    checked: int = 0
    broken: int = 0

    def __call__(
        self, methods: Sequence[str], drawn: st.SearchStrategy[tuple[Any, ...]], holds: Property
    ) -> None:
        for method in methods:
            with self.run_service(method) as client:
                self._check(drawn, lambda *values, client=client: holds(client, *values))

    @contextmanager
    def run_service(self, method: str) -> Iterator[Client]:
        """Run a service with a model of one method."""
        encoder, store = METHODS[method]["encoder"], self.stores / method
        groups = GROUPS if "modulation" in encoder else ()
        if not store.exists():
            drawn = ENCODER.validate_python(encoder)
            tiny_bundle.publish(store, seed=1, encoder=drawn, groups=groups)
        with running(self.settings.model_copy(update={"bundle_store": store})) as client:
            yield client

    def _check(self, drawn: st.SearchStrategy[tuple[Any, ...]], holds: Property) -> None:
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
            self.checked += 1
            try:
                holds(*values)
            except AssertionError:
                self.broken += 1
                raise

        example()


@pytest.fixture
def check(settings: Settings, tmp_path: Path, strength: Strength) -> PropertyCheck:
    return PropertyCheck(settings, tmp_path / "kinds", strength.select(short=6, full=100))


def test_the_order_of_arrival_does_not_matter(check: PropertyCheck, figures: Figures) -> None:
    def holds(client: Client, events: list[PastEvent], arrived: list[PastEvent], cut: int) -> None:
        halves = arrived[:cut], arrived[cut:]
        expected = request_answers(client, history=sorted(events, key=lambda event: event[1]))
        assert request_answers(client, user_id=store(client, *halves)) == expected
        assert request_answers(client, history=arrived) == expected
        half = store(client, halves[0])
        assert request_answers(client, user_id=half, history=halves[1]) == expected

    drawn = past.flatmap(
        lambda events: st.tuples(
            st.just(events), st.permutations(events), st.integers(0, len(events))
        )
    )
    try:
        check(KINDS, drawn, holds)
    finally:
        record(figures, "order of arrival", check)


def test_events_after_the_query_time_do_not_matter(check: PropertyCheck, figures: Figures) -> None:
    def holds(client: Client, events: list[PastEvent], later: list[PastEvent]) -> None:
        expected = request_answers(client, history=events)
        assert request_answers(client, user_id=store(client, later, events)) == expected
        assert request_answers(client, history=[*later, *events]) == expected

    try:
        check(KINDS, st.tuples(past, later), holds)
    finally:
        record(figures, "events after the query time", check)


def test_duplicates_do_not_matter(check: PropertyCheck, figures: Figures) -> None:
    def holds(client: Client, events: list[PastEvent], again: list[int]) -> None:
        repeated = [events[index % len(events)] for index in again]
        expected = request_answers(client, history=events)
        user_id = store(client, events, repeated, [*repeated, *events])
        assert request_answers(client, user_id=user_id) == expected
        assert request_answers(client, history=[*events, *repeated]) == expected
        assert request_answers(client, user_id=user_id, history=repeated) == expected

    again = st.lists(st.integers(0, LONGEST), max_size=5)
    try:
        check(KINDS, st.tuples(crowded | past, again), holds)
    finally:
        record(figures, "duplicates", check)


def test_the_order_within_an_instant_does_not_matter(
    check: PropertyCheck, strength: Strength, figures: Figures
) -> None:
    def holds(client: Client, events: list[PastEvent], arrived: list[PastEvent], cut: int) -> None:
        expected = request_answers(client, history=events)
        assert request_answers(client, history=arrived) == expected
        assert request_answers(client, user_id=store(client, arrived)) == expected
        half = store(client, arrived[cut:])
        assert request_answers(client, user_id=half, history=arrived[:cut]) == expected

    drawn = crowded.flatmap(
        lambda events: st.tuples(
            st.just(events), st.permutations(events), st.integers(0, len(events))
        )
    )
    methods = strength.select(short=KINDS, full=(*METHODS,))
    check.examples = strength.select(short=6, full=25)
    try:
        check(methods, drawn, holds)
    finally:
        record(figures, "equal instants", check, encoders=len(methods))


def test_attention_weights_are_shares_of_the_read_events(
    check: PropertyCheck, strength: Strength, figures: Figures
) -> None:
    attending = [name for name, attends in ATTENDS.items() if attends]
    one_of_each = {METHODS[name]["encoder"]["kind"]: name for name in attending[::-1]}
    methods = strength.select(short=[*one_of_each.values(), "self_modulating"], full=attending)
    check.examples = strength.select(short=4, full=25)  # of each encoder, three histories each
    furthest = 0.0

    def holds(client: Client, *histories: list[PastEvent]) -> None:
        nonlocal furthest
        for history in histories:
            furthest = max(furthest, compute_deviation(client, history))
        assert_no_weight_on_padding(
            client.app.state.context.model_manager.require_current(), histories
        )

    try:
        check(methods, st.tuples(past, past, past), holds)
    finally:
        record(figures, "attention", check, encoders=len(methods), sum_off_by=furthest)
    assert furthest <= 1e-5


def record(figures: Figures, measured: str, check: PropertyCheck, **more: float) -> None:
    figures.record("R11", measured, examples=check.checked, broken=check.broken, **more)


def compute_deviation(client: Client, history: list[PastEvent]) -> float:
    """Compute the largest deviation of the sums of weights from 1; check signs and the past."""
    answer = send(client, "/v1/recommendations", history, n=1, explain="heads")
    attention = answer["attention"]
    if attention is None:
        assert answer["history_used"] == 0
        return 0.0
    mean = [event["weight"] for event in attention["events"]]
    sums = [sum(mean)]
    for head in attention["heads"]:
        assert len(head) == answer["history_used"]
        assert min(head) >= 0
        sums.append(sum(head))
    body = {
        "history": to_json(history),
        "query_times": [format_at(0), format_at(QUERY_AT // 2), format_at(QUERY_AT)],
    }
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


def assert_no_weight_on_padding(predictor: Predictor, histories: Sequence[list[PastEvent]]) -> None:
    """Padding of a batch of histories of different lengths has zero weight."""
    query_time = FIRST_AT + QUERY_AT * MICROSECONDS_PER_SECOND
    known = [
        predictor.look_up_history(
            Query.as_of([Event(item_id, to_micros(s)) for item_id, s in one], query_time)
        )
        for one in histories
    ]
    read = [history for history in known if history.events]
    if not read:
        return
    batch = collate(read, [query_time] * len(read))
    recommender, index = predictor.bundle.recommender, predictor.bundle.index
    rankings = complete(rank_rows(recommender, index, batch, [Selection(n=1)] * len(read)))
    for history, ranking in zip(read, rankings, strict=True):
        assert ranking.attention is not None
        assert not ranking.attention[:, len(history.events) :].any()


def request_answers(
    client: Client, *, user_id: str | None = None, history: list[PastEvent] | None = None
) -> list[dict[str, Any]]:
    """Request every kind of answer about a history, without ids that always differ."""
    source: dict[str, Any] = {
        "user_id": user_id,
        "merge": user_id is not None and history is not None,
    }
    answers = [
        send(client, "/v1/recommendations", history, n=20, explain="heads", **source),
        send(client, "/v1/rankings", history, item_ids=[*ITEM_IDS, "unknown"], **source),
    ]
    swept = {**source, "query_times": [format_at(QUERY_AT // 3), format_at(QUERY_AT)], "n": 3}
    if history is not None:
        swept["history"] = to_json(history)
    answers.append(client.post("/v1/attention", swept).json())
    for answer in answers:
        assert "model_version" in answer, answer
        answer.pop("recommendation_id", None)
        answer["warnings"] = [
            code for code in answer["warnings"] if code != "events_after_query_time"
        ]
    return answers


def send(
    client: Client, path: str, history: list[PastEvent] | None, **fields: Any
) -> dict[str, Any]:
    """Send a request at `QUERY_AT`, and return its answer."""
    body = {"query_time": format_at(QUERY_AT), **fields}
    if history is not None:
        body["history"] = to_json(history)
    response = client.post(path, body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def store(client: Client, *batches: list[PastEvent]) -> str:
    """Send batches of events of a new user in turn; returns the user's id."""
    user_id = str(uuid4())
    for batch in batches:
        events = [{**event, "user_id": user_id} for event in to_json(batch)]
        response = client.post("/v1/events", {"events": events})
        assert response.json()["rejected"] == []
    return user_id


def to_json(events: list[PastEvent]) -> list[dict[str, Any]]:
    return [
        {"item_id": item_id, "action": "view", "timestamp": format_at(seconds)}
        for item_id, seconds in events
    ]


def format_at(seconds: int) -> str:
    return format_instant(to_micros(seconds))


def to_micros(seconds: int) -> int:
    return FIRST_AT + seconds * MICROSECONDS_PER_SECOND
