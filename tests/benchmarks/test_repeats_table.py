from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.papers.harness.comparison import Comparison
from benchmarks.papers.harness.question_ranks import (
    RankedQuestions,
    encode_integers,
    find_repeated_targets,
)
from benchmarks.papers.harness.suite import Suite
from benchmarks.papers.pages.repeats_table import render_repeats_table
from tests.benchmarks.tiny_suite import SUITE, ranked_rows, suite_in
from tests.training.data.drawn_datasets import datasets
from training.data.dataset import Dataset
from training.data.split import Predict, build_questions


@given(datasets(), st.sampled_from(["next_event", "next_basket"]), st.data())
def test_a_repeated_target_is_in_the_history(
    dataset: Dataset, predict: Predict, data: st.DataObject
) -> None:
    later = np.setdiff1d(np.arange(len(dataset)), dataset.offsets[:-1])
    ends = np.sort(data.draw(st.lists(st.sampled_from(later), unique=True))) if len(later) else []
    questions = build_questions(dataset, np.array(ends, dtype=np.int64), predict)
    expected = [
        row in dataset.rows[dataset.offsets[questions.users[question]] : questions.ends[question]]
        for question, row in zip(questions.question_of, questions.target_rows, strict=True)
    ]
    assert find_repeated_targets(dataset, questions).tolist() == expected


def comparison_in(folder: Path, text: str = SUITE, repeats: int = 25) -> Comparison:
    """Rows that rank the first targets of a hundred first, of which so many are repeats."""
    suite: Suite = suite_in(folder, text)
    rows = ranked_rows(folder, suite, {"mercer": [20, 30], "positional": [60]})
    results = folder / "results" / "tiny"
    questions = RankedQuestions.read(RankedQuestions.find_file(results, "1" * 64))
    is_repeat = (np.arange(100) < repeats).astype(np.int64)
    questions.model_copy(update={"repeats": encode_integers(is_repeat)}).write(results)
    comparison = Comparison.read(folder, suite, rows)
    assert comparison is not None
    return comparison


def test_repeats_and_new_items_have_figures_of_their_own(tmp_path: Path) -> None:
    table = render_repeats_table(comparison_in(tmp_path))
    assert table.splitlines() == [
        "| repeats: 25% of 100 targets | recall@1 of repeats, % | recall@1 of new items, % |",
        "| --- | ---: | ---: |",
        "| popularity, all time | 40.00 | 0.00 |",
        # Of 25 repeats 20 and 25 come first, of 75 new items 0 and 5.
        "| Mercer | 90.00 ± 14.14 | 3.33 ± 4.71 |",
        "| Positional | 100.00 | 46.67 |",
    ]


def test_several_targets_of_a_question_are_averaged_first(tmp_path: Path) -> None:
    comparison = comparison_in(tmp_path)
    # One question of 51 targets, then 49 of one: 25 repeats are all of the first.
    several = comparison.questions.model_copy(
        update={
            "targets": encode_integers(np.array([51] + [1] * 49)),
            "users": encode_integers(np.arange(50)),
            "after_a_gap": encode_integers(np.ones(50, dtype=np.int64)),
        }
    )
    of_several = Comparison(comparison.suite, comparison.measured, several)
    assert of_several.list_recalls("mercer", "repeats") == pytest.approx([0.8, 1.0])
    # Of the first question's 26 new items 0 and 5, of the other 49 questions none.
    of_new_items = of_several.list_recalls("mercer", "new_items")
    assert of_new_items == pytest.approx([0.0, 5 / 26 / 50])


@pytest.mark.parametrize("repeats", [0, 100])
def test_one_kind_of_targets_needs_no_table(repeats: int, tmp_path: Path) -> None:
    assert render_repeats_table(comparison_in(tmp_path, repeats=repeats)) == ""


def test_where_seen_items_are_left_out_there_is_no_table(tmp_path: Path) -> None:
    text = SUITE.replace("[base.split]", "[base.data]\nexclude_seen = true\n\n[base.split]")
    assert render_repeats_table(comparison_in(tmp_path, text)) == ""
    assert render_repeats_table(None) == ""
