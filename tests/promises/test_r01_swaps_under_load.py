"""R1: while versions come and go, every request is answered, and by one version."""

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
from tests.promises.load import Answer, Load, Request, open_loop, request, run
from tests.promises.strength import Strength

FIRST_AT = tiny_bundle.FIRST_AT // 1_000_000
QUESTIONS: dict[str, dict[str, object]] = {
    f"question {number}": {
        "history": [
            {"item_id": f"i{place % 20}", "timestamp": FIRST_AT + 3600 * place}
            for place in range(number, 3 * number + 1)
        ],
        "query_time": FIRST_AT + 3600 * 24 * 30,
        "n": 10,
        "explain": "attention",
    }
    for number in range(1, 8)
}
REQUESTS = [
    request("POST", "/v1/recommendations", asked, name=name) for name, asked in QUESTIONS.items()
]
Expected = dict[tuple[str, str], list[tuple[str, float]]]
"""By version and question: the items, and their scores."""

FAST_SECONDS = 2.0
P99_RATIO = 3.0
RSS_RATIO = 1.15


@dataclass
class Watched:
    """What the answers of one process say, as they come in."""

    expected: Expected
    load: Load = field(default_factory=Load)
    version: str = ""
    mixed: list[str] = field(default_factory=list)

    def look(self, answer: Answer) -> None:
        """Compare an answer with what its version answers alone."""
        if answer.status != 200:
            return
        told = answer.json()
        self.version = told["model_version"]
        if not alike(told, self.expected[self.version, answer.name]):
            self.mixed.append(f"{answer.name}: {told}")


@dataclass(frozen=True)
class Swap:
    """One change of version: asked for, answered, and followed by every process."""

    began: float
    answered: float
    followed: float


def alike(told: dict[str, Any], expected: list[tuple[str, float]]) -> bool:
    got = [(item["item_id"], item["score"]) for item in told["items"]]
    return len(got) == len(expected) and all(
        one[0] == other[0] and abs(one[1] - other[1]) <= 1e-5
        for one, other in zip(got, expected, strict=True)
    )


def alone(server: Server, versions: list[str]) -> Expected:
    """What each version answers while nothing changes."""
    expected: Expected = {}
    for version in versions:
        for name, asked in QUESTIONS.items():
            told = server.http.post("/v1/recommendations", json={**asked, "model_version": version})
            assert told.json()["model_version"] == version, told.text
            expected[version, name] = [
                (item["item_id"], item["score"]) for item in told.json()["items"]
            ]
    return expected


def swapping(
    servers: list[Server], watched: list[Watched], versions: list[str], swaps: int
) -> tuple[list[Swap], list[list[int]]]:
    """Activate one version after another, each followed by a rollback asked of the other process.

    Answers every swap, and after each the resident bytes of the processes.
    """
    made, resident = [], []
    old, others = versions[0], cycle(versions[1:])
    for number in range(swaps):
        back = number % 2 == 1
        wanted = old if back else next(others)
        path = "/v1/models/rollback" if back else f"/v1/models/{wanted}/activate"
        began = time.perf_counter()
        told = servers[number % 2].http.post(path, json={"reason": "a swap"})
        answered = time.perf_counter()
        assert told.status_code == 200, told.text
        assert told.json()["version"] == wanted
        eventually(lambda wanted=wanted: {each.version for each in watched} == {wanted})
        made.append(Swap(began, answered, time.perf_counter()))
        resident.append(
            [psutil.Process(server.process.pid).memory_info().rss for server in servers]
        )
        time.sleep(0.5)
    return made, resident


async def loaded(
    servers: list[Server], watched: list[Watched], per_second: float, until: Callable[[], bool]
) -> None:
    """The same steady load on every process, for a second at a time."""

    async def on(server: Server, each: Watched) -> None:
        while not until():
            part = await open_loop(
                server.port, turned(), per_second=per_second, seconds=1.0, seen=each.look
            )
            each.load.answers += part.answers
            each.load.late = max(each.load.late, part.late)

    await asyncio.gather(*(on(server, each) for server, each in zip(servers, watched, strict=True)))


