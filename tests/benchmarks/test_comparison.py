import base64
import json
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmarks.papers.harness.comparison import LEAST_USERS, Comparison
from benchmarks.papers.harness.measured_rows import MeasuredRow
from benchmarks.papers.harness.question_ranks import (
    RankedQuestions,
    decode_integers,
    encode_integers,
    encode_ranks,
)
from benchmarks.papers.harness.suite import Suite
from benchmarks.papers.pages.figures import format_lead
from model.errors import TrainingError
from tests.benchmarks.tiny_suite import ranked_rows, record_of
from training.evaluation.counting import CountingSettings
from training.evaluation.metrics import MISS, Ranks

USERS = 40


def comparison_of(
    suite: Suite, users: NDArray[np.int64], answers: dict[str, list[NDArray[np.bool_]]]
) -> Comparison:
    """Rows that ranked these targets first, one target a question."""
    questions = RankedQuestions(
        sha256="2" * 64,
        users=encode_integers(users),
        targets=encode_integers(np.ones_like(users)),
        after_a_gap=encode_integers(np.ones_like(users)),
        repeats=encode_integers(np.zeros_like(users)),
        catalog_sha256="c" * 64,
        items=20,
        cold_targets=0,
        counting=CountingSettings(),
        references={"popular_all_time": encode_integers(np.full_like(users, 2))},
    )
    rows = tuple(
        MeasuredRow(
            suite.row(name),
            tuple(
                record_of(suite, suite.row(name), seed, 0.5).model_copy(
                    update={"ranks": {"model": encode_integers(np.where(right, 1, 2))}}
                )
                for seed, right in enumerate(seeds)
            ),
        )
        for name, seeds in answers.items()
    )
    return Comparison(suite, rows, questions)


@given(st.lists(st.integers(0, 2**40)))
def test_integers_come_back_as_they_were(values: list[int]) -> None:
    numbers = np.array(values, dtype=np.int64)
    assert decode_integers(encode_integers(numbers)).tolist() == values


def test_ranks_come_back_with_their_questions(suite: Suite, tmp_path: Path) -> None:
    ranked_rows(tmp_path, suite, {"mercer": [1]})
    (file,) = (tmp_path / "results" / suite.name / "questions").iterdir()
    questions = RankedQuestions.read(file).model_copy(
        update={"targets": encode_integers(np.array([2, 1]))}
    )
    ranks = Ranks(np.array([7, MISS, 20]), np.array([0, 0, 1]), 2)
    found = questions.read_ranks(encode_ranks(ranks))
    assert found.ranks.tolist() == ranks.ranks.tolist()
    assert found.question.tolist() == [0, 0, 1]
    assert found.questions == 2


def test_the_lead_is_the_difference_of_the_means(suite: Suite, tmp_path: Path) -> None:
    rows = ranked_rows(tmp_path, suite, {"mercer": [60, 70], "positional": [40]})
    comparison = Comparison.read(tmp_path, suite, rows)
    assert comparison is not None
    assert comparison.compare("mercer", "positional").mean == pytest.approx(0.25)
    assert comparison.compare("mercer", "popular_all_time").mean == pytest.approx(0.55)
    assert comparison.count_questions("after_a_gap") == 50


def test_a_relative_lead_resamples_both_figures(suite: Suite) -> None:
    random = np.random.default_rng(3)
    users = np.arange(2_000)
    right, other = random.random(2_000) < 0.4, random.random(2_000) < 0.2
    comparison = comparison_of(suite, users, {"mercer": [right], "positional": [other]})
    lead = comparison.compare_relative("mercer", "positional")
    assert lead.mean == pytest.approx(right.mean() / other.mean() - 1)
    # By the delta method for a ratio of independent means.
    own, others = right.mean(), other.mean()
    variance = (1 - own) / own / 2_000 + (1 - others) / others / 2_000
    error = 1.96 * own / others * variance**0.5
    assert lead.low == pytest.approx(lead.mean - error, abs=0.15 * error)
    assert lead.high == pytest.approx(lead.mean + error, abs=0.15 * error)


