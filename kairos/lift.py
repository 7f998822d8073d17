"""The colour scale of lift: how much more attention a basket has than its number of events.

Lift is a basket's weight over that of as many events if all had the same. The scale is fixed, from
a quarter to four times on a logarithm, so that figures of different users compare. Its colours are
those of the dashboard in its light scheme.
"""

from math import log2

LOW, EVEN, HIGH = "#8a4fa8", "#e9eaee", "#0f766b"
"""Colours of a quarter or less, of 1, and of four times or more; none is the white of no data."""
BOUND = 2.0
"""The largest logarithm to base 2 that differs in colour."""


def to_colour(lift: float) -> str:
    """Return the colour of a lift, such as "#e9eaee"."""
    position = min(max(log2(lift) / BOUND, -1.0), 1.0) if lift > 0 else -1.0
    end = _read(HIGH if position > 0 else LOW)
    mixed = (
        round(even + (far - even) * abs(position))
        for even, far in zip(_read(EVEN), end, strict=True)
    )
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def _read(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour[1:]))
