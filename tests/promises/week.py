"""A week of a shop in an hour: everything that happens to a service, at random, at the same time.

Two replicas share a database and a store. Writers send every event of the week in order, each batch
until it is acknowledged; readers ask for recommendations; and meanwhile versions are swapped, users
erased, replicas stopped or killed and started again, backups taken, and models retrained.
"""

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.app.tiny_bundle import ITEM_IDS
from tests.processes import ROOT, Server, Start, eventually
from tests.promises.load import Answer, Connection, Request, build_request

BATCH = 1_000
BATCHES_EACH = 4
"""Batches in a row that are about the same users, who send no events after them."""
USERS_EACH = 50
_WEEK_SECONDS = 7 * 86_400
_BUSY = {0, 429, 503}
"""Answers of a replica that is stopped, starting or full: sent again, to either replica."""


@dataclass(frozen=True)
class Plan:
    """How much happens, and how often.

    Attributes:
        events: number of events of the week.
        began_at: the first instant of the week, epoch seconds.
        pauses: mean seconds between two occurrences, by what happens.
        events_per_second: most events a second that the writers send together.
    """

    events: int
    began_at: float
    pauses: dict[str, float]
    writers: int = 4
    readers: int = 4
    events_per_second: float = float("inf")
    seed: int = 0

    @property
    def batches(self) -> int:
        """Number of batches; the last is as full as the others."""
        return self.events // BATCH


@dataclass(frozen=True)
class Reading:
    """What a process holds: resident bytes, open files, threads, after seconds of the run."""

    second: float
    resident: int
    files: int
    threads: int


@dataclass
class Replica:
    """One of the two replicas, with what it held over its present life."""

    server: Server
    environment: dict[str, str]
    readings: list[Reading] = field(default_factory=list)


