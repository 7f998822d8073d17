"""R4: on SIGTERM a process is not ready, answers open requests, and exits with 0."""

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

QUESTIONS = [mixture.build_inline(number) for number in range(20)]
READY = load.build_request("GET", "/health/ready")
PROBED_EVERY_SECONDS = 0.05
# On a busy machine even eight clients would be shed.
NO_SHEDDING = {"KAIROS_INFERENCE_PATIENCE_SECONDS": "60"}


async def stop_behind_balancer(server: Server, clients: int) -> tuple[Load, float, float]:
    """Stop a process under the load of clients behind a balancer that probes it.

    Returns their answers, and the seconds until the probe failed and until the last request.
    """
    loop = asyncio.get_running_loop()
    is_sent_traffic = True

    async def stop() -> tuple[float, float]:
        nonlocal is_sent_traffic
        await asyncio.sleep(1)
        server.process.send_signal(signal.SIGTERM)
        signalled_at = loop.time()
        status = 200
        while status == 200:
            await asyncio.sleep(PROBED_EVERY_SECONDS)
            status = (await Connection(server.port).send(READY)).status
        assert status == 503, "the process exited before its probe failed"
        unready = loop.time() - signalled_at
        # A balancer reacts to a failed probe with a delay.
        await asyncio.sleep(4 * PROBED_EVERY_SECONDS)
        is_sent_traffic = False
        return unready, loop.time() - signalled_at

    sending = load.closed_loop(
        server.port, QUESTIONS, clients=clients, until=lambda: not is_sent_traffic
    )
    answered, (unready, last_sent) = await asyncio.gather(sending, stop())
    return answered, unready, last_sent


@pytest.mark.timeout(300)
def test_sigterm_under_load_fails_no_request(
    tmp_path: Path, bundle_store: Path, strength: Strength, figures: Figures
) -> None:
    failed = requests = 0
    exits, unready_after, gone_after = [], [], []
    with processes(tmp_path, bundle_store) as start:
        for _ in range(strength.select(short=1, full=10)):
            server = start(KAIROS_DRAIN_SECONDS="1.5", **NO_SHEDDING)
            began = time.monotonic() + 1
            answered, unready, _ = load.run(stop_behind_balancer(server, clients=8))
            exits.append(server.process.wait(20))
            gone_after.append(time.monotonic() - began)
            unready_after.append(unready)
            failed += len(answered.answers) - len(answered.select(200))
            requests += len(answered.answers)
    figures.record(
        "R4",
        "SIGTERM under load",
        rounds=len(exits),
        requests=requests,
        failed=failed,
        exit_codes=" ".join(map(str, sorted({*exits}))),
        unready_after_seconds=max(unready_after),
        gone_after_seconds=max(gone_after),
    )
    assert failed == 0
    assert {*exits} == {0}
    assert requests > 20
    if strength.is_full:
        assert max(unready_after) < 1.5
        assert max(gone_after) < 10


def test_requests_until_exit_are_answered_or_not_accepted(
    tmp_path: Path, bundle_store: Path, strength: Strength, figures: Figures
) -> None:
    """Without a balancer, every request that the process accepted is answered."""

    async def stop_under_load(server: Server) -> Load:
        ended = False

        def note_end(answer: load.Answer) -> None:
            nonlocal ended
            ended = ended or answer.status == NO_ANSWER

        async def stop() -> None:
            await asyncio.sleep(1)
            server.process.send_signal(signal.SIGTERM)

        sending = load.closed_loop(
            server.port, QUESTIONS, clients=8, on_answer=note_end, until=lambda: ended
        )
        answered, _ = await asyncio.gather(sending, stop())
        return answered

    with processes(tmp_path, bundle_store) as start:
        server = start(KAIROS_DRAIN_SECONDS="0.5", **NO_SHEDDING)
        answered = load.run(stop_under_load(server))
        assert server.process.wait(20) == 0
    lost = [a for a in answered.select(NO_ANSWER) if b"bytes of the answer" in a.head]
    figures.record(
        "R4",
        "requests until the process exits",
        requests=len(answered.answers),
        turned_away=len(answered.select(NO_ANSWER)) - len(lost),
        cut_off=len(lost),
    )
    assert {*answered.statuses} <= {200, NO_ANSWER}
    assert not lost


def test_a_second_signal_ends_the_process_at_once(tmp_path: Path, bundle_store: Path) -> None:
    with processes(tmp_path, bundle_store) as start:
        server = start(KAIROS_DRAIN_SECONDS="60")
        server.process.send_signal(signal.SIGTERM)
        while server.http.get("/health/ready").status_code == 200:
            time.sleep(0.02)
        health = server.http.get("/health/ready").json()
        assert health["status"] == "not_ready"
        assert health["process"] == "is shutting down; use another replica"
        assert server.http.get("/health/live").headers["connection"] == "close"
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(10) == 128 + signal.SIGINT


def test_ctrl_c_stops_without_a_drain(tmp_path: Path, bundle_store: Path) -> None:
    with processes(tmp_path, bundle_store) as start:
        server = start(KAIROS_DRAIN_SECONDS="60")
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(20) == 0