def turned() -> list[Request]:
    """The questions, beginning with another one every time."""
    first = time.perf_counter_ns() % len(REQUESTS)
    return REQUESTS[first:] + REQUESTS[:first]


def p99(load: Load, *, during: list[Swap] | None = None) -> float:
    """Of the answers that were under way in one of some swaps; None: of all."""
    overlapping = [
        answer
        for answer in load.answers
        if during is None
        or any(s.began <= answer.at and answer.at - answer.seconds <= s.followed for s in during)
    ]
    return Load(overlapping).quantile(0.99)


@pytest.mark.timeout(900)
def test_a_hundred_swaps_under_load_fail_no_request_and_mix_no_answer(
    tmp_path: Path, database_url: str, strength: Strength, figures: Figures
) -> None:
    if database_url.startswith("postgresql") and not strength.is_full:
        pytest.skip("both databases at full strength; one shows that it works")
    store = tmp_path / "bundles"
    encoder = SelfAttentionConfig(dim=strength.of(short=8, full=64), heads=2, layers=1)
    items = strength.of(short=20, full=20_000)
    versions = [
        tiny_bundle.publish(store, seed=seed, encoder=encoder, items=items, activate=seed == 1)
        for seed in (1, 2, 3)
    ]
    swaps = strength.of(short=4, full=100)
    settings = {"KAIROS_DATABASE_URL": database_url, "KAIROS_REQUESTS_PER_SECOND": "1000000"}
    if not strength.is_full:
        # A busy machine sheds load, and that is no matter of swaps.
        settings["KAIROS_INFERENCE_PATIENCE_SECONDS"] = "60"
    with processes(tmp_path, store) as start:
        servers = [start(wait=False, **settings) for _ in range(2)]
        for server in servers:
            eventually(server.is_ready)
        expected = alone(servers[0], versions)
        steady = [Watched(expected) for _ in servers]
        ends = time.perf_counter() + strength.of(short=1, full=20)
        rate = strength.of(short=5.0, full=20.0)
        run(loaded(servers, steady, rate, lambda: time.perf_counter() > ends))
        watched = [Watched(expected) for _ in servers]

        async def swap_under_load() -> tuple[list[Swap], list[list[int]]]:
            swapped = asyncio.create_task(
                asyncio.to_thread(swapping, servers, watched, versions, swaps)
            )
            await loaded(servers, watched, rate, swapped.done)
            return await swapped

        made, resident = run(swap_under_load())
        changes = servers[0].http.get("/v1/models/changes?limit=1000").json()["changes"]
    answers = [answer for each in watched for answer in each.load.answers]
    during = Load(answers)
    still = Load([answer for each in steady for answer in each.load.answers])
    failed = [answer for answer in answers if answer.status != 200]
    mixed = [told for each in (*steady, *watched) for told in each.mixed]
    ratio = p99(during, during=made) / p99(still)
    growth = max(last / third for third, last in zip(resident[2], resident[-1], strict=True))
    slowest = max(swap.followed - swap.answered for swap in made)
    figures.keep(
        "R1",
        f"{swaps} swaps in 2 processes on {database_url.partition(':')[0]}",
        items=items,
        requests=len(answers),
        failed_requests=len(failed),
        mixed_answers=len(mixed),
        failed_while_steady=len(still.answers) - len(still.of(200)),
        steady_p99_seconds=p99(still),
        p99_ratio=ratio,
        resident_ratio=growth,
        slowest_to_follow_seconds=slowest,
        late_seconds=max(each.load.late for each in watched),
    )
    assert failed == []
    assert mixed == []
    assert {each.version for each in watched} == {versions[0]}
    assert [change["change"] for change in changes] == ["rollback", "activate"] * (swaps // 2)
    if strength.is_full:
        assert ratio <= P99_RATIO
        assert growth <= RSS_RATIO
        assert slowest <= FAST_SECONDS
