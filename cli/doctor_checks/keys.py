"""The keys: is anybody let in who should not be, or nobody at all?"""

from collections import Counter

from app.auth.key_cache import Key
from app.settings import Settings
from cli.doctor_checks.check import Checks, broken, doubtful, well
from cli.doctor_checks.settings import listens_to_others
from model.clock import MICROSECONDS_PER_DAY

_SOON_DAYS = 14
_CREATE = "kairos keys create NAME --role admin"


def checks_of_keys(settings: Settings, keys: list[Key], at: int) -> Checks:
    """How the keys stand at an instant (epoch microseconds)."""
    valid = [key for key in keys if key.is_valid(at)]
    if not keys:
        told = "none was ever made, so only requests from this machine itself are answered"
        if listens_to_others(settings):
            told += f", although it listens on {settings.host}"
        yield doubtful("keys", told, _CREATE)
        return
    if not valid:
        yield broken("keys", f"all {len(keys)} are expired or revoked: nobody is let in", _CREATE)
        return
    roles = Counter(key.role for key in valid)
    told = ", ".join(f"{count} {role}" for role, count in sorted(roles.items()))
    if roles["admin"]:
        yield well("keys", f"valid: {told}")
    else:
        yield doubtful("keys", f"valid: {told}; none can change what is served", _CREATE)
    for key in valid:
        left = None if key.expires_at is None else (key.expires_at - at) / MICROSECONDS_PER_DAY
        if left is not None and left < _SOON_DAYS:
            yield doubtful(
                "keys.expiry",
                f"{key.key_id} of {key.name!r} expires in {left:.1f} days",
                f"kairos keys create {key.name!r} --role {key.role}, and hand it over in time",
            )
