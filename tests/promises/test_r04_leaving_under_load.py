"""R4: a process that is told to stop says so first, answers what it was asked, and goes."""

import asyncio
import signal
import time
from pathlib import Path

import pytest

from tests.processes import Server, processes
from tests.promises import load, mixture
from tests.promises.figures import Figures
from tests.promises.load import NO_ANSWER, Connection, Load
from tests.promises.strength import Strength

QUESTIONS = [mixture.inline(number) for number in range(20)]
READY = load.request("GET", "/health/ready")
PROBED_EVERY_SECONDS = 0.05
# On a busy machine even eight clients would be asked to come back later.
PATIENT = {"KAIROS_INFERENCE_PATIENCE_SECONDS": "60"}


async def told_to_stop(server: Server, clients: int) -> tuple[Load, float, float]:
    """Clients behind a balancer that probes, and a process that is told to stop.

    Answers what they got, and after how many seconds the probe said no, and the last of them asked.
    """
    loop = asyncio.get_running_loop()
    is_sent_traffic = True

    async def stop() -> tuple[float, float]:
        nonlocal is_sent_traffic
        await asyncio.sleep(1)
        server.process.send_signal(signal.SIGTERM)
        told_at = loop.time()
        status = 200
        while status == 200:
            await asyncio.sleep(PROBED_EVERY_SECONDS)
            status = (await Connection(server.port).ask(READY)).status
        assert status == 503, "the process was gone before it said that it would go"
        unready = loop.time() - told_at
        # A balancer acts on what it was told a while later.
        await asyncio.sleep(4 * PROBED_EVERY_SECONDS)
        is_sent_traffic = False
        return unready, loop.time() - told_at

    asked = load.closed_loop(
        server.port, QUESTIONS, clients=clients, until=lambda: not is_sent_traffic
    )
    answered, (unready, last_sent) = await asyncio.gather(asked, stop())
    return answered, unready, last_sent


@pytest.mark.timeout(300)
def test_sigterm_under_load_fails_nobody(
    tmp_path: Path, bundle_store: Path, strength: Strength, figures: Figures
) -> None:
    failed = asked = 0
    exits, unready_after, gone_after = [], [], []
    with processes(tmp_path, bundle_store) as start:
        for _ in range(strength.of(short=1, full=10)):
            server = start(KAIROS_DRAIN_SECONDS="1.5", **PATIENT)
            began = time.monotonic() + 1
            answered, unready, _ = load.run(told_to_stop(server, clients=8))
            exits.append(server.process.wait(20))
            gone_after.append(time.monotonic() - began)
            unready_after.append(unready)
            failed += len(answered.answers) - len(answered.of(200))
            asked += len(answered.answers)
    figures.keep(
        "R4",
        "SIGTERM under load",
        rounds=len(exits),
        requests=asked,
        failed=failed,
        exit_codes=" ".join(map(str, sorted({*exits}))),
        unready_after_seconds=max(unready_after),
        gone_after_seconds=max(gone_after),
    )
    assert failed == 0
    assert {*exits} == {0}
    assert asked > 20
    if strength.is_full:
        assert max(unready_after) < 1.5
        assert max(gone_after) < 10


def test_who_asks_until_the_last_is_answered_or_never_let_in(
    tmp_path: Path, bundle_store: Path, strength: Strength, figures: Figures
) -> None:
    """Clients with no balancer: every request the process took is answered."""

    async def story(server: Server) -> Load:
        ended = False

        def seen(answer: load.Answer) -> None:
            nonlocal ended
            ended = ended or answer.status == NO_ANSWER

        async def stop() -> None:
            await asyncio.sleep(1)
            server.process.send_signal(signal.SIGTERM)

        asked = load.closed_loop(server.port, QUESTIONS, clients=8, seen=seen, until=lambda: ended)
        answered, _ = await asyncio.gather(asked, stop())
        return answered

    with processes(tmp_path, bundle_store) as start:
        server = start(KAIROS_DRAIN_SECONDS="0.5", **PATIENT)
        answered = load.run(story(server))
        assert server.process.wait(20) == 0
    lost = [a for a in answered.of(NO_ANSWER) if b"bytes of the answer" in a.head]
    figures.keep(
        "R4",
        "asked until the last",
        requests=len(answered.answers),
        turned_away=len(answered.of(NO_ANSWER)) - len(lost),
        cut_off=len(lost),
    )
    assert {*answered.statuses} <= {200, NO_ANSWER}
    assert not lost


def test_a_second_signal_ends_the_process_as_it_stands(tmp_path: Path, bundle_store: Path) -> None:
    with processes(tmp_path, bundle_store) as start:
        server = start(KAIROS_DRAIN_SECONDS="60")
        server.process.send_signal(signal.SIGTERM)
        while server.http.get("/health/ready").status_code == 200:
            time.sleep(0.02)
        told = server.http.get("/health/ready").json()
        assert told["status"] == "not_ready"
        assert told["process"] == "was told to stop; ask another"
        assert server.http.get("/health/live").headers["connection"] == "close"
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(10) == 128 + signal.SIGINT


def test_ctrl_c_needs_no_drain(tmp_path: Path, bundle_store: Path) -> None:
    with processes(tmp_path, bundle_store) as start:
        server = start(KAIROS_DRAIN_SECONDS="60")
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(20) == 0
