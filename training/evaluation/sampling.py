"""Random histories of a data set, and their user vectors."""

import numpy as np
import torch
from numpy.typing import NDArray

from model.recommender import Recommender
from training.data.batches import Windows, collate
from training.data.dataset import Dataset
from training.evaluation.scoring import group_by_length


def sample_windows(known: Dataset, *, max_history: int, histories: int, seed: int = 0) -> Windows:
    """Sample at most one history per user, cut between baskets, not within one.

    Args:
        known: events of known items.
        histories: the most of them.
    """
    rng = np.random.default_rng(seed)
    is_later = (np.diff(known.user_of) == 0) & (np.diff(known.times) > 0)
    ends = rng.permutation(np.flatnonzero(is_later) + 1)
    _, first_of_user = np.unique(known.user_of[ends], return_index=True)
    ends = rng.permutation(ends[first_of_user])[:histories]
    starts = known.offsets[known.user_of[ends]]
    return Windows(np.maximum(starts, ends - max_history), ends, known.times[ends])


@torch.no_grad()
def sample_users(
    recommender: Recommender, dataset: Dataset, *, max_history: int, histories: int
) -> NDArray[np.float32]:
    """Encode random histories as the vectors that an index is searched with, in random order."""
    recommender.eval()
    known = dataset.known
    windows = sample_windows(known, max_history=max_history, histories=histories)
    parts = [np.empty((0, recommender.index_vectors().shape[1]), dtype=np.float32)]
    for chosen in group_by_length(windows, np.arange(len(windows.ends)), 1):
        batch = collate(known, windows.select(chosen), recommender.device)
        parts.append(recommender.index_queries(recommender(batch).user).cpu().numpy())
    users = np.concatenate(parts)
    return users[np.random.default_rng(1).permutation(len(users))]
