"""Authentication, roles and rate limits, decided on the request alone."""

from dataclasses import replace
from typing import get_args

import pytest
from starlette.requests import Request

from app.auth.access import LOOPBACK, AccessControl
from app.auth.key_cache import Key, KeyCache, Role, digest_key, generate_key
from app.auth.local_token import LocalToken
from app.auth.rate_limiter import RateLimiter
from app.errors import (
    DatabaseUnavailableError,
    ForbiddenError,
    RateLimitedError,
    ServiceError,
    UnauthenticatedError,
)
from model.clock import MICROSECONDS_PER_SECOND, now
from tests.app.auth.bare_requests import HERE, build_request
from tests.app.clock import Clock

TOKEN = LocalToken()
LOCAL = {**HERE, "authorization": f"Bearer {TOKEN.secret}"}


def make_key(role: Role = "read", **changed: object) -> tuple[Key, str]:
    key_id, secret = generate_key()
    key = Key(
        key_id=key_id,
        name="shop",
        role=role,
        digest=digest_key(secret),
        requests_per_second=None,
        created_at=0,
        expires_at=None,
        revoked_at=None,
    )
    return replace(key, **changed), secret  # type: ignore[arg-type]


def bearer_headers(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}", "host": "kairos.example"}


def access_control_with(
    *keys: Key,
    requests_per_second: float = 10.0,
    open_to_loopback: bool = False,
    is_demo: bool = False,
    clock: Clock | None = None,
) -> AccessControl:
    cache = KeyCache()
    cache.replace(keys)
    clock = clock or Clock()
    return AccessControl(
        cache,
        TOKEN,
        requests_per_second=requests_per_second,
        open_to_loopback=open_to_loopback,
        is_demo=is_demo,
        key_limiter=RateLimiter(most=3, clock=clock),
        network_limiter=RateLimiter(most=3, clock=clock),
    )


def test_a_valid_key_is_authorized_under_its_name() -> None:
    key, secret = make_key()
    caller = access_control_with(key).authorize(build_request(bearer_headers(secret)), "read")
    assert caller.name == f"shop ({key.key_id})"


@pytest.mark.parametrize("role", get_args(Role))
def test_a_caller_has_the_role_of_its_key(role: Role) -> None:
    key, secret = make_key(role)
    caller = access_control_with(key).authorize(build_request(bearer_headers(secret)), role)
    assert (caller.role, caller.has_key) == (role, True)
    assert secret not in repr(caller)


def test_the_loopback_caller_is_an_admin_without_a_key() -> None:
    assert (LOOPBACK.name, LOOPBACK.role, LOOPBACK.has_key) == ("loopback", "admin", False)


@pytest.mark.parametrize(
    "headers",
    [
        lambda secret: {"authorization": f"Bearer {secret}"},
        lambda secret: {"authorization": f"bearer   {secret} "},
        lambda secret: {"x-api-key": secret},
    ],
)
def test_a_key_is_accepted_in_either_header(headers: object) -> None:
    key, secret = make_key()
    access_control_with(key).authorize(build_request(headers(secret)), "read")  # type: ignore[operator]


REACH = {"read": {"read"}, "ingest": {"ingest"}, "admin": {"read", "ingest", "admin"}}


@pytest.mark.parametrize("needed", get_args(Role))
@pytest.mark.parametrize("role", get_args(Role))
def test_a_role_authorizes_its_operations(role: Role, needed: Role) -> None:
    key, secret = make_key(role)
    control = access_control_with(key)
    if needed in REACH[role]:
        control.authorize(build_request(bearer_headers(secret)), needed)
    else:
        roles = "'admin'" if needed == "admin" else f"'{needed}' or 'admin'"
        with pytest.raises(ForbiddenError, match=f"the role {roles}, .*has '{role}'"):
            control.authorize(build_request(bearer_headers(secret)), needed)


def test_a_role_of_a_later_version_authorizes_nothing() -> None:
    key, secret = make_key("auditor")  # type: ignore[arg-type]
    with pytest.raises(ForbiddenError):
        access_control_with(key).authorize(build_request(bearer_headers(secret)), "read")


def test_revoked_and_expired_keys_are_refused() -> None:
    for ended in ({"revoked_at": 1}, {"expires_at": now()}, {"expires_at": 1}):
        key, secret = make_key("admin", **ended)
        with pytest.raises(UnauthenticatedError, match="not valid"):
            access_control_with(key).authorize(build_request(bearer_headers(secret)), "read")
    key, secret = make_key(expires_at=now() + 3600 * MICROSECONDS_PER_SECOND)
    access_control_with(key).authorize(build_request(bearer_headers(secret)), "read")


