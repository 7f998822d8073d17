"""How each kind of case is measured."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.speed.serving.cases import (
    Case,
    EchoCase,
    PairCase,
    PeersCase,
    RateCase,
    Setup,
    SwapCase,
)
from benchmarks.speed.serving.databases import run_database, store_histories
from benchmarks.speed.serving.generator import Load, MeasurementError, Outcome, generate
from benchmarks.speed.serving.request_source import (
    RecordedRequests,
    RequestKind,
    Requests,
    RequestSource,
)
from benchmarks.speed.serving.services import Service, run_echo, run_kairos, run_peer
from benchmarks.speed.serving.sustained_rate import (
    OpenLoopTrial,
    compute_median_ms,
    compute_quantile_ms,
    draw_starts,
    find_highest_rate,
    summarize,
)
from benchmarks.speed.synthetic_bundle import build_bundle, count_events
from model.bundle.writing import write_bundle
from model.clock import MICROSECONDS_PER_SECOND
from model.store.store import BundleStore
from model.wide import WideConfig

Figures = dict[str, Any]
PEERS = Path(__file__).parents[1] / "peers"
CLOSED_CONNECTIONS = 4
_OPEN_CONNECTIONS = 64
_WARM_UP = 300
_CLOSED_SECONDS = 2.0
_CLOSED_REQUESTS = 4_000
_QUIET_CORES, _PAUSE_SECONDS, _SAMPLE_SECONDS = 0.3, 5.0, 0.3
_SWAP_SECONDS = 1.0
"""After the first response of the new version, for which requests count as around the swap."""


@dataclass
class Bench:
    """The options of a run, and the bundles that its cases share.

    Attributes:
        directory: of temporary files.
        seconds: duration of a trial.
        arrivals: `poisson` or `constant`.
        patience: seconds that the run may still wait for other work on the machine to end.
        peers: interpreters of the peers' environments, by name.
        until: the end of all histories and data windows, in epoch seconds.
    """

    directory: Path
    seconds: float = 3.0
    arrivals: str = "poisson"
    patience: float = 60.0
    peers: dict[str, Path] = field(default_factory=dict)
    until: int = field(default_factory=lambda: int(time.time()))
    _stores: dict[tuple[int, bool], BundleStore] = field(default_factory=dict)

    def measure(self, case: Case) -> Figures:
        """Measure a case."""
        match case:
            case RateCase():
                return self._measure_rate(case)
            case EchoCase():
                return self._measure_echo(case)
            case PairCase():
                return self._measure_pair(case)
            case SwapCase():
                return self._measure_swap(case)
            case PeersCase():
                return self._measure_peers(case)

    def measure_own(self, store: Path, events: Path) -> Figures:
        """Measure the sustained rate of the current version of a store, with its users' events."""
        copy = self.directory / "own-bundles"
        shutil.copytree(store, copy)
        with self._run_store(copy, Setup(), []) as service:
            return self._search_rate(
                service, RecordedRequests(events, port=service.port, key=service.key)
            )

    def _measure_rate(self, case: RateCase) -> Figures:
        with self._run_kairos(case.setup, [case.kind]) as service:
            source = self._build_source(case.kind, service, case.setup.items)
            return self._search_rate(service, source)

    def _measure_echo(self, case: EchoCase) -> Figures:
        with run_echo() as service:
            return self._search_rate(service, self._build_source(case.kind, service, items=5_000))

    def _measure_pair(self, case: PairCase) -> Figures:
        with self._run_kairos(case.setup, [case.first, case.second]) as service:
            sources = [
                self._build_source(kind, service, case.setup.items, seed=seed)
                for seed, kind in enumerate((case.first, case.second))
            ]
            for source in sources:
                _warm_up(service, source, min(_WARM_UP, case.turns))
            turns = zip(*(source.draw(case.turns) for source in sources), strict=True)
            requests = [request for turn in turns for request in turn]
            load = Load(service.port, requests, None, 120.0, connections=1, repeat=False)
            self._wait_until_quiet()
            observed = _observe(service, load)
        outcome = observed.outcome
        latencies = [each for each in outcome.latencies if each is not None]
        if outcome.failed:
            return {"failed": outcome.failed}
        first, second = latencies[::2], latencies[1::2]
        differences = np.subtract(first, second).tolist()
        medians = compute_median_ms(first), compute_median_ms(second)
        return {
            "first_p50_ms": medians[0],
            "second_p50_ms": medians[1],
            "difference_p50_ms": compute_median_ms(differences),
            "ratio": round(medians[0] / medians[1], 3),
            "turns": len(first),
            "other_cores": observed.other_cores,
        }

    def _measure_swap(self, case: SwapCase) -> Figures:
        store = self._get_store(case.setup)
        second = store.publish(
            partial(write_bundle, self._build_bundle(case.setup, seed=1)), activate=False
        )
        activated_at: list[float] = []

        def activate() -> None:
            time.sleep(case.seconds / 2)
            store.activate(second)
            activated_at.append(time.perf_counter())

        with self._run_kairos(case.setup, [case.kind]) as service:
            source = self._build_source(case.kind, service, case.setup.items)
            _warm_up(service, source, _WARM_UP)
            rate = case.share * _measure_closed_rate(service, source)
            starts = draw_starts(rate, case.seconds, self.arrivals, seed=0)
            requests = source.draw(len(starts))
            load = Load(
                service.port,
                requests,
                starts,
                case.seconds,
                _OPEN_CONNECTIONS,
                watched=second.encode(),
            )
            self._wait_until_quiet()
            observed = _observe(service, load, activate)
        since_began = activated_at[0] - observed.outcome.began
        return {
            "rate": round(rate, 1),
            **_summarize_swap(observed.outcome, since_began),
            "other_cores": observed.other_cores,
        }

    def _measure_peers(self, case: PeersCase) -> Figures:
        rates: dict[str, list[float]] = {}
        medians: dict[str, list[float]] = {}
        other_cores: list[float] = []
        with ExitStack() as running:
            services = {
                "Kairos": running.enter_context(self._run_kairos(case.setup, [case.kind]))
            } | {
                name: running.enter_context(
                    run_peer(
                        interpreter,
                        PEERS / f"{name.lower()}_serving.py",
                        items=case.setup.items,
                    )
                )
                for name, interpreter in self.peers.items()
            }
            sources = {
                name: self._build_source(case.kind, service, case.setup.items)
                for name, service in services.items()
            }
            for name, service in services.items():
                _warm_up(service, sources[name], 20)
            for _ in range(case.turns):
                self._wait_until_quiet()
                for name, service in services.items():
                    observed = _run_closed(service, sources[name], self.seconds)
                    outcome = observed.outcome
                    other_cores.append(observed.other_cores)
                    if outcome.failed:
                        raise MeasurementError(f"{name} failed: statuses {dict(outcome.statuses)}")
                    rates.setdefault(name, []).append(outcome.statuses[200] / outcome.ended)
                    latencies = [each for each in outcome.latencies if each is not None]
                    medians.setdefault(name, []).append(compute_median_ms(latencies))
        best = {name: float(np.median(each)) for name, each in rates.items()}
        return {
            "connections": CLOSED_CONNECTIONS,
            "requests_per_second": {name: round(rate, 1) for name, rate in best.items()},
            "p50_ms": {name: round(float(np.median(each)), 2) for name, each in medians.items()},
            "kairos_over_peer": {
                name: round(best["Kairos"] / rate, 2) for name, rate in best.items()
            },
            "turns": {name: [round(rate, 1) for rate in each] for name, each in rates.items()},
            "other_cores": round(float(np.median(other_cores)), 2),
        }

    def _search_rate(self, service: Service, source: Requests) -> Figures:
        _warm_up(service, source, _WARM_UP)
        self._wait_until_quiet()
        closed = _measure_closed_rate(service, source)
        trials: list[OpenLoopTrial] = []

        def run_trial(rate: float) -> OpenLoopTrial:
            while True:
                self._wait_until_quiet()
                trial = self._run_trial(service, source, rate, seed=len(trials))
                print(f"  {_format_trial(trial)}", flush=True)
                if trial.other_cores <= _QUIET_CORES or self.patience <= 0:
                    break
                self.patience -= self.seconds
            trials.append(trial)
            return trial

        def search(accepts: Callable[[OpenLoopTrial], bool]) -> OpenLoopTrial | None:
            kept_up = (trial.offered for trial in trials if trial.keeps_up)
            start = max(kept_up, default=closed / 2)
            return find_highest_rate(run_trial, accepts, start=start, least=closed / 5)

        best = search(lambda trial: trial.meets_bound)
        meets_bound = best is not None
        best = best or search(lambda trial: trial.keeps_up)
        kept_up = [trial.offered for trial in trials if trial.keeps_up]
        return {
            "sustained_per_second": best.offered if best else None,
            "meets_p90_bound": meets_bound,
            "kept_up_per_second": max(kept_up, default=None),
            "closed_loop_per_second": round(closed, 1),
            "other_cores": round(float(np.median([each.other_cores for each in trials])), 2),
            "at_sustained_rate": asdict(best) if best else None,
            "trials": [asdict(trial) for trial in trials],
        }

    def _wait_until_quiet(self) -> None:
        """Wait until the rest of the machine does little, while the patience of the run lasts."""
        began = time.monotonic()
        while self.patience > 0 and _measure_busy_cores() > _QUIET_CORES:
            time.sleep(_PAUSE_SECONDS)
            self.patience -= _PAUSE_SECONDS
        if (waited := time.monotonic() - began) > _PAUSE_SECONDS:
            print(f"  waited {waited:.0f} s for other work to end", flush=True)

    def _run_trial(
        self, service: Service, source: Requests, rate: float, *, seed: int
    ) -> OpenLoopTrial:
        starts = draw_starts(rate, self.seconds, self.arrivals, seed)
        load = Load(service.port, source.draw(len(starts)), starts, self.seconds, _OPEN_CONNECTIONS)
        observed = _observe(service, load)
        return summarize(
            observed.outcome,
            self.seconds,
            service_seconds=observed.service_seconds,
            other_seconds=observed.other_seconds,
        )

    def _run_kairos(
        self, setup: Setup, kinds: Sequence[RequestKind]
    ) -> AbstractContextManager[Service]:
        return self._run_store(self._get_store(setup).root, setup, kinds)

    @contextmanager
    def _run_store(
        self, store: Path, setup: Setup, kinds: Sequence[RequestKind]
    ) -> Iterator[Service]:
        """Run the service on a store, and on a database with the histories of the kinds."""
        with (
            tempfile.TemporaryDirectory(dir=self.directory) as directory,
            run_database(setup.database, Path(directory)) as url,
        ):
            for kind in kinds:
                if kind.stored:
                    store_histories(url, items=setup.items, events=kind.events, until=self.until)
            with run_kairos(Path(directory), store, url, workers=setup.workers) as service:
                yield service

    def _get_store(self, setup: Setup) -> BundleStore:
        found = self._stores.get((setup.items, setup.wide))
        if found is None:
            found = BundleStore(self.directory / f"bundles-{len(self._stores)}")
            found.publish(partial(write_bundle, self._build_bundle(setup)))
            self._stores[setup.items, setup.wide] = found
        return found

    def _build_bundle(self, setup: Setup, seed: int = 0) -> Any:
        last_at = self.until * MICROSECONDS_PER_SECOND
        wide, counts = None, None
        if setup.wide:
            wide = WideConfig()
            counts = count_events(setup.items, np.random.default_rng(0), last_at=last_at)
        return build_bundle(setup.items, last_at=last_at, wide=wide, counts=counts, seed=seed)

    def _build_source(
        self, kind: RequestKind, service: Service, items: int, seed: int = 0
    ) -> RequestSource:
        return RequestSource(
            kind, port=service.port, key=service.key, items=items, until=self.until, seed=seed
        )


