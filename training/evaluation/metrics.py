"""Ranking metrics, shared by models, references and peers.

A *question* has one or more *targets*, the items of the user's next event or basket. The *rank*
of a target is the number of items that score at least as high; 1 is the best. Every metric is a
function of ranks.

**The tie rule.** An item with the same score as the target counts as ranked ahead of it. A model
that gives all items one score therefore scores zero; a sort that keeps the target first would
reward it.

The other targets of a question compete with a target like any other item.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int64
from numpy.typing import NDArray

from model.catalog import PADDING_ROW
from model.errors import DivergedError, TrainingError

MISS = np.iinfo(np.int64).max
"""The rank of a target that was not ranked: a cold item, or an excluded one."""

SAMPLED = 100
"""Random items that a sampled metric ranks a target among."""


class Lead(NamedTuple):
    """How far one ranker is ahead of another in a metric, with a 95 % interval."""

    mean: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class Ranks:
    """The ranks of all targets of all questions.

    Attributes:
        ranks: 1 for the best item, `MISS` for a target that was not ranked.
        question: the question of each target, from 0. The targets of a question are distinct
            items; a duplicate could gain more than the maximum.
        questions: number of questions. One without a target scores zero.
        sampled: the ranks among a hundred random items instead of all; None if not computed. Such
            metrics are larger, and not comparable with the full ones.
    """

    ranks: Int64[np.ndarray, " targets"]
    question: Int64[np.ndarray, " targets"]
    questions: int
    sampled: Int64[np.ndarray, " targets"] | None = None

    def hit_rate(self, k: int) -> NDArray[np.float64]:
        """Compute, per question, 1 where any target is in the top `k`, else 0."""
        return (self._best <= k).astype(np.float64)

    def recall(self, k: int) -> NDArray[np.float64]:
        """Compute, per question, the share of its targets in the top `k`."""
        return _divide(self._sum(self.ranks <= k), self._targets)

    def ndcg(self, k: int) -> NDArray[np.float64]:
        """Compute, per question, the gain of its targets in the top `k`, divided by the ideal gain.

        A target at rank r gains 1 / log2(r + 1). The gain is ideal if min(k, targets) targets are
        ranked first.
        """
        is_in_top = self.ranks <= k
        ranks_in_top = np.where(is_in_top, self.ranks, 1)
        gain = self._sum(is_in_top / np.log2(ranks_in_top + 1.0))
        ideal = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(1, k + 1) + 1.0))])
        return _divide(gain, ideal[np.minimum(self._targets, k)])

    def reciprocal_rank(self) -> NDArray[np.float64]:
        """Compute, per question, one over the rank of its best target; 0 if all are missed."""
        return np.where(self._best == MISS, 0.0, 1.0 / self._best)

    def accuracy(self) -> NDArray[np.float64]:
        """Compute, per question, 1 where a target is ranked first. Meant for single targets."""
        return self.hit_rate(1)

    def per_question(self, metric: str) -> NDArray[np.float64]:
        """Compute a metric per question, by its name in tables, such as "ndcg@10".

        Raises:
            TrainingError: if there is no such metric.
        """
        match metric.partition("@"):
            case ("hit_rate", _, k) if k.isdecimal():
                return self.hit_rate(int(k))
            case ("ndcg", _, k) if k.isdecimal():
                return self.ndcg(int(k))
            case ("recall", _, k) if k.isdecimal():
                return self.recall(int(k))
            case ("mrr", "", _):
                return self.reciprocal_rank()
            case ("accuracy", "", _):
                return self.accuracy()
        raise TrainingError(
            "a metric per question is hit_rate@k, ndcg@k, recall@k, mrr or accuracy, but got "
            f"{metric!r}; name one of these"
        )

    def summarise(self, k: int = 10) -> dict[str, float]:
        """Average every metric over the questions; the keys are its names in tables."""
        summary = {
            f"hit_rate@{k}": _average(self.hit_rate(k)),
            f"ndcg@{k}": _average(self.ndcg(k)),
            f"recall@{k}": _average(self.recall(k)),
            "mrr": _average(self.reciprocal_rank()),
            "accuracy": _average(self.accuracy()),
            "questions": float(self.questions),
        }
        if self.sampled is not None:
            among = replace(self, ranks=self.sampled, sampled=None)
            summary[f"hit_rate@{k}_sampled{SAMPLED}"] = _average(among.hit_rate(k))
            summary[f"ndcg@{k}_sampled{SAMPLED}"] = _average(among.ndcg(k))
        return summary

    @cached_property
    def _best(self) -> NDArray[np.int64]:
        best = np.full(self.questions, MISS, dtype=np.int64)
        np.minimum.at(best, self.question, self.ranks)
        return best

    @cached_property
    def _targets(self) -> NDArray[np.int64]:
        return np.bincount(self.question, minlength=self.questions)

    def _sum(self, per_target: NDArray[np.float64 | np.bool_]) -> NDArray[np.float64]:
        # Without a target, bincount ignores its weights and returns integers.
        sums = np.bincount(self.question, weights=per_target, minlength=self.questions)
        return sums.astype(np.float64)


def compute_ranks(
    scores: Float32[np.ndarray, "questions rows"],
    target_rows: Int64[np.ndarray, " targets"],
    question: Int64[np.ndarray, " targets"],
) -> Int64[np.ndarray, " targets"]:
    """Rank every target among the items of its question, by counting.

    Args:
        scores: of every item row for every question of a block; larger is better, -inf leaves an
            item out. Column 0 is padding and never counts.
        target_rows: catalog rows; 0 where the catalog does not hold the item.
        question: the row of `scores` of each target.

    Returns:
        One more than the number of other items that score at least as high; `MISS` for a target
        that is left out or not in the catalog.

    Raises:
        DivergedError: if a score is NaN.
    """
    lines, rows = np.nonzero(np.isnan(scores[:, PADDING_ROW + 1 :]))
    if len(lines):
        raise DivergedError(
            f"scores must be numbers to be ranked, but {len(lines)} are NaN, the first for item "
            f"row {rows[0] + 1} of question {lines[0]} in its block; look for a diverged model"
        )
    ranks = np.full(len(target_rows), MISS, dtype=np.int64)
    for target, (row, line) in enumerate(zip(target_rows, question, strict=True)):
        items = scores[line, PADDING_ROW + 1 :]
        if row != PADDING_ROW and scores[line, row] > -np.inf:
            # The target itself is counted, which makes the best rank 1.
            ranks[target] = np.count_nonzero(items >= scores[line, row])
    return ranks


def compute_sampled_ranks(
    scores: Float32[np.ndarray, "questions rows"],
    target_rows: Int64[np.ndarray, " targets"],
    question: Int64[np.ndarray, " targets"],
    candidates: Int64[np.ndarray, "questions candidates"],
) -> Int64[np.ndarray, " targets"]:
    """Rank every target among some candidates and the other targets of its question.

    Args:
        scores: as for `compute_ranks`.
        target_rows: as for `compute_ranks`.
        question: the row of `scores` and of `candidates` of each target.
        candidates: distinct items, none of them a target of the question; 0 is padding.

    Returns:
        As `compute_ranks`, with all other items left out.
    """
    among = np.full_like(scores, -np.inf)
    np.put_along_axis(among, candidates, np.take_along_axis(scores, candidates, axis=1), axis=1)
    among[question, target_rows] = scores[question, target_rows]
    return compute_ranks(among, target_rows, question)


def paired_bootstrap(
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    draws: int = 2_000,
    seed: int = 0,
    *,
    users: NDArray[np.int64] | None = None,
) -> Lead:
    """Bootstrap the mean difference of `a` and `b` on the same questions, with a 95 % interval.

    The resamples are of users, each with all its questions: the questions of one user depend on
    each other, and an interval over questions would be too narrow.

    Args:
        a: a metric per question.
        b: the same metric, for the same questions in the same order.
        draws: number of resamples, with replacement.
        seed: of the resamples.
        users: the user of each question; by default every question is of another user.

    Returns:
        The mean of a - b over the questions, and the 2.5 % and 97.5 % quantiles of its bootstrap
        distribution.

    Raises:
        TrainingError: if the lengths differ or are zero.
    """
    if len(a) != len(b) or len(a) == 0 or (users is not None and len(users) != len(a)):
        raise TrainingError(
            f"a paired comparison needs the same questions on both sides, and at least one, but "
            f"got {len(a)} and {len(b)}"
            + ("" if users is None else f" of {len(users)} users")
            + "; evaluate both on one set"
        )
    differences = np.asarray(a) - np.asarray(b)
    generator = np.random.default_rng(seed)
    mean = float(differences.mean())
    if users is not None and len(np.unique(users)) < len(users):
        return summarise_draws(mean, _resample_users(differences, users, draws, generator))
    count = len(differences)
    values, counts = np.unique(differences, return_counts=True)
    if len(values) < count / 16:
        # Metrics of single targets have few values: how often a resample has each is drawn at once.
        means = generator.multinomial(count, counts / count, size=draws) @ values / count
    else:
        resamples = (generator.integers(count, size=count) for _ in range(draws))
        means = np.array([differences[chosen].mean() for chosen in resamples])
    return summarise_draws(mean, means)


def summarise_draws(mean: float, draws: NDArray[np.float64]) -> Lead:
    """Put a difference and the 2.5 % and 97.5 % quantiles of its resamples together."""
    low, high = np.quantile(draws, [0.025, 0.975])
    return Lead(mean, float(low), float(high))


def _resample_users(
    values: NDArray[np.float64],
    users: NDArray[np.int64],
    draws: int,
    generator: np.random.Generator,
) -> NDArray[np.float64]:
    """Compute the mean over questions of every resample of the users."""
    _, user = np.unique(users, return_inverse=True)
    counts = np.bincount(user)
    sums = np.bincount(user, weights=values)
    chosen = (generator.integers(len(counts), size=len(counts)) for _ in range(draws))
    return np.array([sums[drawn].sum() / counts[drawn].sum() for drawn in chosen])


def _divide(
    part: NDArray[np.float64], whole: NDArray[np.float64 | np.int64]
) -> NDArray[np.float64]:
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)


def _average(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else 0.0
