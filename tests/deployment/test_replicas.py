"""Replicas that stop while clients send requests."""

import signal
import threading
import time
from collections import Counter
from pathlib import Path

import httpx
import pytest

from tests.deployment.proxy import Site, needs_nginx, start_site
from tests.processes import eventually

pytestmark = needs_nginx

REQUEST = {"history": [{"item_id": "i1", "timestamp": 1_767_225_600}], "n": 3}


class Clients:
    """Clients that send requests without a pause, each on its own connection."""

    def __init__(self, site: Site, count: int = 4) -> None:
        self.outcomes: Counter[str] = Counter()
        self._site = site
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._send_requests) for _ in range(count)]

    def __enter__(self) -> "Clients":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _send_requests(self) -> None:
        headers = {"X-API-Key": self._site.key}
        with httpx.Client(base_url=self._site.proxy.url, headers=headers, timeout=30) as http:
            while not self._stopping.is_set():
                try:
                    response = http.post("/v1/recommendations", json=REQUEST)
                except httpx.TransportError as error:
                    self.outcomes[repr(error)] += 1
                else:
                    self.outcomes[response.json().get("code", "answered")] += 1

    def wait_for(self, responses: int) -> None:
        """Wait until that many more responses have arrived."""
        total = sum(self.outcomes.values()) + responses
        eventually(lambda: sum(self.outcomes.values()) >= total)


@pytest.mark.timeout(240)
def test_stopped_replicas_are_skipped(tmp_path: Path, published: Path) -> None:
    with start_site(tmp_path, published, replicas=3) as site, Clients(site) as clients:
        clients.wait_for(50)
        for number in (signal.SIGKILL, signal.SIGTERM):
            replica = site.replicas.pop()
            replica.server.process.send_signal(number)
            # The name server keeps its address for a while, as for a container that has just died.
            clients.wait_for(50)
            time.sleep(0.5)
            site.name_server.addresses.remove(replica.address)
            replica.server.process.wait(20)
            clients.wait_for(50)
    # A replica on a busy machine may shed load; no request goes without a replica's response.
    assert set(clients.outcomes) <= {"answered", "overloaded"}
    assert clients.outcomes["answered"] >= 100
