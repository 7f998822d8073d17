"""Scores of a recommender for questions, in blocks that fit in memory."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from model.batch import SequenceBatch
from model.interfaces import CausalEncoder
from model.recommender import Recommender
from training.blocks import split_into_blocks
from training.data.batches import Windows, collate
from training.data.dataset import Dataset
from training.data.split import Questions

BLOCK_ELEMENTS = 4_000_000
"""Scores per block, at most."""

TOKENS = 20_000
"""Positions per forward pass, at most."""


class ScoreBlock(NamedTuple):
    """Scores of every catalog row for some of the questions.

    Attributes:
        questions: indices of the questions.
        scores: one row per question; column 0 is padding.
    """

    questions: NDArray[np.int64]
    scores: Float[Tensor, "questions rows"]


@torch.no_grad()
def score_questions(
    recommender: Recommender,
    dataset: Dataset,
    questions: Questions,
    *,
    max_history: int,
    withheld: bool = False,
) -> Iterator[ScoreBlock]:
    """Score every item for every question, as the service does at the query time.

    Questions of one user share one causal forward pass if their histories fit into it; every other
    question has its own window. A history without a known event is scored by popularity.

    Args:
        withheld: whether to withhold the query time from the model.
    """
    recommender.eval()
    vectors = recommender.static_vectors()
    known = dataset.known
    starts, ends = known.offsets[questions.users], dataset.known_before[questions.ends]
    windows = Windows(np.maximum(starts, ends - max_history), ends, questions.query_times)
    yield from _score_by_popularity(dataset, np.flatnonzero(ends == starts))
    shared = np.zeros(len(questions), dtype=np.bool_)
    if not withheld and isinstance(recommender.encoder, CausalEncoder):
        shared = _can_share(dataset, questions, windows, starts)
    for chosen in group_by_length(windows, np.flatnonzero(~shared & (ends > starts)), len(vectors)):
        yield ScoreBlock(
            chosen,
            _score_last(
                recommender,
                vectors,
                collate(known, windows.select(chosen), recommender.device),
                withheld,
            ),
        )
    yield from _score_shared(
        recommender, vectors, known, windows, questions.users, np.flatnonzero(shared)
    )


def _score_by_popularity(dataset: Dataset, chosen: NDArray[np.int64]) -> Iterator[ScoreBlock]:
    if len(chosen):
        catalog = dataset.catalog
        order = np.zeros(len(catalog) + 1, dtype=np.float32)
        order[catalog.rows_by_popularity] = np.arange(len(catalog), 0, -1)
        yield ScoreBlock(chosen, torch.from_numpy(order).expand(len(chosen), -1))


def _can_share(
    dataset: Dataset,
    questions: Questions,
    windows: Windows,
    starts: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Return whether a question can share a pass: whole history, at its next known event's time.

    A user needs more than one such question.
    """
    known = dataset.known
    if not len(known):
        return np.zeros(len(questions), dtype=np.bool_)
    following = np.minimum(windows.ends, len(known) - 1)
    is_next = (known.times[following] == questions.query_times) & (
        windows.ends < known.offsets[questions.users + 1]
    )
    fits = (windows.starts == starts) & (windows.ends > starts) & is_next
    counts = np.bincount(questions.users[fits], minlength=len(dataset.user_ids))
    several: NDArray[np.bool_] = fits & (counts[questions.users] > 1)
    return several


def group_by_length(
    windows: Windows, chosen: NDArray[np.int64], rows: int
) -> Iterator[NDArray[np.int64]]:
    """Group windows by length, the longest first, within `TOKENS` and `BLOCK_ELEMENTS`.

    Args:
        chosen: indices of the windows.
        rows: scores per window.
    """
    lengths = (windows.ends - windows.starts)[chosen]
    chosen = chosen[np.argsort(-lengths, kind="stable")]
    begin = 0
    while begin < len(chosen):
        longest = int(windows.ends[chosen[begin]] - windows.starts[chosen[begin]])
        count = max(min(TOKENS // longest, BLOCK_ELEMENTS // rows), 1)
        yield chosen[begin : begin + count]
        begin += count


def _score_last(
    recommender: Recommender, vectors: Tensor, batch: SequenceBatch, withheld: bool
) -> Tensor:
    if withheld:
        positions = torch.arange(batch.rows.shape[1], device=recommender.device)
        batch = batch.withhold_query_times(positions == batch.lengths[:, None] - 1)
    return recommender.score_catalog(batch, vectors).cpu()


def _score_shared(
    recommender: Recommender,
    vectors: Tensor,
    known: Dataset,
    windows: Windows,
    users: NDArray[np.int64],
    chosen: NDArray[np.int64],
) -> Iterator[ScoreBlock]:
    """Score questions at their positions in one window per user, up to the latest question."""
    if not len(chosen):
        return
    chosen = chosen[np.lexsort((windows.ends[chosen], users[chosen]))]
    firsts = np.flatnonzero(np.diff(users[chosen], prepend=-1))
    latest = np.append(firsts[1:], len(chosen)) - 1
    of_users = windows.select(chosen[latest])
    for group in group_by_length(of_users, np.arange(len(of_users)), 1):
        batch = collate(known, of_users.select(group), recommender.device)
        owns = [chosen[firsts[user] : latest[user] + 1] for user in group]
        questions = np.concatenate(owns)
        sample = np.repeat(np.arange(len(group)), [len(own) for own in owns])
        last = windows.ends[questions] - windows.starts[questions] - 1
        positions = torch.from_numpy(sample * batch.rows.shape[1] + last).to(recommender.device)
        at = recommender.encode_at(batch, positions)
        for part in split_into_blocks(len(questions), BLOCK_ELEMENTS // len(vectors)):
            scores = recommender.score_encoded(at.select(part), vectors)
            yield ScoreBlock(questions[part], scores.cpu())