def alter(secret: str) -> list[str]:
    head, tail = secret[:24], secret[24:]
    other = "A" if tail[-1] != "A" else "B"
    return [
        "",
        "x",
        secret[:-1],
        secret + "A",
        secret + "\n",
        head + tail[:-1] + other,
        head.upper() + tail,
        secret.replace("kairos_", "kairos__"),
        head,
        "\xa0" + secret,
        secret + "\x85",
        "kairos_" + "ä" * 16 + "_" + "é" * 43,
        "A" * 60_000,
        secret * 500,
    ]


@pytest.mark.parametrize("number", range(14))
def test_an_altered_key_is_refused(number: int) -> None:
    key, secret = make_key("admin")
    for headers in (bearer_headers(alter(secret)[number]), {"x-api-key": alter(secret)[number]}):
        with pytest.raises(UnauthenticatedError):
            access_control_with(key).authorize(build_request(headers), "read")


def test_a_secret_with_the_id_of_another_key_is_refused() -> None:
    (one, first), (other, second) = make_key("read"), make_key("admin")
    mixed = second[:24] + first[24:]
    with pytest.raises(UnauthenticatedError):
        access_control_with(one, other).authorize(build_request(bearer_headers(mixed)), "read")


@pytest.mark.parametrize(
    "headers",
    [
        lambda secret: [("authorization", f"Bearer {secret}")] * 2,
        lambda secret: [("authorization", "Bearer x"), ("authorization", f"Bearer {secret}")],
        lambda secret: [("authorization", "Basic eDp5"), ("x-api-key", secret)],
        lambda secret: [("x-api-key", secret), ("x-api-key", "x")],
    ],
)
def test_two_keys_in_one_request_are_refused(headers: object) -> None:
    key, secret = make_key()
    with pytest.raises(UnauthenticatedError, match="carries one key, but this one has 2"):
        access_control_with(key).authorize(build_request(headers(secret)), "read")  # type: ignore[operator]


@pytest.mark.parametrize("scheme", ["Basic", "Digest", "Token", "", "BearerX"])
def test_other_schemes_are_refused(scheme: str) -> None:
    key, secret = make_key()
    with pytest.raises(UnauthenticatedError, match="not valid"):
        access_control_with(key).authorize(
            build_request({"authorization": f"{scheme} {secret}"}), "read"
        )


def test_a_key_in_the_url_is_refused_despite_a_valid_header() -> None:
    key, secret = make_key()
    encoded = f"q=x&key={secret.replace('_', '%5F')}"
    for query in (f"api_key={secret}", encoded):
        for headers in (HERE, bearer_headers(secret)):
            with pytest.raises(UnauthenticatedError, match="in the URL") as refused:
                access_control_with(key, open_to_loopback=True).authorize(
                    build_request(headers, query=query), "read"
                )
            assert secret not in str(refused.value)


def test_without_any_key_the_local_token_takes_its_place() -> None:
    for headers in (LOCAL, {**HERE, "x-api-key": TOKEN.secret}):
        assert access_control_with().authorize(build_request(headers), "admin") is LOOPBACK


@pytest.mark.parametrize("role", get_args(Role))
def test_a_local_request_without_the_token_is_refused(role: Role) -> None:
    for open_to_loopback in (False, True):
        control = access_control_with(open_to_loopback=open_to_loopback)
        with pytest.raises(UnauthenticatedError, match="kairos dashboard prints"):
            control.authorize(build_request(), role)
        with pytest.raises(UnauthenticatedError, match="kairos dashboard prints"):
            control.authorize(build_request(), role, is_demo_read=True)


def test_the_token_of_another_process_is_refused() -> None:
    other = {**HERE, "authorization": f"Bearer {LocalToken().secret}"}
    with pytest.raises(UnauthenticatedError, match="that of the running process"):
        access_control_with().authorize(build_request(other), "read")


@pytest.mark.parametrize(
    ("sent", "address", "advice"),
    [
        (LOCAL, "192.0.2.1", "comes from another address; send Authorization: Bearer kairos_"),
        ({**LOCAL, "x-forwarded": "for=1"}, "127.0.0.1", "came through a proxy; send"),
        ({**LOCAL, "host": "box"}, "127.0.0.1", "'box' rather than localhost or 127.0.0.1; call"),
        ({**LOCAL, "origin": "http://x.example"}, "127.0.0.1", "a page of another site; send"),
    ],
)
def test_a_token_from_elsewhere_is_refused_with_a_remedy(
    sent: dict[str, str], address: str, advice: str
) -> None:
    for headers in (sent, {name: value for name, value in sent.items() if name != "authorization"}):
        with pytest.raises(UnauthenticatedError, match=advice):
            access_control_with().authorize(build_request(headers, address=address), "read")


def test_after_a_first_key_the_token_is_refused_even_if_revoked() -> None:
    key, _ = make_key(revoked_at=1)
    with pytest.raises(UnauthenticatedError, match="but keys exist; send Authorization"):
        access_control_with(key).authorize(build_request(LOCAL), "read")
    with pytest.raises(UnauthenticatedError):
        access_control_with(key).authorize(build_request(), "read")


