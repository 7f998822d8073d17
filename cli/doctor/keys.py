"""Checks of the API keys."""

from collections import Counter

from app.auth.key_cache import Key
from app.settings import Settings
from cli.doctor.check import Checks, failure, ok, warning
from cli.doctor.settings import accepts_remote_connections
from model.clock import MICROSECONDS_PER_DAY

_EXPIRY_WARNING_DAYS = 14
_CREATE = "kairos keys create NAME --role admin"


def check_keys(settings: Settings, keys: list[Key], at: int) -> Checks:
    """Check the keys at an instant (epoch microseconds): valid ones, roles, expiry."""
    valid = [key for key in keys if key.is_valid(at)]
    if not keys:
        finding = (
            "no key exists, so only requests from this machine with a local token are accepted"
        )
        if accepts_remote_connections(settings):
            finding += f", although the service listens on {settings.host}"
        yield warning("keys", finding, _CREATE)
        return
    if not valid:
        finding = f"all {len(keys)} are expired or revoked, so every request is rejected"
        yield failure("keys", finding, _CREATE)
        return
    roles = Counter(key.role for key in valid)
    finding = "valid: " + ", ".join(f"{count} {role}" for role, count in sorted(roles.items()))
    if roles["admin"]:
        yield ok("keys", finding)
    else:
        yield warning("keys", f"{finding}; none of them may activate a model", _CREATE)
    if lasting := [key for key in valid if key.expires_at is None]:
        yield warning(
            "keys.never_expire",
            f"{len(lasting)} never expire, first {lasting[0].key_id} of {lasting[0].name!r}",
            "replace each by one of kairos keys create, which expires after a year",
        )
    for key in valid:
        left = None if key.expires_at is None else (key.expires_at - at) / MICROSECONDS_PER_DAY
        if left is not None and left < _EXPIRY_WARNING_DAYS:
            yield warning(
                "keys.expiry",
                f"{key.key_id} of {key.name!r} expires in {left:.1f} days",
                f"kairos keys create {key.name!r} --role {key.role}, and replace the old key",
            )
