"""The search for the best settings, one at a time."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

Value = TypeVar("Value")


def search_by_coordinate(
    values: Mapping[str, Sequence[Value]],
    start: Mapping[str, Value],
    measure: Callable[[dict[str, Value]], float],
) -> dict[str, Value]:
    """Change one setting at a time, in order, to its best value, until no change helps.

    Args:
        values: to choose from, by setting.
        start: where the search begins: one of the values of each.
        measure: some settings; larger is better. It is called once for each.

    Returns:
        The best settings; of equal ones those that were found first.
    """
    names = [*values]
    measured: dict[tuple[int, ...], float] = {}

    def select(chosen: tuple[int, ...]) -> dict[str, Value]:
        return {name: values[name][index] for name, index in zip(names, chosen, strict=True)}

    def look_up(chosen: tuple[int, ...]) -> float:
        if chosen not in measured:
            measured[chosen] = measure(select(chosen))
        return measured[chosen]

    chosen = tuple([*values[name]].index(start[name]) for name in names)
    before = None
    while chosen != before:
        before = chosen
        for number, name in enumerate(names):
            others = range(len(values[name]))
            tried = [(*chosen[:number], index, *chosen[number + 1 :]) for index in others]
            # On equal metrics the settings stay: the search ends.
            chosen = max([chosen, *tried], key=look_up)
    return select(chosen)