def test_the_interval_counts_users_instead_of_questions(suite: Suite) -> None:
    random = np.random.default_rng(0)
    right = random.random(USERS) < 0.5
    wrong = np.zeros(USERS, dtype=np.bool_)
    of_users = comparison_of(
        suite, np.arange(USERS), {"mercer": [right], "positional": [wrong]}
    ).compare("mercer", "positional")
    # A hundred equal questions of every user tell no more than one.
    many = comparison_of(
        suite,
        np.repeat(np.arange(USERS), 100),
        {"mercer": [np.repeat(right, 100)], "positional": [np.repeat(wrong, 100)]},
    ).compare("mercer", "positional")
    assert many == pytest.approx(of_users)
    assert of_users.high - of_users.low > 0.2


def test_the_interval_of_one_question_per_user_is_known(suite: Suite) -> None:
    random = np.random.default_rng(1)
    right, other = random.random((2, 2_000)) < np.array([[0.6], [0.5]])
    users = np.arange(2_000)
    lead = comparison_of(suite, users, {"mercer": [right], "positional": [other]}).compare(
        "mercer", "positional"
    )
    error = 1.96 * (right * 1.0 - other).std() / 2_000**0.5
    assert (lead.low, lead.high) == pytest.approx((lead.mean - error, lead.mean + error), abs=2e-3)
    assert lead.is_clear


def test_the_interval_contains_the_spread_over_seeds(suite: Suite) -> None:
    users = np.arange(5_000)
    random = np.random.default_rng(2)
    seeds = [random.random(5_000) < share for share in (0.4, 0.5, 0.6)]
    other = random.random(5_000) < 0.45
    one = comparison_of(suite, users, {"mercer": seeds[1:2], "positional": [other]})
    three = comparison_of(suite, users, {"mercer": seeds, "positional": [other]})
    assert one.compare("mercer", "positional").is_clear
    assert not three.compare("mercer", "positional").is_clear
    # Whichever side the seeds are on.
    lead, reverse = three.compare("mercer", "positional"), three.compare("positional", "mercer")
    assert reverse.high - reverse.low == pytest.approx(lead.high - lead.low, rel=0.05)


def test_a_reference_with_two_figures_is_an_error(suite: Suite, tmp_path: Path) -> None:
    (row,) = ranked_rows(tmp_path, suite, {"mercer": [60]})
    row.records[0].report.rows["popular_all_time"]["accuracy"] = 0.25
    with pytest.raises(TrainingError, match=r"popular_all_time has accuracy 0\.1.* and 0\.25"):
        Comparison.read(tmp_path, suite, [row])


def test_broken_ranks_are_an_error(suite: Suite, tmp_path: Path) -> None:
    ranked_rows(tmp_path, suite, {"mercer": [60]})
    questions = RankedQuestions.read(RankedQuestions.find_file(tmp_path / "results/tiny", "1" * 64))
    with pytest.raises(TrainingError, match="delete the record"):
        questions.read_ranks(questions.targets[:-9])


def test_broken_ranks_name_their_record(suite: Suite, tmp_path: Path) -> None:
    (row,) = ranked_rows(tmp_path, suite, {"mercer": [60]})
    broken = row.records[0].model_copy(update={"ranks": {"model": "u9:eJw="}})
    with pytest.raises(TrainingError, match=r"ranks of results/tiny/mercer-0\.json .* 'u9'; rest"):
        Comparison.read(tmp_path, suite, [MeasuredRow(row.row, (broken,))])


@pytest.mark.parametrize("rank", [-1, 21])
def test_ranks_beside_the_catalog_are_an_error(rank: int, suite: Suite, tmp_path: Path) -> None:
    ranked_rows(tmp_path, suite, {"mercer": [60]})
    questions = RankedQuestions.read(RankedQuestions.find_file(tmp_path / "results/tiny", "1" * 64))
    packed = zlib.compress(np.full(100, rank, np.int64).tobytes())
    encoded = f"u8:{base64.b64encode(packed).decode()}"
    with pytest.raises(TrainingError, match=f"ranks are 1 to 20, .* but there is {rank}; restore"):
        questions.read_ranks(encoded)


def test_ranks_of_another_run_than_the_report_are_an_error(suite: Suite, tmp_path: Path) -> None:
    (row,) = ranked_rows(tmp_path, suite, {"mercer": [60, 61]})
    first, second = row.records
    mixed = second.model_copy(update={"ranks": first.ranks})
    with pytest.raises(TrainingError, match=r"mercer-1\.json accuracy is 0\.600000, .* 0\.610000"):
        Comparison.read(tmp_path, suite, [MeasuredRow(row.row, (first, mixed))])


