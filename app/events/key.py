"""What makes two reports of an event the same event."""

import hashlib

import orjson


def natural_key(user_id: str, item_id: str, action: str, at: int, occurrence: int = 0) -> str:
    """The idempotency key of an event that came without one: a hash of what makes the event itself.

    Args:
        occurrence: how many equal events came before it in one source. A request cannot tell a
            repetition from a second attempt, so it has only a first occurrence; a file can.
    """
    natural: list[str | int] = [user_id, item_id, action, at]
    if occurrence:
        natural.append(occurrence)
    return f"sha256:{hashlib.sha256(orjson.dumps(natural)).hexdigest()}"
