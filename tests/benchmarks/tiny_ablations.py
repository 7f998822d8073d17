"""Ablations of the tiny suite, and records of them without a training."""

from pathlib import Path

import numpy as np

from benchmarks.ablations.harness.ablations import Ablations
from benchmarks.papers.harness.question_values import encode_values
from benchmarks.papers.harness.recommended import recommend_for_suite
from benchmarks.papers.harness.record import Record
from benchmarks.papers.harness.suite import Suite
from tests.benchmarks.tiny_suite import SUITE, folder_with_suite, record_of

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

QUESTIONS = 200


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
    answers = {name: np.arange(QUESTIONS) < count for name, count in right.items()}
    rows = {
        name: {"accuracy": count / QUESTIONS, "questions": 200.0} for name, count in right.items()
    }
    return record.model_copy(
        update={
            "report": record.report.model_copy(update={"rows": rows}),
            "questions": {
                name: encode_values(values.astype(np.float64)) for name, values in answers.items()
            },
        }
    )