def test_questions_named_after_others_are_an_error(suite: Suite, tmp_path: Path) -> None:
    ranked_rows(tmp_path, suite, {"mercer": [60]})
    file = RankedQuestions.find_file(tmp_path / "results/tiny", "1" * 64)
    renamed = RankedQuestions.find_file(tmp_path / "results/tiny", "2" * 64)
    file.rename(renamed)
    with pytest.raises(TrainingError, match=r"222222222222\.json, .*: its digest is 111111111111"):
        RankedQuestions.read(renamed)


def test_few_questions_of_a_subset_still_have_an_interval(suite: Suite) -> None:
    users = np.arange(10 * LEAST_USERS)
    right = users % 3 == 0
    whole = comparison_of(suite, users, {"mercer": [right], "positional": [~right]})
    later = encode_integers((users < LEAST_USERS).astype(np.int64))
    few = whole.questions.model_copy(update={"after_a_gap": later})
    comparison = replace(whole, questions=few, draws=100_000)
    # Some resamples hold none of those users.
    assert np.isnan(comparison.resample("mercer", "after_a_gap").by_seed).any()
    lead = comparison.compare("mercer", "positional", "after_a_gap")
    assert lead.low < lead.mean < lead.high


def test_a_lead_of_few_users_has_no_interval(suite: Suite) -> None:
    users = np.arange(LEAST_USERS - 1)
    right = np.ones_like(users, dtype=np.bool_)
    lead = comparison_of(suite, users, {"mercer": [right], "positional": [~right]}).compare(
        "mercer", "positional"
    )
    assert not lead.is_clear
    assert format_lead(suite, lead) == "+100.00 (no interval of so few users)"


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("users", "u9:eJw="),
        ("users", "u1:eJw="),
        ("targets", "u1:not base64"),
        ("after_a_gap", encode_integers(np.arange(7))),
        ("repeats", encode_integers(np.arange(7))),
        ("references", {"popular_all_time": "u1:eJw="}),
        ("references", {"popular_all_time": encode_integers(np.arange(7))}),
    ],
)
def test_broken_questions_are_named_with_the_remedy(
    name: str, broken: object, suite: Suite, tmp_path: Path
) -> None:
    ranked_rows(tmp_path, suite, {"mercer": [60]})
    file = RankedQuestions.find_file(tmp_path / "results/tiny", "1" * 64)
    file.write_text(json.dumps(json.loads(file.read_text()) | {name: broken}))
    with pytest.raises(TrainingError, match=rf"{file.name}, but cannot be read: .*; restore it"):
        RankedQuestions.read(file)


def test_another_metric_can_be_compared(suite: Suite, tmp_path: Path) -> None:
    rows = ranked_rows(tmp_path, suite, {"mercer": [60], "positional": [40]})
    comparison = Comparison.read(tmp_path, suite, rows)
    assert comparison is not None
    assert comparison.compare("mercer", "positional", metric="mrr").mean == pytest.approx(0.1)
    assert comparison.compute_values("mercer", metric="mrr").mean() == pytest.approx(0.8)
    with pytest.raises(TrainingError, match=r"records are \['mercer', 'positional'\].*got 'caser'"):
        comparison.compare("mercer", "caser")


def test_rows_of_other_questions_are_not_compared(suite: Suite, tmp_path: Path) -> None:
    rows = ranked_rows(tmp_path, suite, {"mercer": [60], "positional": [40]})
    other = rows[1].records[0].model_copy(update={"questions_sha256": "9" * 64})
    comparison = Comparison.read(tmp_path, suite, [rows[0], MeasuredRow(rows[1].row, (other,))])
    assert comparison is not None
    assert comparison.has("mercer")
    assert not comparison.has("positional")


def test_ranks_of_other_questions_are_an_error(suite: Suite, tmp_path: Path) -> None:
    ranked_rows(tmp_path, suite, {"mercer": [50]})
    (file,) = (tmp_path / "results" / "tiny" / "questions").iterdir()
    with pytest.raises(TrainingError, match="there are 7 values of 100 targets"):
        RankedQuestions.read(file).read_ranks(encode_integers(np.arange(7)))


def test_records_without_ranks_are_not_compared(suite: Suite, tmp_path: Path) -> None:
    rows = [MeasuredRow(suite.row("mercer"), (record_of(suite, suite.row("mercer"), 0, 0.5),))]
    assert Comparison.read(tmp_path, suite, rows) is None
