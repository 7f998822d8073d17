"""Ablations of the tiny suite, and records of them without a training."""

from pathlib import Path

import numpy as np

from benchmarks.ablations.harness.ablations import Ablations
from benchmarks.papers.harness.question_ranks import RankedQuestions, encode_integers
from benchmarks.papers.harness.recommended import recommend_for_suite
from benchmarks.papers.harness.record import Record
from benchmarks.papers.harness.suite import Suite
from tests.benchmarks.tiny_suite import SUITE, folder_with_suite, record_of
from training.evaluation.counting import CountingSettings

DIGEST = "3" * 64

RECOMMENDED_ROW = """
[[rows]]
name = "kairos"
label = "Kairos"
class = "query time given"
recipe = "recommended"
"""

ABLATIONS = """
suites = ["tiny"]

[[rows]]
name = "full"
label = "all of it"

[[rows]]
name = "no_drift"
label = "without drift"
wide.popularity = false

[[rows]]
name = "no_wide"
label = "without the wide part"
without = ["wide"]

[[rows]]
name = "no_baskets"
label = "no baskets"
encoder.baskets = false

[[rows]]
name = "small"
label = "small"
encoder = { dim = 8, layers = 1, feed_forward = 8 }
"""

USERS, QUESTIONS = 50, 200
"""Every user has four questions."""


def folder_with_ablations(folder: Path, ablations: str = ABLATIONS) -> Path:
    """Folders as benchmarks/papers and benchmarks/ablations are, with data beside them."""
    papers = folder_with_suite(folder / "papers", SUITE + RECOMMENDED_ROW)
    (folder / "ablations").mkdir()
    (folder / "ablations" / "ablations.toml").write_text(ablations)
    suite = Suite.read(papers / "suites" / "tiny.toml")
    recommend_for_suite(suite, papers / "data", folder=papers)
    return folder


def read_tiny_ablation(folder: Path) -> Suite:
    """The tiny suite with the rows of the ablations."""
    return Ablations.read(folder / "ablations").read_suite("tiny", folder / "papers")


def ablation_record_of(
    suite: Suite, row: str, right: dict[str, int], *, seed: int = 0, epochs: int | None = None
) -> Record:
    """What a cell would have left that ranked the targets of the first questions first.

    Args:
        right: the number of right answers by ranker.
        epochs: those of the recipe by default.
    """
    suite = suite if epochs is None else suite.shorten(epochs)
    record = record_of(suite, suite.row(row), seed, right["model"] / QUESTIONS)
    return record.model_copy(
        update={
            "questions_sha256": DIGEST,
            "ranks": {
                name: encode_integers(np.where(np.arange(QUESTIONS) < count, 1, 2))
                for name, count in right.items()
            },
        }
    )


def write_questions(folder: Path) -> None:
    """Write the questions of those records into results/ of a folder."""
    number = np.arange(QUESTIONS)
    RankedQuestions(
        sha256=DIGEST,
        users=encode_integers(number % USERS),
        targets=encode_integers(np.ones_like(number)),
        after_a_gap=encode_integers(np.ones_like(number)),
        repeats=encode_integers(np.zeros_like(number)),
        catalog_sha256="c" * 64,
        items=20,
        cold_targets=0,
        counting=CountingSettings(),
        references={},
    ).write(folder / "results" / "tiny")
