"""The order in which calls take turns."""

from dataclasses import dataclass

import pytest

from app.inference.fair_queue import CallClass, FairQueue, FlowKey, Turn

LONG, SHORT = CallClass.LONG, CallClass.SHORT


@dataclass(eq=False)
class Call:
    name: str
    flow: FlowKey
    cost: float
    used: float = 0.0
    turn: Turn | None = None


def call(name: str, cost: float, *, caller: str = "a", of: CallClass = LONG) -> Call:
    return Call(name, FlowKey(caller, of), cost)


def build(*calls: Call) -> FairQueue[Call]:
    queue: FairQueue[Call] = FairQueue(lambda: 0.0)
    for each in calls:
        queue.push(each)
    return queue


def run(queue: FairQueue[Call], turn: float, turns: int = 1000) -> list[str]:
    """Give turns of at most `turn` seconds; return the names of the calls that had them."""
    names = []
    while len(names) < turns and (taken := queue.pop()) is not None:
        names.append(taken.name)
        queue.charge(taken, min(turn, taken.cost - taken.used))
        if taken.used < taken.cost - 1e-9:
            queue.push(taken)
    return names


def test_callers_get_equal_seconds_however_many_calls_they_send() -> None:
    many = [call("flood", 1.0, caller="a") for _ in range(10)]
    turns = run(build(*many, call("one", 5.0, caller="b")), 1.0, turns=10)
    assert turns.count("one") == 5


def test_short_calls_get_four_times_the_seconds_of_long_ones() -> None:
    short = [call("short", 1.0, of=SHORT) for _ in range(50)]
    turns = run(build(call("long", 50.0), *short), 1.0, turns=50)
    assert turns.count("long") == 10


def test_a_caller_that_was_idle_goes_next() -> None:
    queue = build(call("sweep", 100.0))
    run(queue, 1.0, turns=20)
    queue.push(call("newcomer", 1.0, caller="b"))
    assert "newcomer" in run(queue, 1.0, turns=2)


def test_calls_of_one_caller_take_turns_until_the_smaller_ends() -> None:
    queue = build(call("sweep", 40.0), call("sweep", 40.0))
    run(queue, 1.0, turns=20)
    queue.push(call("page", 3.0))
    assert run(queue, 1.0, turns=9).count("page") == 3


def test_small_calls_that_keep_coming_do_not_starve_a_large_one() -> None:
    queue = build(call("large", 10.0))
    turns = []
    for _ in range(15):
        queue.push(call("small", 2.0))
        turns += run(queue, 1.0, turns=1)
    assert turns.count("large") >= 2


def test_calls_that_end_in_one_turn_run_in_the_order_of_arrival() -> None:
    assert run(build(*(call(name, 1.0) for name in "abc")), 2.0) == ["a", "b", "c"]


def test_a_call_beyond_its_estimate_is_expected_to_double() -> None:
    queue = build(call("liar", 1.0))
    taken = queue.pop()
    assert taken is not None
    queue.charge(taken, 4.0)
    queue.push(taken)
    assert queue.predict(FlowKey("a", LONG), 100.0).own_seconds == 4.0


def test_a_discarded_call_has_no_turn() -> None:
    given_up = call("given up", 1.0)
    queue = build(given_up, call("other", 1.0))
    assert queue.discard(given_up)
    assert not queue.discard(given_up)
    assert run(queue, 1.0) == ["other"]
    assert len(queue) == 0


def test_an_idle_queue_forgets_what_callers_have_used() -> None:
    queue = build(call("sweep", 100.0))
    run(queue, 1.0)
    queue.settle()
    for caller in ("a", "b"):
        queue.push(call(caller, 2.0, caller=caller))
    assert run(queue, 1.0) == ["a", "b", "a", "b"]


def test_callers_that_left_are_forgotten() -> None:
    queue = build(call("sweep", 1e9))
    for number in range(1000):
        queue.push(call("once", 0.5, caller=f"caller {number}"))
        run(queue, 1.0, turns=2)
    assert len(queue._flows) < 200


def test_a_call_waits_for_its_caller_and_shares_of_others() -> None:
    queue = build(*(call("own", 2.0) for _ in range(3)), call("other", 50.0, caller="b"))
    prospect = queue.predict(FlowKey("a", LONG), 2.0)
    assert (prospect.waiting, prospect.own_seconds, prospect.share) == (3, 6.0, 0.5)
    assert prospect.seconds == pytest.approx(12.0)


def test_a_call_waits_for_as_much_of_larger_ones_as_its_own() -> None:
    queue = build(call("sweep", 50.0), call("sweep", 50.0), call("page", 0.5))
    assert queue.predict(FlowKey("a", LONG), 1.0).own_seconds == 2.5


def test_a_newcomer_waits_for_nobody() -> None:
    queue = build(call("sweep", 50.0))
    assert queue.predict(FlowKey("b", LONG), 50.0).seconds == 0.0
