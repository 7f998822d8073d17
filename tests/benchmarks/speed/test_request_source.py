from datetime import datetime
from pathlib import Path

import orjson
import pytest

from app.attention.schemas import AttentionRequest
from app.recommendations.schemas import RecommendationRequest
from benchmarks.speed.serving.cases import CASES, QUICK, PairCase
from benchmarks.speed.serving.request_source import (
    REPEATING_USERS,
    RecordedRequests,
    RequestKind,
    RequestSource,
)

UNTIL = 1_764_000_000


def draw(kind: RequestKind, count: int) -> list[bytes]:
    source = RequestSource(kind, port=8000, key="kairos_x", items=5_000, until=UNTIL)
    requests = source.draw(count // 2) + source.draw(count - count // 2)
    assert all(request.startswith(f"POST {kind.path} ".encode()) for request in requests)
    return [request.partition(b"\r\n\r\n")[2] for request in requests]


@pytest.mark.parametrize(
    "kind",
    [RequestKind(events=20), RequestKind(stored=True), RequestKind(explain="attention")],
)
def test_a_request_is_one_of_the_service(kind: RequestKind) -> None:
    body = draw(kind, 2)[0]
    request = RecommendationRequest.model_validate_json(body)
    assert (request.n, request.explain) == (10, kind.explain)
    assert (request.user_id is None) != kind.stored


def test_a_history_has_its_length_and_ends_before_now() -> None:
    (body, *_) = draw(RequestKind(events=20), 2)
    instants = [
        datetime.fromisoformat(event["timestamp"]) for event in orjson.loads(body)["history"]
    ]
    assert len(instants) == 20
    assert instants == sorted(instants)
    assert instants[-1].timestamp() < UNTIL


def test_recorded_histories_are_the_latest_events(tmp_path: Path) -> None:
    lines = ["user_id,item_id,timestamp"]
    lines += [f"u1,i{day},2026-01-{day:02}T12:00:00Z" for day in (3, 1, 2)]
    (tmp_path / "events.csv").write_text("\n".join(lines))
    (request,) = RecordedRequests(tmp_path / "events.csv", port=8000, key="kairos_x").draw(1)
    body = request.partition(b"\r\n\r\n")[2]
    RecommendationRequest.model_validate_json(body)
    assert [event["item_id"] for event in orjson.loads(body)["history"]] == ["i1", "i2", "i3"]
    assert orjson.loads(body)["query_time"] == "2026-01-04T12:00:00+00:00"


def test_a_sweep_has_its_instants() -> None:
    request = AttentionRequest.model_validate_json(draw(RequestKind(instants=100), 2)[0])
    assert len(set(request.query_times)) == 100


def test_distinct_histories_never_repeat() -> None:
    assert len({*draw(RequestKind(), 200)}) == 200


def test_repeating_histories_are_those_of_few_users() -> None:
    histories = {*map(bytes, draw(RequestKind(events=5, repeats=True), 500))}
    assert REPEATING_USERS / 2 < len(histories) <= REPEATING_USERS


def test_users_of_stored_histories_take_turns() -> None:
    users = [orjson.loads(body)["user_id"] for body in draw(RequestKind(stored=True), 4)]
    assert users == ["u0", "u1", "u2", "u3"]


def test_the_quick_cases_exist() -> None:
    assert {*QUICK} <= {*CASES}


def test_the_two_kinds_of_a_pair_differ() -> None:
    pairs = [case for case in CASES.values() if isinstance(case, PairCase)]
    assert pairs
    assert all(case.first != case.second for case in pairs)
