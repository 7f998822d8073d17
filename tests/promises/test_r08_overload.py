"""R8: at three times its capacity, the service sheds the excess and answers the rest in time."""

import time
from itertools import pairwise
from pathlib import Path
from statistics import mean, median

import psutil
import pytest

from tests.processes import Server, processes
from tests.promises import load, mixture
from tests.promises.figures import Figures
from tests.promises.load import Load
from tests.promises.strength import Strength

CLIENTS = 16
TIMES = 3
SHED = (429, 503)
QUESTIONS = [mixture.build_inline(number, explain="attention", events=100) for number in range(20)]


def run_at_capacity(server: Server, seconds: float) -> Load:
    """Run a closed loop of sixteen clients."""
    return load.run(load.closed_loop(server.port, QUESTIONS, clients=CLIENTS, seconds=seconds))


def run_overload(server: Server, per_second: float, seconds: float) -> Load:
    """Run an open loop, which does not wait for answers."""
    return load.run(load.open_loop(server.port, QUESTIONS, per_second=per_second, seconds=seconds))


def compute_accepted_rate(overloaded: Load) -> float:
    """Compute accepted answers per second until the last of them; refusals come later."""
    began = min(answer.at - answer.seconds for answer in overloaded.answers)
    accepted = overloaded.select(200)
    return len(accepted) / (accepted[-1].at - began)


def read_cpu_seconds(server: Server) -> float:
    """Read the processor time of a process so far."""
    times = psutil.Process(server.process.pid).cpu_times()
    return times.user + times.system


@pytest.mark.timeout(400)
def test_three_times_the_capacity_is_shed_and_the_rest_answered(
    tmp_path: Path, bundle_store: Path, strength: Strength, figures: Figures
) -> None:
    seconds = strength.select(short=1.5, full=10.0)
    capacities, overloads = [], []
    service_cpu = sender_cpu = 0.0
    with processes(tmp_path, bundle_store) as start:
        server = start()
        run_at_capacity(server, strength.select(short=0.5, full=5.0))
        capacities.append(run_at_capacity(server, seconds))
        for _ in range(strength.select(short=1, full=5)):
            began = read_cpu_seconds(server), time.process_time()
            overloads.append(run_overload(server, TIMES * capacities[-1].rate(), seconds))
            service_cpu += read_cpu_seconds(server) - began[0]
            sender_cpu += time.process_time() - began[1]
            capacities.append(run_at_capacity(server, seconds))
        crashes = server.log.read_text().count("request_failed")
    p99_ratios, throughputs, again, before, during = [], [], [], Load(), Load()
    # A shared machine's speed changes from minute to minute: each is compared with its neighbours.
    for (previous, following), overloaded in zip(pairwise(capacities), overloads, strict=True):
        usual_p99 = mean((previous.quantile(0.99), following.quantile(0.99)))
        p99_ratios.append(overloaded.quantile(0.99) / usual_p99)
        usual_rate = mean((previous.rate(), following.rate()))
        throughputs.append(compute_accepted_rate(overloaded) / usual_rate)
        again.append(following.rate() / previous.rate())
        before.add(previous)
        during.add(overloaded)
    before.add(capacities[-1])
    figures.record(
        "R8",
        "three times overloaded",
        capacity_per_second=before.rate(),
        p99_at_capacity_seconds=before.quantile(0.99),
        p99_of_accepted_seconds=during.quantile(0.99),
        p99_ratio=median(p99_ratios),
        accepted_share_of_capacity=median(throughputs),
        shed_share=len(during.select(*SHED)) / len(during.answers),
        seconds_to_shed_p99=during.quantile(0.99, 503),
        service_cpu_share=service_cpu / during.wall,
        sender_cpu_share=sender_cpu / during.wall,
        sender_late_seconds=during.late,
        capacity_again_share=median(again),
    )
    assert {*before.statuses, *during.statuses} <= {200, *SHED}
    assert all(int(answer.header("Retry-After") or 0) >= 1 for answer in during.select(*SHED))
    assert during.select(200)
    assert all(each.select(200) for each in capacities)
    assert crashes == 0
    if strength.is_full:
        assert during.select(503)
        assert median(p99_ratios) <= 3
        assert median(throughputs) >= 0.8
        assert median(again) >= 0.9


def test_shed_requests_are_counted_and_logged(tmp_path: Path, bundle_store: Path) -> None:
    problems: list[dict[str, object]] = []

    def record_problem(answer: load.Answer) -> None:
        if answer.status == 503:
            problems.append(answer.json() | {"header": answer.header("X-Request-ID")})

    with processes(tmp_path, bundle_store) as start:
        server = start(KAIROS_INFERENCE_QUEUE="0")
        sending = load.closed_loop(
            server.port, QUESTIONS, clients=CLIENTS, most=300, on_answer=record_problem
        )
        shed = len(load.run(sending).select(503))
        page = server.http.get("/metrics").text
        log = server.log.read_text()
    assert shed == len(problems) > 0
    assert {problem["code"] for problem in problems} == {"overloaded"}
    assert all(problem["request_id"] == problem["header"] for problem in problems)
    assert f'kairos_shed_requests_total{{reason="inference"}} {shed:.1f}' in page
    counted = 'http_requests_total{method="POST",route="/v1/recommendations",status="503"}'
    assert f"{counted} {shed:.1f}" in page
    assert '"requests_shed"' in log
