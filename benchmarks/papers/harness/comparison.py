"""Leads of rows over each other on the same questions, with intervals over users and seeds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple, final

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64

from benchmarks.papers.harness.measured_rows import (
    MeasuredRow,
    Subset,
    collect_references,
    find_leading_record,
)
from benchmarks.papers.harness.question_ranks import RankedQuestions, decode_integers
from benchmarks.papers.harness.suite import Suite
from model.errors import TrainingError
from training.evaluation.counting import COUNTING_LIVE
from training.evaluation.metrics import Lead, Ranks, summarise_draws
from training.evaluation.report import MODEL

DRAWS = 2_000
"""Resamples of the users per interval."""

LEAST_USERS = 10
"""Fewer users with a question have no interval: resamples of so few are nearly all the same."""


TargetKind = Literal["repeats", "new_items"]
"""Targets that the history of their question holds, or the others."""


class Resamples(NamedTuple):
    """A metric of one row: its mean over seeds, and its values in every resample of the users.

    They are NaN in a resample without a question of the subset.
    """

    mean: float
    by_seed: Float64[np.ndarray, "seeds draws"]


class _Draws(NamedTuple):
    """A metric of one row: its mean, and its value in every draw of users and seeds."""

    mean: float
    draws: Float64[np.ndarray, " draws"]


@final
@dataclass(frozen=True)
class Comparison:
    """Compares the rows and references of a suite, on the questions that they all answered.

    Every draw resamples the users, each with all its questions, and the seeds of each row; all rows
    share the draws of the users, so differences are paired.
    """

    suite: Suite
    measured: tuple[MeasuredRow, ...]
    questions: RankedQuestions
    draws: int = DRAWS

    @classmethod
    def read(
        cls, folder: Path, suite: Suite, measured: Sequence[MeasuredRow]
    ) -> "Comparison | None":
        """Read the questions of a suite's records; None if no record has ranks.

        Rows with a record that answered other questions than the leading one are left out.

        Args:
            folder: of results/.

        Raises:
            TrainingError: if the questions cannot be read, or none is of the suite's headline; or
                if ranks and reports are not of the same runs.
        """
        ranked = [
            each
            for each in measured
            if all(record.questions_sha256 is not None for record in each.records)
        ]
        leading = find_leading_record(ranked)
        if leading is None or leading.questions_sha256 is None:
            return None
        comparable = tuple(
            each
            for each in ranked
            if all(record.questions_sha256 == leading.questions_sha256 for record in each.records)
        )
        file = RankedQuestions.find_file(folder / "results" / suite.name, leading.questions_sha256)
        comparison = cls(suite, comparable, RankedQuestions.read(file))
        comparison._select_some(suite.headline)
        comparison._check_references()
        for each in comparable:
            comparison._check_reports(each)
        return comparison

    def compare(
        self,
        row: str,
        other: str,
        subset: Subset = "all",
        ranker: str = MODEL,
        metric: str | None = None,
    ) -> Lead:
        """Compute how far a row is ahead of another row or reference.

        Args:
            ranker: of both rows; a model without counts is its own live model.
            metric: such as mrr or recall@10; the suite's plot metric by default.

        Raises:
            TrainingError: if one of them has no comparable record.
        """
        own, others = self._draw(row, other, subset, ranker, metric)
        return self._summarise(subset, own.mean - others.mean, own.draws - others.draws)

    def compare_relative(self, row: str, other: str, subset: Subset = "all") -> Lead:
        """Compute the same as a share of the other's own figure, which is resampled, too.

        Raises:
            ZeroDivisionError: if that figure is zero.
            TrainingError: if one of them has no comparable record.
        """
        own, others = self._draw(row, other, subset, MODEL, None)
        mean = own.mean / others.mean - 1
        # Users who are all missed by the other row leave nothing to divide by.
        relative = own.draws / np.maximum(others.draws, others.mean / 1_000) - 1
        return self._summarise(subset, mean, relative)

    def _summarise(self, subset: Subset, mean: float, draws: Float64[np.ndarray, " draws"]) -> Lead:
        """Summarise a lead; its interval has no ends if too few users have a question."""
        if self.count_users(subset) < LEAST_USERS:
            return Lead(mean, -math.inf, math.inf)
        # A resample may hold no question of a small subset, and then no figure.
        return summarise_draws(mean, draws[self._count_drawn(subset) > 0])

    def _draw(
        self, row: str, other: str, subset: Subset, ranker: str, metric: str | None
    ) -> tuple[_Draws, _Draws]:
        generator = np.random.default_rng(1)
        own, others = (self.resample(name, subset, ranker, metric) for name in (row, other))
        return (
            _Draws(own.mean, _resample_seeds(own.by_seed, generator)),
            _Draws(others.mean, _resample_seeds(others.by_seed, generator)),
        )

    def resample(
        self,
        name: str,
        subset: Subset = "all",
        ranker: str = MODEL,
        metric: str | None = None,
    ) -> Resamples:
        """Compute a metric of a row or reference in every resample of the users.

        Args:
            metric: the suite's plot metric by default.

        Raises:
            TrainingError: if it has no comparable record, or the subset no questions.
        """
        metric = metric or self.suite.plot
        key = (name, subset, ranker, metric)
        if key not in self._resamples:
            values = self.compute_values(name, ranker, metric)
            is_selected = self._select_some(subset)
            sums = np.array([self._sum_by_user(line * is_selected) for line in values])
            mean = float(sums.sum() / (is_selected.sum() * len(sums)))
            with np.errstate(invalid="ignore"):
                by_seed = self._weigh(sums) / self._count_drawn(subset)
            self._resamples[key] = Resamples(mean, by_seed)
        return self._resamples[key]

    def count_questions(self, subset: Subset = "all") -> int:
        """Count the questions of a subset."""
        return int(self._select(subset).sum())

    def count_users(self, subset: Subset = "all") -> int:
        """Count the users with a question of a subset."""
        return len(np.unique(self.questions.user_of[self._select(subset)]))

    def count_targets(self) -> int:
        """Count the targets of all questions."""
        return int(decode_integers(self.questions.targets).sum())

    def list_references(self) -> list[str]:
        """List the references that can be compared; live counting is not, as its input differs."""
        return [
            name
            for name in collect_references([*self.measured])
            if name != COUNTING_LIVE and name in self.questions.references
        ]

    def has(self, name: str) -> bool:
        """Return whether a row or reference can be compared."""
        rows = {each.row.name for each in self.measured}
        return name in self.questions.references or name in rows

    @cached_property
    def _resamples(self) -> dict[tuple[str, Subset, str, str], Resamples]:
        return {}

    def _count_drawn(self, subset: Subset) -> Float64[np.ndarray, " draws"]:
        """Count the questions of a subset in every resample."""
        if subset not in self._counts:
            counts = self._sum_by_user(self._select(subset).astype(np.float64))
            self._counts[subset] = self._weigh(counts[None])[0]
        return self._counts[subset]

    @cached_property
    def _counts(self) -> dict[Subset, Float64[np.ndarray, " draws"]]:
        return {}

    @cached_property
    def _user(self) -> Int64[np.ndarray, " questions"]:
        return np.unique(self.questions.user_of, return_inverse=True)[1]

    def _select(self, subset: Subset) -> Bool[np.ndarray, " questions"]:
        later = self.questions.is_after_gap
        return later if subset == "after_a_gap" else np.ones_like(later)

    def _select_some(self, subset: Subset) -> Bool[np.ndarray, " questions"]:
        """Select the questions of a subset; none is an error."""
        is_selected = self._select(subset)
        if not is_selected.any():
            raise TrainingError(
                f"a comparison needs questions, but suite {self.suite.name} has none of "
                f"subset {subset}; set its headline to all"
            )
        return is_selected

    def compute_values(
        self, name: str, ranker: str = MODEL, metric: str | None = None
    ) -> Float64[np.ndarray, "seeds questions"]:
        """Compute a metric of every question, for every seed; a reference has one.

        Args:
            metric: the suite's plot metric by default.

        Raises:
            TrainingError: if the row or reference has no comparable record.
        """
        metric = metric or self.suite.plot
        return np.array([each.per_question(metric) for each in self._read_ranks(name, ranker)])

    def _check_reports(self, row: MeasuredRow) -> None:
        """Check that ranks and report of every record of a row are of one run."""
        metric = self.suite.plot
        values = self.compute_values(row.row.name)
        for record, mean in zip(row.records, values.mean(1).tolist(), strict=True):
            reported = record.report.rows[MODEL].get(metric, mean)
            if not math.isclose(mean, reported, abs_tol=1e-6):
                raise TrainingError(
                    "ranks and report of a record are of one run, but by the ranks of "
                    f"results/{record.suite}/{record.file_name} {metric} is {mean:.6f}, by its "
                    f"report {reported:.6f}; restore it, or delete the record and run its row again"
                )

    def _check_references(self) -> None:
        """Check that references have the same figures in the questions and in the newest report.

        Tables show those of reports, leads are of the ranks beside the questions.
        """
        metric = self.suite.plot
        reported = collect_references([*self.measured])
        for name, encoded in self.questions.references.items():
            mean = float(self.questions.read_ranks(encoded).per_question(metric).mean())
            found = reported.get(name, {}).get(metric, mean)
            if not math.isclose(mean, found, abs_tol=1e-6):
                raise TrainingError(
                    f"a reference has one figure, but of suite {self.suite.name} {name} has "
                    f"{metric} {mean:.6f} by its ranks, and {found:.6f} in the newest report; "
                    "delete the newest record and run its row again"
                )

    @property
    def recommended_items(self) -> int:
        """How many items recall is of: one where accuracy is plotted, otherwise ten."""
        return 1 if self.suite.plot == "accuracy" else 10

    def list_recalls(self, name: str, kind: TargetKind) -> list[float]:
        """Compute the recall of targets of a kind, for every seed; a reference has one.

        It is averaged over the questions that have such a target.

        Raises:
            TrainingError: if the row or reference has no comparable record.
        """
        is_repeat = self.questions.is_repeat
        is_selected = is_repeat if kind == "repeats" else ~is_repeat
        recalls = []
        for each in self._read_ranks(name):
            question = each.question[is_selected]
            selected = replace(each, ranks=each.ranks[is_selected], question=question)
            recall = selected.recall(self.recommended_items)
            recalls.append(float(recall[np.unique(question)].mean()))
        return recalls

    def _read_ranks(self, name: str, ranker: str = MODEL) -> list[Ranks]:
        """Read the ranks of all targets, for every seed; a reference has one."""
        reference = self.questions.references.get(name)
        if reference is not None:
            return [self.questions.read_ranks(reference)]
        return [
            self.questions.read_ranks(
                record.ranks.get(ranker, record.ranks[MODEL]),
                f"results/{record.suite}/{record.file_name}",
            )
            for record in self.find(name).records
        ]

    def find(self, name: str) -> MeasuredRow:
        """Find a row by name.

        Raises:
            TrainingError: if it has no comparable record.
        """
        rows = {each.row.name: each for each in self.measured}
        if name not in rows:
            raise TrainingError(
                f"rows of suite {self.suite.name} with comparable records are {[*rows]}, beside "
                f"the references {[*self.questions.references]}, but got {name!r}; run it, or "
                "check the name"
            )
        return rows[name]

    def _sum_by_user(
        self, values: Float64[np.ndarray, " questions"]
    ) -> Float64[np.ndarray, " users"]:
        sums: Float64[np.ndarray, " users"] = np.bincount(self._user, weights=values)
        return sums

    def _weigh(self, sums: Float64[np.ndarray, "rows users"]) -> Float64[np.ndarray, "rows draws"]:
        """Sum over the users of every resample."""
        # All rows in one product, as it copies the draws to the precision of the sums.
        weighed: Float64[np.ndarray, "rows draws"] = sums @ self._times_drawn.T
        return weighed

    @cached_property
    def _times_drawn(self) -> Float32[np.ndarray, "draws users"]:
        """How often each resample holds each user."""
        generator = np.random.default_rng(0)
        users = self.count_users()
        drawn = (generator.integers(users, size=users) for _ in range(self.draws))
        return np.array([np.bincount(one, minlength=users) for one in drawn], np.float32)


def _resample_seeds(
    by_seed: Float64[np.ndarray, "seeds draws"], generator: np.random.Generator
) -> Float64[np.ndarray, " draws"]:
    """Average as many seeds as there are, drawn with replacement in every draw."""
    seeds, draws = by_seed.shape
    chosen = generator.integers(seeds, size=(seeds, draws))
    averaged: Float64[np.ndarray, " draws"] = np.take_along_axis(by_seed, chosen, axis=0).mean(0)
    return averaged
