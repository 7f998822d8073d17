import json
from pathlib import Path

import pytest

from model.wide import WideConfig
from tests import tiny
from training.config import DataConfig
from training.data.dataset import Dataset
from training.data.split import LeaveOneOutConfig
from training.evaluation.counting import CountingSettings
from training.evaluation.live_counts import count_live
from training.evaluation.report import Report, build_report

COUNTED = CountingSettings(half_life_days=60, weight=1, window_days=None)
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
            live=None,
            counting=COUNTED,
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
        live=None,
        counting=COUNTED,
    )
    assert again == reports[True]


def test_counting_has_a_frozen_and_a_live_row(reports: dict[bool, Report]) -> None:
    report = reports[False]
    assert {"counting", "counting_live"} <= report.rows.keys() & report.after_a_gap.keys()
    flat = {f"{name}_ndcg@10" for name in ("counting", "counting_live")}
    assert flat <= report.metrics.keys()


def test_live_counting_is_compared_with_the_live_model() -> None:
    dataset = Dataset.of(tiny.gap_world(users=15, length=7))
    split = LeaveOneOutConfig().split(dataset, "next_event")
    config = tiny.recommender_config(items=len(split.dataset.catalog), wide=WideConfig())
    recommender = tiny.recommender(config)
    report = build_report(
        recommender,
        split,
        DataConfig(),
        max_history=tiny.ENCODER.max_history,
        live=count_live(recommender, split.dataset),
        counting=COUNTED,
    )
    ndcg = {name: row["ndcg@10"] for name, row in report.rows.items()}
    assert ndcg["model"] != ndcg["model_live"]
    lead = {name: difference.mean for name, difference in report.ahead.items()}
    assert lead["counting"] == pytest.approx(ndcg["model"] - ndcg["counting"])
    assert lead["counting_live"] == pytest.approx(ndcg["model_live"] - ndcg["counting_live"])


def test_a_report_is_read_with_and_without_counting(
    reports: dict[bool, Report], tmp_path: Path
) -> None:
    report = reports[False]
    report.write(tmp_path / "report.json")
    written = json.loads((tmp_path / "report.json").read_text())
    assert written["counting"] == {"half_life_days": 60.0, "weight": 1.0, "window_days": None}
    assert Report.model_validate(written) == report
    del written["counting"]
    assert Report.model_validate(written).counting is None
