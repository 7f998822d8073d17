"""Item and user vectors as those of a model, without a model."""

import numpy as np
from numpy.typing import NDArray


def draw_world(items: int, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Draw item and user vectors as of a model: clusters, beside log counts on a larger scale."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(200, 12))
    likes = centres[rng.integers(0, 200, items)] + 0.3 * rng.normal(size=(items, 12))
    counts = -rng.uniform(5, 20, size=(items, 1)) + rng.normal(scale=0.3, size=(items, 3))
    users = np.hstack(
        [
            centres[rng.integers(0, 200, 400)] + rng.normal(size=(400, 12)),
            rng.normal(loc=0.2, scale=0.1, size=(400, 3)),
        ]
    )
    return np.hstack([likes, counts]).astype(np.float32), users.astype(np.float32)
