"""The test questions of a suite, and the rank of every target, as short texts for records."""

import base64
import hashlib
import zlib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
from jaxtyping import Bool, Int64
from pydantic import model_validator

from benchmarks.papers.harness.record import lock_file, write_atomically
from model.catalog import Catalog
from model.config import Config
from model.errors import TrainingError
from training.config import RunConfig
from training.data.dataset import Dataset
from training.data.split import Predict, Questions, Split, build_questions
from training.evaluation.counting import CountingSettings
from training.evaluation.evaluate import select_after_gap
from training.evaluation.metrics import MISS, Ranks
from training.evaluation.report import LIVE, MODEL, WITHHELD
from training.problems import format_problems
from training.run import build_dataset, split_dataset

OWN = (MODEL, WITHHELD, LIVE)
"""The rankers of a model; the others are references."""

WIDTHS = (1, 2, 4, 8)
"""Bytes of an integer."""


def encode_integers(values: Int64[np.ndarray, " values"]) -> str:
    """Compress integers that are not negative, in the narrowest type that holds them."""
    largest = int(values.max(initial=0))
    width = next(width for width in WIDTHS if largest < 1 << (8 * width))
    packed = zlib.compress(values.astype(f"<u{width}").tobytes(), 9)
    return f"u{width}:{base64.b64encode(packed).decode('ascii')}"


def decode_integers(text: str) -> Int64[np.ndarray, " values"]:
    """Decode what `encode_integers` returned.

    Raises:
        ValueError: if it is something else.
    """
    width, _, packed = text.partition(":")
    if width not in {f"u{width}" for width in WIDTHS}:
        raise ValueError(f"integers are of 1, 2, 4 or 8 bytes, but got {width[:9]!r}")
    try:
        data = zlib.decompress(base64.b64decode(packed))
    except zlib.error as error:
        raise ValueError(str(error)) from error
    return np.frombuffer(data, dtype=f"<{width}").astype(np.int64)


def encode_ranks(ranks: Ranks) -> str:
    """Encode the rank of every target; 0 stands for a target that was not ranked."""
    return encode_integers(np.where(ranks.ranks == MISS, 0, ranks.ranks))


class RankedQuestions(Config):
    """The test questions of a split, and the ranks of their targets by every reference.

    All rows of a suite answer the same questions, so they are kept once per suite, in a folder
    beside the records.
    """

    sha256: str
    """A digest of users, query times and targets; ranks of equal questions can be paired."""
    users: str
    """The number of the user of every question."""
    targets: str
    """The number of targets of every question."""
    after_a_gap: str
    """1 for a question that is later than the last event of its history, else 0."""
    repeats: str
    """1 for a target that the history of its question holds, else 0."""
    catalog_sha256: str
    """A digest of the ids of the items that are ranked."""
    items: int
    """How many they are."""
    cold_targets: int
    """Targets that the catalog does not hold."""
    counting: CountingSettings
    """The settings of the counting reference."""
    references: dict[str, str]
    """The ranks of all targets, by reference."""

    @model_validator(mode="after")
    def _check_integers(self) -> "RankedQuestions":
        targets = decode_integers(self.targets)
        for name in ("users", "after_a_gap"):
            # Not by the cached properties: copies with other values would keep them.
            if (found := len(decode_integers(getattr(self, name)))) != len(targets):
                raise ValueError(f"{name} has {found} questions, and targets {len(targets)}")
        for encoded in (self.repeats, *self.references.values()):
            _decode_targets(encoded, targets)
        return self

    @classmethod
    def of(
        cls,
        split: Split,
        whole: Dataset,
        predict: Predict,
        ranks_of: Mapping[str, Ranks],
        counting: CountingSettings,
    ) -> "RankedQuestions":
        """Describe the test questions of a split.

        Args:
            whole: the data set that was split, with the items of all its events.
            ranks_of: from `training.run.rank_on_test`.
        """
        later = np.zeros(len(split.test), dtype=np.int64)
        later[select_after_gap(split.dataset, split.test)] = 1
        questions = build_questions(whole, split.test.ends, predict)
        return cls(
            sha256=digest_questions(whole, questions),
            users=encode_integers(split.test.users),
            targets=encode_integers(np.diff(split.test.target_offsets)),
            after_a_gap=encode_integers(later),
            repeats=encode_integers(find_repeated_targets(whole, questions).astype(np.int64)),
            catalog_sha256=digest_catalog(split.dataset.catalog),
            items=len(split.dataset.catalog),
            cold_targets=int(np.count_nonzero(split.test.target_rows == 0)),
            counting=counting,
            references={
                name: encode_ranks(ranks) for name, ranks in ranks_of.items() if name not in OWN
            },
        )

    @staticmethod
    def find_file(folder: Path, sha256: str) -> Path:
        """Return the path of the questions of a digest, in the folder of a suite's records."""
        return folder / "questions" / f"{sha256[:12]}.json"

    @classmethod
    def read(cls, file: Path) -> "RankedQuestions":
        """Read questions.

        Raises:
            TrainingError: if the file is missing, broken, or named after other questions.
        """
        try:
            found = cls.model_validate_json(file.read_text("utf-8"))
            if cls.find_file(file.parent.parent, found.sha256) != file:
                raise ValueError(f"its digest is {found.sha256[:12]}")
            return found
        except (OSError, ValueError) as error:
            is_missing = isinstance(error, FileNotFoundError)
            problem = "it is missing" if is_missing else format_problems(error)
            raise TrainingError(
                f"the questions of a suite's records are in {file}, but cannot be read: {problem}; "
                "restore it, or delete the records and run the rows again"
            ) from error

    def write(self, folder: Path) -> None:
        """Write into the folder of a suite's records, atomically.

        Raises:
            TrainingError: if the questions are there already, of another catalog: ranks among more
                items are worse.
        """
        file = self.find_file(folder, self.sha256)
        file.parent.mkdir(parents=True, exist_ok=True)
        with lock_file(file):
            _check_catalog(file, self.catalog_sha256, self.items, self.cold_targets)
            write_atomically(file, self.model_dump(mode="json"))

    @cached_property
    def user_of(self) -> Int64[np.ndarray, " questions"]:
        """The number of the user of every question."""
        return decode_integers(self.users)

    @cached_property
    def is_after_gap(self) -> Bool[np.ndarray, " questions"]:
        """Whether each question is later than the last event of its history."""
        later: Bool[np.ndarray, " questions"] = decode_integers(self.after_a_gap) == 1
        return later

    @cached_property
    def is_repeat(self) -> Bool[np.ndarray, " targets"]:
        """Whether the history of its question holds each target."""
        repeats: Bool[np.ndarray, " targets"] = decode_integers(self.repeats) == 1
        return repeats

    def read_ranks(self, encoded: str, file: str = "a record") -> Ranks:
        """Decode the ranks of all targets, of a reference or of a record with this digest.

        Args:
            file: of the ranks, for the error.

        Raises:
            TrainingError: if they are broken.
        """
        counts = decode_integers(self.targets)
        try:
            ranks = _decode_targets(encoded, counts)
            if not 0 <= ranks.min(initial=0) <= ranks.max(initial=0) <= self.items:
                raise ValueError(
                    f"ranks are 1 to {self.items}, the items of the catalog, or 0 for a miss, but "
                    f"there is {ranks.max() if ranks.min() >= 0 else ranks.min()}"
                )
        except ValueError as error:
            raise TrainingError(
                f"the ranks of {file} are compressed integers, but cannot be used: {error}; "
                "restore it, or delete the record and run its row again"
            ) from error
        return Ranks(
            ranks=np.where(ranks == 0, MISS, ranks),
            question=np.repeat(np.arange(len(counts)), counts),
            questions=len(counts),
        )