@dataclass
class Week:
    """The run: what was sent, acknowledged and erased, and every unexpected answer."""

    plan: Plan
    start: Start
    environment: dict[str, str]
    store: Path
    versions: list[str]
    recipe: Path
    directory: Path
    replicas: list[Replica] = field(default_factory=list)
    acknowledged: bytearray = field(init=False)
    erased: set[str] = field(default_factory=set)
    happened: Counter[str] = field(default_factory=Counter)
    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    unexpected: list[Answer] = field(default_factory=list)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    lives: list[list[Reading]] = field(default_factory=list)
    _next: int = 0
    _random: random.Random = field(init=False)
    _is_over: bool = False

    def __post_init__(self) -> None:
        self.acknowledged = bytearray(self.plan.batches)
        self._random = random.Random(self.plan.seed)

    async def run(self) -> None:
        """Start two replicas, and run until every event is acknowledged."""
        for _ in range(2):
            await asyncio.to_thread(self._start_replica)
        occurrences: dict[str, Callable[[], Awaitable[None]]] = {
            "swap": self._swap,
            "erasure": self._erase,
            "restart": self._restart,
            "backup": self._back_up,
            "retraining": self._retrain,
        }
        # A group, so that what fails ends the run at once.
        async with asyncio.TaskGroup() as beside:
            for _ in range(self.plan.readers):
                beside.create_task(self._read())
            beside.create_task(self._watch())
            for name in self.plan.pauses:
                beside.create_task(self._repeat(name, occurrences[name]))
            await asyncio.gather(*(self._write() for _ in range(self.plan.writers)))
            self._is_over = True
        self.lives += [replica.readings for replica in self.replicas]

    def count_lasting_events(self) -> int:
        """Count the events that must be stored at the end: acknowledged, and of no erased user."""
        erased = sum(BATCHES_EACH * BATCH // USERS_EACH for _ in self.erased)
        return sum(self.acknowledged) * BATCH - erased

    async def _write(self) -> None:
        connections: dict[int, Connection] = {}
        loop = asyncio.get_running_loop()
        began = loop.time()
        while self._next < self.plan.batches:
            number, self._next = self._next, self._next + 1
            request = build_batch(number, self.plan)
            while (await self._send(connections, request)).status != 200:
                await asyncio.sleep(0.05)
            self.acknowledged[number] = 1
            ahead = self._next * BATCH / self.plan.events_per_second - (loop.time() - began)
            await asyncio.sleep(max(ahead, 0.0))
        close(connections)

    async def _read(self) -> None:
        connections: dict[int, Connection] = {}
        while not self._is_over:
            number = self._random.randrange(max(self._next, 1))
            user = name_user(number, self._random.randrange(USERS_EACH))
            body = {"user_id": user, "n": 10, "explain": self._random.choice(["none", "attention"])}
            answer = await self._send(
                connections, build_request("POST", "/v1/recommendations", body, name="recommend")
            )
            await asyncio.sleep(0.05 if answer.status == 200 else 0.2)
        close(connections)

    async def _swap(self) -> None:
        path = "/v1/models/rollback"
        if self._random.random() < 0.8:
            path = f"/v1/models/{self._random.choice(self.versions)}/activate"
        connections: dict[int, Connection] = {}
        # A rollback with nothing before it, or to a removed version, is refused.
        await self._send(connections, build_request("POST", path, {}, name="swap"), {200, 409})
        close(connections)

    async def _erase(self) -> None:
        """Erase a user whose events are all acknowledged."""
        groups = max(self._next - self.plan.writers, 0) // BATCHES_EACH
        if not groups:
            return
        group = self._random.randrange(groups)
        batches = self.acknowledged[group * BATCHES_EACH : (group + 1) * BATCHES_EACH]
        if not all(batches):
            return
        user = name_user(group * BATCHES_EACH, self._random.randrange(USERS_EACH))
        connections: dict[int, Connection] = {}
        request = build_request("DELETE", f"/v1/users/{user}", name="erase")
        while (await self._send(connections, request)).status != 200:
            await asyncio.sleep(0.2)
        self.erased.add(user)
        close(connections)

    async def _restart(self) -> None:
        """Stop or kill the second replica, and start another; now and then the first."""
        index = 0 if self._random.random() < 0.1 else 1
        replica = self.replicas[index]
        end = self._random.choice([signal.SIGTERM, signal.SIGKILL])
        replica.server.process.send_signal(end)
        code = await asyncio.to_thread(replica.server.process.wait, 60)
        assert code == (0 if end == signal.SIGTERM else -signal.SIGKILL)
        self.happened[end.name] += 1
        self.lives.append(replica.readings)
        await asyncio.to_thread(self._start_replica, index)

    async def _back_up(self) -> None:
        target = self.directory / "backup"
        done = await asyncio.to_thread(self._run_command, "backup", str(target))
        assert done.returncode == 0, done.stderr
        await asyncio.to_thread(shutil.rmtree, target)

    async def _retrain(self) -> None:
        arguments = ["retrain", "--recipe", str(self.recipe), "--keep", "50"]
        runs = ["--runs", str(self.directory / "runs")]
        # Every third run is killed on the way.
        limit = self._random.uniform(5, 30) if self._random.random() < 1 / 3 else None
        done = await asyncio.to_thread(self._run_command, *arguments, *runs, limit=limit)
        assert done.returncode in {0, 3, -signal.SIGKILL}, done.stderr
        self.happened["retraining " + ("killed" if done.returncode < 0 else "completed")] += 1

    async def _repeat(self, name: str, occur: Callable[[], Awaitable[None]]) -> None:
        loop = asyncio.get_running_loop()
        while not self._is_over:
            # At most twice the mean: everything happens in a run.
            until = loop.time() + self._random.uniform(0, 2 * self.plan.pauses[name])
            while loop.time() < until and not self._is_over:
                await asyncio.sleep(0.1)
            if not self._is_over:
                await occur()
                self.happened[name] += 1

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        while not self._is_over:
            for replica in self.replicas:
                try:
                    process = psutil.Process(replica.server.process.pid)
                    with process.oneshot():
                        reading = Reading(
                            loop.time() - began,
                            process.memory_info().rss,
                            process.num_fds(),
                            process.num_threads(),
                        )
                except psutil.Error:
                    continue  # it was stopped
                replica.readings.append(reading)
            await asyncio.sleep(1)

    async def _send(
        self,
        connections: dict[int, Connection],
        request: Request,
        expected: frozenset[int] | set[int] = frozenset({200}),
    ) -> Answer:
        """Send to one of the replicas; an answer that the other may give differently is no end."""
        replica = self._random.choice(self.replicas)
        port = replica.server.port
        connection = connections.setdefault(port, Connection(port))
        answer = await connection.send(request)
        self.answers[answer.name, answer.status] += 1
        self.seconds.setdefault(answer.name, []).append(answer.seconds)
        if answer.status not in expected | _BUSY:
            self.unexpected.append(answer)
        return answer

    def _start_replica(self, index: int | None = None) -> None:
        server = self.start(wait=False, **self.environment)
        try:
            eventually(server.is_ready)
        except AssertionError as error:
            error.add_note(server.http.get("/health/ready").text)
            raise
        replica = Replica(server, self.environment)
        if index is None:
            self.replicas.append(replica)
        else:
            self.replicas[index] = replica

    def _run_command(
        self, *arguments: str, limit: float | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command of Kairos; kill it after `limit` seconds."""
        kairos = str(Path(sys.executable).with_name("kairos"))
        command = [kairos, *arguments, "--store", str(self.store)]
        with subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **self.environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                _, error = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                process.kill()
                _, error = process.communicate()
        return subprocess.CompletedProcess(command, process.returncode, "", error)


def name_user(batch: int, index: int) -> str:
    """Name one of the users that a batch is about."""
    return f"u{batch // BATCHES_EACH}-{index}"


def build_batch(number: int, plan: Plan) -> Request:
    """Build the `number`th batch of the week."""
    at = plan.began_at + _WEEK_SECONDS * number / plan.batches
    events = [
        {
            "event_id": f"e{number}-{index}",
            "user_id": name_user(number, index % USERS_EACH),
            "item_id": ITEM_IDS[(number * 7 + index * 3 + index // USERS_EACH) % len(ITEM_IDS)],
            "action": "view",
            "timestamp": at + index * 0.01,
        }
        for index in range(BATCH)
    ]
    return build_request("POST", "/v1/events", {"events": events}, name="ingest")


def close(connections: dict[int, Connection]) -> None:
    """Close every connection."""
    for connection in connections.values():
        connection.close()
