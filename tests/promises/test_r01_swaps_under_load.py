"""R1: while versions are swapped, every request is answered, each by one version."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import psutil
import pytest

from model.encoders.self_attention import SelfAttentionConfig
from tests.app import tiny_bundle
from tests.processes import Server, eventually, processes
from tests.promises.figures import Figures
from tests.promises.load import Answer, Load, Request, build_request, open_loop, run
from tests.promises.strength import Strength

FIRST_AT = tiny_bundle.FIRST_AT // 1_000_000
QUESTIONS: dict[str, dict[str, object]] = {
    f"question {number}": {
        "history": [
            {"item_id": f"i{index % 20}", "timestamp": FIRST_AT + 3600 * index}
            for index in range(number, 3 * number + 1)
        ],
        "query_time": FIRST_AT + 3600 * 24 * 30,
        "n": 10,
        "explain": "attention",
    }
    for number in range(1, 8)
}
REQUESTS = [
    build_request("POST", "/v1/recommendations", body, name=name)
    for name, body in QUESTIONS.items()
]
Expected = dict[tuple[str, str], list[tuple[str, float]]]
"""Items and their scores, by version and question."""

FAST_SECONDS = 2.0
P99_RATIO = 3.0
RSS_RATIO = 1.15


@dataclass
class Observations:
    """The answers of one process."""

    expected: Expected
    load: Load = field(default_factory=Load)
    version: str = ""
    mixed: list[str] = field(default_factory=list)

    def add(self, answer: Answer) -> None:
        """Compare an answer with that of its version without swaps."""
        if answer.status != 200:
            return
        body = answer.json()
        self.version = body["model_version"]
        if not is_close(body, self.expected[self.version, answer.name]):
            self.mixed.append(f"{answer.name}: {body}")


@dataclass(frozen=True)
class Swap:
    """One change of version: times of the request, its answer, and the last process to follow."""

    began: float
    answered: float
    followed: float


def is_close(body: dict[str, Any], expected: list[tuple[str, float]]) -> bool:
    got = [(item["item_id"], item["score"]) for item in body["items"]]
    return len(got) == len(expected) and all(
        one[0] == other[0] and abs(one[1] - other[1]) <= 1e-5
        for one, other in zip(got, expected, strict=True)
    )


def read_expected(server: Server, versions: list[str]) -> Expected:
    """Read the answers of each version without swaps."""
    expected: Expected = {}
    for version in versions:
        for name, question in QUESTIONS.items():
            body = {**question, "model_version": version}
            response = server.http.post("/v1/recommendations", json=body)
            assert response.json()["model_version"] == version, response.text
            expected[version, name] = [
                (item["item_id"], item["score"]) for item in response.json()["items"]
            ]
    return expected


def swap_versions(
    servers: list[Server], observations: list[Observations], versions: list[str], swaps: int
) -> tuple[list[Swap], list[list[int]]]:
    """Activate one version after another, each followed by a rollback through the other process.

    Returns every swap, and after each the resident bytes of the processes.
    """
    made, resident = [], []
    old, others = versions[0], cycle(versions[1:])
    for number in range(swaps):
        is_rollback = number % 2 == 1
        target = old if is_rollback else next(others)
        path = "/v1/models/rollback" if is_rollback else f"/v1/models/{target}/activate"
        began = time.perf_counter()
        response = servers[number % 2].http.post(path, json={"reason": "a swap"})
        answered = time.perf_counter()
        assert response.status_code == 200, response.text
        assert response.json()["version"] == target
        eventually(lambda target=target: {each.version for each in observations} == {target})
        made.append(Swap(began, answered, time.perf_counter()))
        resident.append(
            [psutil.Process(server.process.pid).memory_info().rss for server in servers]
        )
        time.sleep(0.5)
    return made, resident


async def run_load(
    servers: list[Server],
    observations: list[Observations],
    per_second: float,
    until: Callable[[], bool],
) -> None:
    """Run the same steady load on every process, for a second at a time."""

    async def run_one(server: Server, each: Observations) -> None:
        while not until():
            part = await open_loop(
                server.port,
                rotate_requests(),
                per_second=per_second,
                seconds=1.0,
                on_answer=each.add,
            )
            each.load.answers += part.answers
            each.load.late = max(each.load.late, part.late)

    await asyncio.gather(
        *(run_one(server, each) for server, each in zip(servers, observations, strict=True))
    )


def rotate_requests() -> list[Request]:
    """Return the requests in cyclic order, starting with another one each time."""
    first = time.perf_counter_ns() % len(REQUESTS)
    return REQUESTS[first:] + REQUESTS[:first]


def compute_p99(load: Load, *, during: list[Swap] | None = None) -> float:
    """Compute the p99 of answers that overlap with a swap; of all answers for None."""
    overlapping = [
        answer
        for answer in load.answers
        if during is None
        or any(s.began <= answer.at and answer.at - answer.seconds <= s.followed for s in during)
    ]
    return Load(overlapping).quantile(0.99)


@pytest.mark.timeout(900)
def test_swaps_under_load_fail_no_request_and_mix_no_answer(
    tmp_path: Path, database_url: str, strength: Strength, figures: Figures
) -> None:
    if database_url.startswith("postgresql") and not strength.is_full:
        pytest.skip("PostgreSQL runs at full strength only")
    store = tmp_path / "bundles"
    encoder = SelfAttentionConfig(dim=strength.select(short=8, full=64), heads=2, layers=1)
    items = strength.select(short=20, full=20_000)
    versions = [
        tiny_bundle.publish(store, seed=seed, encoder=encoder, items=items, activate=seed == 1)
        for seed in (1, 2, 3)
    ]
    swaps = strength.select(short=4, full=100)
    settings = {"KAIROS_DATABASE_URL": database_url, "KAIROS_REQUESTS_PER_SECOND": "1000000"}
    if not strength.is_full:
        # A busy machine sheds load, independently of swaps.
        settings["KAIROS_INFERENCE_PATIENCE_SECONDS"] = "60"
    with processes(tmp_path, store) as start:
        servers = [start(wait=False, **settings) for _ in range(2)]
        for server in servers:
            eventually(server.is_ready)
        expected = read_expected(servers[0], versions)
        steady = [Observations(expected) for _ in servers]
        rate = strength.select(short=5.0, full=20.0)

        def measure_steady() -> None:
            ends = time.perf_counter() + strength.select(short=1, full=20)
            run(run_load(servers, steady, rate, lambda: time.perf_counter() > ends))

        measure_steady()
        observations = [Observations(expected) for _ in servers]

        async def swap_under_load() -> tuple[list[Swap], list[list[int]]]:
            swapped = asyncio.create_task(
                asyncio.to_thread(swap_versions, servers, observations, versions, swaps)
            )
            await run_load(servers, observations, rate, swapped.done)
            return await swapped

        made, resident = run(swap_under_load())
        # A shared machine's speed changes within minutes.
        measure_steady()
        changes = servers[0].http.get("/v1/models/changes?limit=1000").json()["changes"]
    answers = [answer for each in observations for answer in each.load.answers]
    during = Load(answers)
    still = Load([answer for each in steady for answer in each.load.answers])
    failed = [answer for answer in answers if answer.status != 200]
    mixed = [answer for each in (*steady, *observations) for answer in each.mixed]
    ratio = compute_p99(during, during=made) / compute_p99(still)
    growth = max(last / third for third, last in zip(resident[2], resident[-1], strict=True))
    slowest = max(swap.followed - swap.answered for swap in made)
    figures.record(
        "R1",
        f"{swaps} swaps in 2 processes on {database_url.partition(':')[0]}",
        items=items,
        requests=len(answers),
        failed_requests=len(failed),
        mixed_answers=len(mixed),
        failed_while_steady=len(still.answers) - len(still.select(200)),
        steady_p99_seconds=compute_p99(still),
        p99_ratio=ratio,
        resident_ratio=growth,
        slowest_to_follow_seconds=slowest,
        late_seconds=max(each.load.late for each in observations),
    )
    assert failed == []
    assert mixed == []
    assert {each.version for each in observations} == {versions[0]}
    assert [change["change"] for change in changes] == ["rollback", "activate"] * (swaps // 2)
    if strength.is_full:
        assert ratio <= P99_RATIO
        assert growth <= RSS_RATIO
        assert slowest <= FAST_SECONDS
