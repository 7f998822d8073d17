import pytest

from tests import tiny
from training.config import DataConfig
from training.data.dataset import Dataset
from training.data.split import LeaveOneOutConfig
from training.evaluation.report import Report, build_report

SAMPLED = {"ndcg@10_sampled100", "hit_rate@10_sampled100"}


@pytest.fixture(scope="module")
def reports() -> dict[bool, Report]:
    """A report with sampled metrics, and one without."""
    dataset = Dataset.of(tiny.gap_world(users=15, length=7))
    split = LeaveOneOutConfig().split(dataset, "next_event")
    recommender = tiny.recommender(tiny.recommender_config(items=len(split.dataset.catalog)))
    return {
        is_sampled: build_report(
            recommender,
            split,
            DataConfig(sampled_metrics=is_sampled),
            max_history=tiny.ENCODER.max_history,
        )
        for is_sampled in (True, False)
    }


def test_every_ranker_has_sampled_metrics_if_configured(
    reports: dict[bool, Report],
) -> None:
    for row in reports[True].rows.values():
        assert row.keys() >= SAMPLED
    for row in reports[False].rows.values():
        assert not row.keys() & SAMPLED


def test_sampled_metrics_leave_the_full_ones_as_they_are(reports: dict[bool, Report]) -> None:
    assert reports[True].ahead == reports[False].ahead
    for name, row in reports[False].rows.items():
        assert {key: reports[True].rows[name][key] for key in row} == row


def test_fewer_rivals_make_no_ranker_worse(reports: dict[bool, Report]) -> None:
    for row in reports[True].rows.values():
        assert row["ndcg@10_sampled100"] >= row["ndcg@10"]
        assert row["hit_rate@10_sampled100"] >= row["hit_rate@10"]


def test_a_manifest_keeps_the_sampled_metrics_of_the_model(reports: dict[bool, Report]) -> None:
    metrics = reports[True].metrics
    assert {f"{name}_withheld" for name in SAMPLED} | SAMPLED <= metrics.keys()


def test_measuring_again_finds_the_same(reports: dict[bool, Report]) -> None:
    dataset = Dataset.of(tiny.gap_world(users=15, length=7))
    split = LeaveOneOutConfig().split(dataset, "next_event")
    recommender = tiny.recommender(tiny.recommender_config(items=len(split.dataset.catalog)))
    again = build_report(
        recommender,
        split,
        DataConfig(sampled_metrics=True),
        max_history=tiny.ENCODER.max_history,
    )
    assert again == reports[True]