def check_catalog(
    folder: Path,
    config: RunConfig,
    events: pl.DataFrame,
    items: pl.DataFrame | None,
    *,
    is_refitted: bool,
) -> None:
    """Check that a run would rank the catalog of the other rows of its suite.

    Args:
        folder: of the records of the suite.
        config: of the data and the split.
        is_refitted: whether the test ranks the items of all events before it, those of the
            validation included.

    Raises:
        TrainingError: if there are the same questions already, of another catalog, or they are
            broken.
    """
    if not any((folder / "questions").glob("*.json")):
        return
    whole = build_dataset(config, events, items)
    split = split_dataset(config, whole)
    if is_refitted:
        split = split.move_to_test(whole, config.data.predict)
    questions = build_questions(whole, split.test.ends, config.data.predict)
    file = RankedQuestions.find_file(folder, digest_questions(whole, questions))
    catalog = split.dataset.catalog
    cold = int(np.count_nonzero(split.test.target_rows == 0))
    _check_catalog(file, digest_catalog(catalog), len(catalog), cold)


def _check_catalog(file: Path, sha256: str, items: int, cold_targets: int) -> None:
    """Check that the questions of a file, if it is there, are of this catalog."""
    if file.exists() and (found := RankedQuestions.read(file)).catalog_sha256 != sha256:
        raise TrainingError(
            f"all rows of a suite rank the same catalog, but that of {file} "
            f"({found.catalog_sha256[:12]}) has {found.items} items and lacks "
            f"{found.cold_targets} targets, and that of this row ({sha256[:12]}) "
            f"{items} and lacks {cold_targets}; give the rows fit.refit_before_test, "
            "as peers have it, or delete the records of the suite and run its rows again"
        )


def _decode_targets(
    encoded: str, counts: Int64[np.ndarray, " questions"]
) -> Int64[np.ndarray, " targets"]:
    """Decode a number of each target, of which every question has so many."""
    values = decode_integers(encoded)
    if len(values) != counts.sum():
        raise ValueError(f"there are {len(values)} values of {counts.sum()} targets")
    return values


def find_repeated_targets(whole: Dataset, questions: Questions) -> Bool[np.ndarray, " targets"]:
    """Find the targets that the history of their question holds.

    Args:
        whole: a data set whose catalog holds all items.
        questions: of that data set.
    """
    items = len(whole.catalog) + 1
    pairs, first = np.unique(whole.user_of * items + whole.rows, return_index=True)
    question_of = questions.question_of
    targets = questions.users[question_of] * items + questions.target_rows
    # Events are in order, so a pair's first event is in the history if any is.
    repeated: Bool[np.ndarray, " targets"] = (
        first[np.searchsorted(pairs, targets)] < questions.ends[question_of]
    )
    return repeated


def digest_catalog(catalog: Catalog) -> str:
    """Compute a digest of the ids of a catalog's items, in whatever order."""
    return hashlib.sha256(repr(sorted(catalog.item_ids)).encode()).hexdigest()


def digest_questions(whole: Dataset, questions: Questions) -> str:
    """Compute a digest of users, query times and targets, by ids: equal for equal questions.

    Args:
        whole: a data set whose catalog holds all items.
    """
    digest = hashlib.sha256()
    item_ids = np.array(["", *whole.catalog.item_ids], dtype=object)
    for values in (
        [str(whole.user_ids[user]) for user in questions.users],
        questions.query_times.tolist(),
        np.diff(questions.target_offsets).tolist(),
        item_ids[questions.target_rows].tolist(),
    ):
        digest.update(repr(values).encode())
    return digest.hexdigest()
