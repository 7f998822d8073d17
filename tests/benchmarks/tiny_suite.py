"""A small suite over the tiny world, and records without a training."""

from pathlib import Path

import numpy as np

from benchmarks.papers.harness.comparison import Comparison
from benchmarks.papers.harness.measured_rows import MeasuredRow
from benchmarks.papers.harness.question_ranks import RankedQuestions, encode_integers
from benchmarks.papers.harness.record import Record
from benchmarks.papers.harness.row import Row
from benchmarks.papers.harness.settings import digest
from benchmarks.papers.harness.suite import Suite, build_peer
from benchmarks.papers.pages.tables_page import render_suite
from tests import tiny
from training.evaluation.counting import CountingSettings
from training.evaluation.metrics import Lead
from training.evaluation.report import Report

SUITE = """
title = "A tiny world"
description = "Thirty users."
data = "tiny"
metrics = ["accuracy", "mrr"]
plot = "accuracy"
figures = "percent"

[[curves]]
name = "degree"
axis = "degree"

[base.split]
kind = "by_time"
test = 0.15
validation = 0.15

[base.encoder]
kind = "self_attention"
dim = 8
layers = 1
feed_forward = 8
dropout = 0.1
max_history = 6
time_encoding = { kind = "mercer", periods = 3 }

[base.fit]
epochs = 2
tokens = 300
warmup_steps = 2
loss = { kind = "softmax", negatives = 64 }

[[rows]]
name = "mercer"
label = "Mercer"
class = "query time given"
seeds = [0, 3]
published = { figures = { accuracy = 0.4683 }, source = "a paper, Table 3" }

[[rows]]
name = "positional"
label = "Positional"
class = "order only"
encoder.time_encoding = { kind = "positional", frequencies = 4 }

[[rows]]
name = "counts"
label = "Counts"
class = "order only"
encoder = { kind = "popularity", dim = 1 }
fit.loss = { kind = "bce" }

[[rows]]
name = "degree_2"
label = "Mercer of degree 2"
class = "query time given"
point = { curve = "degree", at = 2 }
encoder.time_encoding.degree = 2
"""


def folder_with_suite(folder: Path, suite: str = SUITE) -> Path:
    """A folder as benchmarks/papers is, with data beside it."""
    (folder / "suites").mkdir(parents=True)
    (folder / "suites" / "tiny.toml").write_text(suite)
    (folder / "data" / "tiny").mkdir(parents=True)
    events = folder / "data" / "tiny" / "events.parquet"
    tiny.gap_world(users=30, length=8).write_parquet(events)
    return folder


def suite_in(folder: Path, suite: str = SUITE) -> Suite:
    """That suite, read from its file."""
    return Suite.read(folder_with_suite(folder, suite) / "suites" / "tiny.toml")


def record_of(suite: Suite, row: Row, seed: int, accuracy: float) -> Record:
    """What a cell would have left that reached this accuracy."""
    settings = suite.merge_settings(row, seed)
    figures = {"accuracy": accuracy, "ndcg@10": 0.7, "mrr": 0.6, "questions": 200.0}
    later = figures | {"accuracy": accuracy - 0.1, "questions": 120.0}
    withheld = figures | {"accuracy": accuracy - 0.05}
    popular = figures | {"accuracy": 0.25, "ndcg@10": 0.3}
    return Record(
        suite=suite.name,
        row=row.name,
        seed=seed,
        settings=settings,
        settings_sha256=digest(settings),
        config=(build_peer(suite, row) or suite.build_config(row, seed)).model_dump(mode="json"),
        data={"tiny/events.parquet": "0" * 64},
        device="cpu",
        processor="An abacus",
        threads=1,
        python="3.11",
        torch="2",
        command="kairos bench papers",
        started_at="2026-01-01T00:00:00+00:00",
        seconds=12.0,
        epochs=2,
        cpu_seconds=9.5,
        seconds_per_epoch=5.0,
        best_epoch=2,
        parameters=12345,
        report=Report(
            rows={"model": figures, "model_withheld": withheld, "popular_all_time": popular},
            after_a_gap={
                "model": later,
                "model_withheld": later | {"accuracy": accuracy - 0.12},
            },
            ahead={"popular_all_time": Lead(0.4, 0.3, 0.5)},
        ),
    )


def ranked_rows(folder: Path, suite: Suite, answers: dict[str, list[int]]) -> list[MeasuredRow]:
    """Rows with the ranks of a hundred targets, written into results/ of a folder.

    Fifty users have two questions each, of which the second is after a gap. The only
    reference ranks ten targets first and misses the others.

    Args:
        answers: by row, of every seed how many of the targets are ranked first; the others are
            second.
    """
    number = np.arange(100)
    questions = RankedQuestions(
        sha256="1" * 64,
        users=encode_integers(number // 2),
        targets=encode_integers(np.ones_like(number)),
        after_a_gap=encode_integers(number % 2),
        repeats=encode_integers((number % 4 == 0).astype(np.int64)),
        catalog_sha256="c" * 64,
        items=20,
        cold_targets=3,
        counting=CountingSettings(),
        references={"popular_all_time": encode_integers(np.where(number < 10, 1, 0))},
    )
    questions.write(folder / "results" / suite.name)
    rows = []
    for name, right in answers.items():
        records = [
            record_of(suite, suite.row(name), seed, count / 100).model_copy(
                update={
                    "questions_sha256": questions.sha256,
                    "ranks": {"model": encode_integers(np.where(number < count, 1, 2))},
                }
            )
            for seed, count in enumerate(right)
        ]
        for record in records:
            found = questions.read_ranks(record.ranks["model"]).summarise()
            model = record.report.rows["model"]
            model.update({metric: found[metric] for metric in model if metric in found})
            for reference, encoded in questions.references.items():
                counted = questions.read_ranks(encoded).summarise()
                figures = {metric: counted[metric] for metric in model if metric in counted}
                record.report.rows[reference].update(figures)
            record.report.after_a_gap["model"]["accuracy"] = (
                record.report.rows["model"]["accuracy"] - 0.4
            )
        rows.append(MeasuredRow(suite.row(name), tuple(records)))
    return rows


def line_of(page: str, label: str) -> str:
    """Find the first line of a row or reference, whether its name follows the label or not."""
    starts = (f"| {label} |", f"| {label} `")
    return next(line for line in page.splitlines() if line.startswith(starts))


def compared(folder: Path, suite: Suite, answers: dict[str, list[int]]) -> str:
    """Render rows whose seeds rank so many targets of a hundred first, the others second."""
    measured = ranked_rows(folder, suite, answers)
    return render_suite(suite, measured, Comparison.read(folder, suite, measured))
