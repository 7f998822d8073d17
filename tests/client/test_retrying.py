"""The attempts of a call, without sockets or sleeps."""

import httpx
from hypothesis import given
from hypothesis import strategies as st

from kairos_client.calls import Call, Idempotency, parse_nothing
from kairos_client.errors import KairosError
from kairos_client.retrying import Outcome, RawResponse, Retries, Send, Wait, attempt_call

REQUEST = httpx.Request("GET", "http://localhost/")


def response(status: int, retry_after: str) -> RawResponse:
    return RawResponse(status, httpx.Headers({b"retry-after": retry_after.encode()}), b"")


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
        response,
        st.sampled_from([200, 204, 301, 400, 404, 409, 422, 429, 500, 502, 503, 504]),
        st.sampled_from(["", "0", "3", "7200", "-1", "soon", "²", "Fri, 31 Dec 9999 23:59:59 GMT"]),
    ),
)


@given(
    st.lists(st.tuples(OUTCOMES, st.floats(0, 30)), min_size=1, max_size=20),
    st.sampled_from(Idempotency),
    st.builds(
        Retries,
        attempts=st.integers(1, 6),
        first_wait_seconds=st.floats(0, 20),
        longest_wait_seconds=st.floats(0, 20),
        deadline_seconds=st.floats(0.1, 90),
    ),
)
def test_attempts_respect_their_limits_for_any_outcomes(
    outcomes: list[tuple[RawResponse | httpx.RequestError, float]],
    idempotency: Idempotency,
    retries: Retries,
) -> None:
    now = 0.0
    call = Call("recommend", "POST", "/", parse_nothing, idempotency)
    steps = attempt_call(call, retries, clock=lambda: now)
    sent: list[Outcome] = []
    outcome: Outcome = None
    has_result = False
    try:
        while len(sent) <= len(outcomes):
            step = steps.send(outcome)
            outcome = None
            if isinstance(step, Wait):
                assert 0 <= step.seconds <= 2 * retries.longest_wait_seconds
                now += step.seconds
                assert now < retries.deadline_seconds
            else:
                assert isinstance(step, Send)
                outcome, seconds = outcomes[len(sent) % len(outcomes)]
                sent.append(outcome)
                now += seconds
    except StopIteration:
        has_result = True
    except KairosError:
        pass
    assert len(sent) <= retries.attempts
    assert has_result == (isinstance(sent[-1], RawResponse) and sent[-1].is_success)
    for failed in sent[:-1]:
        assert not isinstance(failed, httpx.DecodingError)
        status = failed.status if isinstance(failed, RawResponse) else None
        if idempotency is Idempotency.NOT_IDEMPOTENT:
            assert status == 429 or isinstance(failed, httpx.ConnectError)
        else:
            assert idempotency is Idempotency.IDEMPOTENT
            assert status in {None, 429, 502, 503, 504}


def test_waits_are_uniform_over_a_doubling_interval() -> None:
    retries = Retries(first_wait_seconds=1, longest_wait_seconds=8)
    for attempt, most in ((1, 1), (2, 2), (3, 4), (4, 8), (9, 8), (2000, 8)):
        waits = [retries.draw_wait(attempt, None) for _ in range(300)]
        assert 0 <= min(waits) < 0.1 * most
        assert 0.9 * most < max(waits) <= most
    assert 3 <= retries.draw_wait(1, 3.0) <= 4
    assert 8 <= retries.draw_wait(1, 7200.0) <= 9
