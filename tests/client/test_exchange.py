"""The course of an exchange by itself: no socket, no sleep."""

import httpx
from hypothesis import given
from hypothesis import strategies as st

from kairos_client.calls import Again, Call, nothing
from kairos_client.errors import KairosError
from kairos_client.exchange import Outcome, Send, Wait, exchange
from kairos_client.failures import Reply
from kairos_client.retries import Retries

REQUEST = httpx.Request("GET", "http://localhost/")


def reply(status: int, retry_after: str) -> Reply:
    return Reply(status, httpx.Headers({b"retry-after": retry_after.encode()}), b"")


OUTCOMES = st.one_of(
    st.sampled_from(
        [
            httpx.ConnectError("refused", request=REQUEST),
            httpx.ReadError("reset", request=REQUEST),
            httpx.ReadTimeout("", request=REQUEST),
            httpx.RemoteProtocolError("half", request=REQUEST),
            httpx.DecodingError("no gzip", request=REQUEST),
        ]
    ),
    st.builds(
        reply,
        st.sampled_from([200, 204, 301, 400, 404, 409, 422, 429, 500, 502, 503, 504]),
        st.sampled_from(["", "0", "3", "7200", "-1", "soon", "²", "Fri, 31 Dec 9999 23:59:59 GMT"]),
    ),
)


@given(
    st.lists(st.tuples(OUTCOMES, st.floats(0, 30)), min_size=1, max_size=20),
    st.sampled_from(Again),
    st.builds(
        Retries,
        attempts=st.integers(1, 6),
        first_wait_seconds=st.floats(0, 20),
        longest_wait_seconds=st.floats(0, 20),
        deadline_seconds=st.floats(0.1, 90),
    ),
)
def test_an_exchange_keeps_its_promises_whatever_comes_back(
    coming: list[tuple[Reply | httpx.RequestError, float]], again: Again, retries: Retries
) -> None:
    now = 0.0
    call = Call("ask", "POST", "/", nothing, again)
    steps = exchange(call, retries, clock=lambda: now)
    sent: list[Outcome] = []
    outcome: Outcome = None
    answered = False
    try:
        while len(sent) <= len(coming):
            step = steps.send(outcome)
            outcome = None
            if isinstance(step, Wait):
                assert 0 <= step.seconds <= 2 * retries.longest_wait_seconds
                now += step.seconds
                assert now < retries.deadline_seconds
            else:
                assert isinstance(step, Send)
                outcome, seconds = coming[len(sent) % len(coming)]
                sent.append(outcome)
                now += seconds
    except StopIteration:
        answered = True
    except KairosError:
        pass
    assert len(sent) <= retries.attempts
    assert answered == (isinstance(sent[-1], Reply) and sent[-1].is_success)
    for failed in sent[:-1]:
        assert not isinstance(failed, httpx.DecodingError)
        status = failed.status if isinstance(failed, Reply) else None
        if again is Again.UNTOUCHED:
            assert status == 429 or isinstance(failed, httpx.ConnectError)
        else:
            assert again is Again.SAFELY
            assert status in {None, 429, 502, 503, 504}


def test_waits_are_spread_over_the_whole_of_a_doubling_interval() -> None:
    retries = Retries(first_wait_seconds=1, longest_wait_seconds=8)
    for attempt, most in ((1, 1), (2, 2), (3, 4), (4, 8), (9, 8), (2000, 8)):
        waits = [retries.wait(attempt, None) for _ in range(300)]
        assert 0 <= min(waits) < 0.1 * most
        assert 0.9 * most < max(waits) <= most
    assert 3 <= retries.wait(1, 3.0) <= 4
    assert 8 <= retries.wait(1, 7200.0) <= 9