def test_the_local_token_can_stay_valid_beside_keys() -> None:
    control = access_control_with(make_key()[0], open_to_loopback=True)
    assert control.authorize(build_request(LOCAL), "admin") is LOOPBACK


def test_guessed_tokens_are_limited_by_network() -> None:
    control = access_control_with(requests_per_second=1)
    guess = {**HERE, "authorization": f"Bearer {LocalToken().secret}"}
    outcomes = [refusal(control, build_request(guess)) for _ in range(3)]
    assert outcomes == [UnauthenticatedError] * 2 + [RateLimitedError]


def test_a_token_in_the_url_is_refused() -> None:
    with pytest.raises(UnauthenticatedError, match="in the URL"):
        access_control_with().authorize(build_request(LOCAL, query=f"token={TOKEN.secret}"), "read")


def test_a_wrong_key_is_refused_even_if_none_is_needed() -> None:
    with pytest.raises(UnauthenticatedError):
        access_control_with().authorize(build_request({**HERE, "x-api-key": "x"}), "read")


def test_no_request_is_authorized_before_keys_are_loaded() -> None:
    control = AccessControl(KeyCache(), TOKEN, requests_per_second=10, open_to_loopback=False)
    for unauthorized in (build_request(), build_request(bearer_headers(make_key()[1]))):
        with pytest.raises(DatabaseUnavailableError):
            control.authorize(unauthorized, "read")


def refusal(control: AccessControl, sent: Request) -> type[ServiceError] | None:
    try:
        control.authorize(sent, "read")
    except ServiceError as error:
        return type(error)
    return None


def test_a_key_is_limited_to_its_rate() -> None:
    clock = Clock()
    key, secret = make_key()
    control = access_control_with(key, requests_per_second=10, clock=clock)
    outcomes = [refusal(control, build_request(bearer_headers(secret))) for _ in range(25)]
    assert outcomes == [None] * 20 + [RateLimitedError] * 5
    clock.seconds += 0.5
    assert [refusal(control, build_request(bearer_headers(secret))) for _ in range(6)].count(
        None
    ) == 5


def test_a_key_may_have_its_own_limit() -> None:
    key, secret = make_key(requests_per_second=0.25)
    control = access_control_with(key)
    assert refusal(control, build_request(bearer_headers(secret))) is None
    with pytest.raises(RateLimitedError, match=r"may send 0\.25 requests a second") as refused:
        control.authorize(build_request(bearer_headers(secret)), "read")
    assert refused.value.retry_after == 4


def test_keys_do_not_share_their_limits() -> None:
    (one, first), (other, second) = make_key(requests_per_second=1), make_key(requests_per_second=1)
    control = access_control_with(one, other)
    assert [refusal(control, build_request(bearer_headers(first))) for _ in range(3)][
        -1
    ] is RateLimitedError
    assert refusal(control, build_request(bearer_headers(second))) is None


def test_forbidden_requests_count_towards_the_limit() -> None:
    key, secret = make_key("ingest", requests_per_second=1)
    outcomes = [refusal(access_control_with(key), build_request(bearer_headers(secret)))]
    control = access_control_with(key)
    outcomes += [refusal(control, build_request(bearer_headers(secret))) for _ in range(3)]
    assert outcomes == [ForbiddenError] * 3 + [RateLimitedError]


def test_requests_without_a_key_are_limited_by_network() -> None:
    clock = Clock()
    key, secret = make_key()
    control = access_control_with(key, requests_per_second=1, clock=clock)
    outcomes = [refusal(control, build_request(address="192.0.2.1")) for _ in range(4)]
    assert outcomes == [UnauthenticatedError] * 2 + [RateLimitedError] * 2
    assert refusal(control, build_request(address="192.0.2.2")) is UnauthenticatedError
    assert refusal(control, build_request(bearer_headers(secret), address="192.0.2.1")) is None
    clock.seconds += 1
    assert refusal(control, build_request(address="192.0.2.1")) is UnauthenticatedError


def test_guessed_keys_are_limited_by_network() -> None:
    control = access_control_with(make_key()[0], requests_per_second=1)
    guesses = [
        refusal(control, build_request(bearer_headers(make_key()[1]), address="192.0.2.1"))
        for _ in range(3)
    ]
    assert guesses == [UnauthenticatedError] * 2 + [RateLimitedError]


def test_a_limiter_keeps_the_most_recent_names() -> None:
    limiter = RateLimiter(most=3, clock=Clock())
    for number in range(1000):
        limiter.take(number, rate=1)
    assert len(limiter) == 3
    assert [limiter.take(999, rate=1) for _ in range(2)] == [0.0, 1.0]


def test_a_bucket_never_holds_more_than_its_burst() -> None:
    clock = Clock()
    limiter = RateLimiter(most=1, clock=clock)
    limiter.take("name", rate=5)
    clock.seconds += 1e9
    assert [limiter.take("name", rate=5) for _ in range(11)].count(0.0) == 10