@dataclass(frozen=True)
class Observed:
    """A load, with the processor time meanwhile.

    Attributes:
        service_seconds: of the service.
        other_seconds: of everything on the machine but the service, the generator and this process.
        wall: seconds that passed.
    """

    outcome: Outcome
    service_seconds: float
    other_seconds: float
    wall: float

    @property
    def other_cores(self) -> float:
        """Cores that everything else kept busy."""
        return round(max(self.other_seconds / self.wall, 0.0), 2)


def _observe(service: Service, load: Load, meanwhile: Callable[[], None] | None = None) -> Observed:
    """Send a load from a new process, and observe the processor time; `meanwhile` runs here."""
    began, own_before = time.monotonic(), time.process_time()
    service_before, busy_before = service.read_processor_seconds(), _read_busy_seconds()
    outcome = generate(load, meanwhile)
    service_seconds = service.read_processor_seconds() - service_before
    own_seconds = time.process_time() - own_before + outcome.processor_seconds
    other_seconds = _read_busy_seconds() - busy_before - service_seconds - own_seconds
    return Observed(outcome, service_seconds, other_seconds, time.monotonic() - began)


def _warm_up(service: Service, source: Requests, count: int) -> None:
    load = Load(service.port, source.draw(count), None, 60.0, connections=2, repeat=False)
    outcome = generate(load)
    if outcome.failed:
        raise MeasurementError(f"warm-up failed: statuses {dict(outcome.statuses)}")


