import pytest

from training.blocks import split_into_blocks


@pytest.mark.parametrize(
    ("count", "size", "expected"),
    [
        (7, 3, [(0, 3), (3, 6), (6, 7)]),
        (4, 4, [(0, 4)]),
        (2, 9, [(0, 2)]),
        (2, 0, [(0, 1), (1, 2)]),
        (0, 3, []),
    ],
)
def test_blocks_cover_all_rows_in_order(
    count: int, size: int, expected: list[tuple[int, int]]
) -> None:
    assert [(block.start, block.stop) for block in split_into_blocks(count, size)] == expected
