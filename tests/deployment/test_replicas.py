"""Replicas that go away while they are asked."""

import signal
import threading
import time
from collections import Counter
from pathlib import Path

import httpx
import pytest

from tests.deployment.proxy import Site, needs_nginx, site
from tests.processes import eventually

pytestmark = needs_nginx

ASKED = {"history": [{"item_id": "i1", "timestamp": 1_767_225_600}], "n": 3}


class Callers:
    """Callers who ask without a pause, each on its own connection, until told to stop."""

    def __init__(self, behind: Site, count: int = 4) -> None:
        self.answers: Counter[str] = Counter()
        self._behind = behind
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._ask_on) for _ in range(count)]

    def __enter__(self) -> "Callers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _ask_on(self) -> None:
        headers = {"X-API-Key": self._behind.key}
        with httpx.Client(base_url=self._behind.proxy.url, headers=headers, timeout=30) as http:
            while not self._stopping.is_set():
                try:
                    answer = http.post("/v1/recommendations", json=ASKED)
                except httpx.TransportError as error:
                    self.answers[repr(error)] += 1
                else:
                    self.answers[answer.json().get("code", "answered")] += 1

    def go_on(self, answers: int) -> None:
        """Wait for so many more answers."""
        wanted = sum(self.answers.values()) + answers
        eventually(lambda: sum(self.answers.values()) >= wanted)


@pytest.mark.timeout(240)
def test_stopped_replicas_are_skipped(tmp_path: Path, published: Path) -> None:
    with site(tmp_path, published, replicas=3) as behind, Callers(behind) as callers:
        callers.go_on(50)
        for going in (signal.SIGKILL, signal.SIGTERM):
            leaving = behind.replicas.pop()
            leaving.server.process.send_signal(going)
            # Its name is found for a while yet, as it is for a container that has just died.
            callers.go_on(50)
            time.sleep(0.5)
            behind.names.addresses.remove(leaving.address)
            leaving.server.process.wait(20)
            callers.go_on(50)
    # On a busy machine a replica may say that it is; nobody is left without an answer of one.
    assert set(callers.answers) <= {"answered", "overloaded"}
    assert callers.answers["answered"] >= 100
