"""Blocks of rows, which bound the memory of large intermediate results."""

from collections.abc import Iterator


def split_into_blocks(count: int, size: int) -> Iterator[slice]:
    """Yield consecutive slices of at most `size`, and at least one, that cover `count` rows."""
    size = max(size, 1)
    for begin in range(0, count, size):
        yield slice(begin, min(begin + size, count))
