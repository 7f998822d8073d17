"""The nearest of many users, for each of some histories."""

import numpy as np
from jaxtyping import Bool, Float64


def select_largest(
    values: Float64[np.ndarray, "histories users"], count: int
) -> Bool[np.ndarray, "histories users"]:
    """Select the `count` largest values of each row; of equal ones, those of the first users."""
    if count >= values.shape[1]:
        return np.ones_like(values, dtype=np.bool_)
    if not count:
        return np.zeros_like(values, dtype=np.bool_)
    smallest = np.partition(values, -count, axis=1)[:, -count, None]
    is_larger, is_equal = values > smallest, values == smallest
    left = count - is_larger.sum(1, keepdims=True)
    chosen: Bool[np.ndarray, "histories users"] = is_larger | (
        is_equal & (is_equal.cumsum(1) <= left)
    )
    return chosen