def _measure_closed_rate(service: Service, source: Requests) -> float:
    outcome = _run_closed(service, source, _CLOSED_SECONDS).outcome
    return outcome.statuses[200] / outcome.ended


def _run_closed(service: Service, source: Requests, seconds: float) -> Observed:
    requests = source.draw(_CLOSED_REQUESTS)
    return _observe(service, Load(service.port, requests, None, seconds, CLOSED_CONNECTIONS))


def _summarize_swap(outcome: Outcome, activated_at: float) -> Figures:
    """Compare the requests from the activation until a second after the swap with all others."""
    swapped_at = outcome.watched_at
    if swapped_at is None:
        raise MeasurementError("the service did not swap to the second version")
    around: list[float] = []
    steady: list[float] = []
    for start, latency in zip(outcome.starts, outcome.latencies, strict=True):
        if latency is not None:
            is_around = activated_at <= start < swapped_at + _SWAP_SECONDS
            (around if is_around else steady).append(latency)
    p99_ms = compute_quantile_ms(around, 0.99), compute_quantile_ms(steady, 0.99)
    return {
        "seconds_until_swap": round(swapped_at - activated_at, 2),
        "around_p99_ms": p99_ms[0],
        "steady_p99_ms": p99_ms[1],
        "ratio": round(p99_ms[0] / p99_ms[1], 2),
        "around_max_ms": compute_quantile_ms(around, 1.0),
        "around_requests": len(around),
        "steady_requests": len(steady),
        "failed": outcome.failed,
    }


def _read_busy_seconds() -> float:
    """Read the processor time that all processes of the machine have taken, or that was stolen."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - times.iowait - times.guest - times.guest_nice)


def _measure_busy_cores() -> float:
    """Measure how many cores are busy, while this run only waits."""
    before = _read_busy_seconds()
    time.sleep(_SAMPLE_SECONDS)
    return (_read_busy_seconds() - before) / _SAMPLE_SECONDS


def _format_trial(trial: OpenLoopTrial) -> str:
    verdict = "met" if trial.meets_bound else "kept up" if trial.keeps_up else "fell behind"
    return (
        f"{trial.offered:8.1f}/s offered {trial.achieved:8.1f}/s achieved, p50 {trial.p50_ms:.2f}, "
        f"p90 {trial.p90_ms:.2f}, p99 {trial.p99_ms:.2f} ms, {trial.failed} failed; "
        f"service {trial.service_ms:.2f} ms/request, generator {trial.generator_cores:.2f} and "
        f"others {trial.other_cores:.2f} of {os.cpu_count()} cores: {verdict}"
    )
