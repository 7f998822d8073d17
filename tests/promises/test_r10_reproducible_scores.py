"""R10: equal requests to one version give equal items and scores, over HTTP and in a batch."""

from itertools import product
from pathlib import Path

import httpx
import polars as pl
import pytest
from typer.testing import CliRunner

from cli.main import app as cli
from model.wide import WideConfig
from tests.app import tiny_bundle
from tests.app.tiny_bundle import ITEM_IDS
from tests.processes import processes
from tests.promises import mixture
from tests.promises.figures import Figures
from tests.promises.strength import Strength

CLOSE = 1e-5

Answers = list[list[tuple[str, float]]]


def request_each(http: httpx.Client, users: int) -> Answers:
    """Request recommendations for users with inline histories."""
    answers = []
    for number in range(users):
        body = {
            "history": mixture.build_history(number, 3 + number % 48),
            "query_time": mixture.QUERY_TIME,
            "n": 10,
        }
        answer = http.post("/v1/recommendations", json=body)
        assert answer.status_code == 200, answer.text
        answers.append([(item["item_id"], item["score"]) for item in answer.json()["items"]])
    return answers


def recommend_in_batch(directory: Path, bundle_store: Path, users: int) -> Answers:
    """Run `kairos recommend` on the same histories."""
    rows = [
        {"user_id": f"u{number:04}", **event, "action": "view"}
        for number in range(users)
        for event in mixture.build_history(number, 3 + number % 48)
    ]
    events = pl.DataFrame(rows).with_columns(
        pl.from_epoch("timestamp").dt.cast_time_unit("us").dt.replace_time_zone("UTC")
    )
    events.write_parquet(directory / "events.parquet")
    files = ["--events", f"{directory}/events.parquet", "--output", f"{directory}/answers.parquet"]
    options = ["--store", str(bundle_store), "--query-time", "2026-04-01T00:00:00Z", "--n", "10"]
    run = CliRunner().invoke(cli, ["recommend", *files, *options])
    assert run.exit_code == 0, run.output
    table = pl.read_parquet(directory / "answers.parquet").sort("rank")
    by_user = {user: rows for (user,), rows in table.group_by("user_id", maintain_order=True)}
    # A user who has seen every item has no row.
    return [
        list(zip(rows["item_id"], rows["score"], strict=True))
        for rows in (by_user.get(f"u{number:04}", table.clear()) for number in range(users))
    ]


def compute_difference(answers: Answers, reference: Answers) -> float:
    """Compute the largest difference of scores; infinite if the items differ."""
    if [[i for i, _ in each] for each in answers] != [[i for i, _ in each] for each in reference]:
        return float("inf")
    return max(
        abs(score - same)
        for each, other in zip(answers, reference, strict=True)
        for (_, score), (_, same) in zip(each, other, strict=True)
    )


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("wide", "case"), [(None, "the same question"), (WideConfig(), "the same question, counting")]
)
def test_equal_requests_get_equal_answers(
    tmp_path: Path,
    bundle_store: Path,
    strength: Strength,
    figures: Figures,
    wide: WideConfig | None,
    case: str,
) -> None:
    if wide is not None:
        tiny_bundle.publish(bundle_store, seed=1, wide=wide)
    users = strength.select(short=20, full=500)
    threads = strength.select(short=[("1", "1"), ("2", "2")], full=list(product("12", "12")))
    differences: dict[str, float] = {}
    with processes(tmp_path, bundle_store) as start:
        first = start(KAIROS_DRAIN_SECONDS="0")
        reference = request_each(first.http, users)
        differences["asked_again"] = compute_difference(request_each(first.http, users), reference)
        for inference, numeric in threads:
            other = start(
                KAIROS_INFERENCE_THREADS=inference,
                OMP_NUM_THREADS=numeric,
                MKL_NUM_THREADS=numeric,
                OPENBLAS_NUM_THREADS=numeric,
            )
            name = f"another_process_of_{inference}_by_{numeric}_threads"
            differences[name] = compute_difference(request_each(other.http, users), reference)
            other.process.kill()
        first.process.terminate()
        assert first.process.wait(20) == 0
        again = start()
        differences["after_a_restart"] = compute_difference(
            request_each(again.http, users), reference
        )
    batch = recommend_in_batch(tmp_path, bundle_store, users)
    differences["in_one_batch"] = compute_difference(batch, reference)
    figures.record(
        "R10",
        case,
        questions=users,
        comparisons=len(differences),
        differing=sum(d > CLOSE for d in differences.values()),
        largest_score_difference=max(differences.values()),
    )
    assert {name: d for name, d in differences.items() if d > CLOSE} == {}
    assert len({item for each in reference for item, _ in each}) > len(ITEM_IDS) // 2
