"""Closed-loop load generator of the serving benchmark."""

import http.client
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import orjson

from kairos_client.credentials import read_local_token


@dataclass
class Load:
    """Latencies and responses of a load.

    Attributes:
        seconds: latency of every request, in the order of responses.
        statuses: number of responses by HTTP status.
        versions: number of responses by model version.
        wall: seconds from the first request to the last response.
    """

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    versions: Counter[str] = field(default_factory=Counter)
    wall: float = 0.0

    def quantile(self, share: float) -> float:
        """Compute a quantile of the latencies, in milliseconds."""
        ordered = sorted(self.seconds)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)] * 1e3


def send(port: int, bodies: list[bytes], *, requests: int, connections: int) -> Load:
    """Send requests over some connections; each waits for its response before the next request."""
    load, lock = Load(), threading.Lock()
    numbers = iter(range(requests))
    began = time.perf_counter()
    workers = [
        threading.Thread(target=_run_connection, args=(port, bodies, numbers, load, lock))
        for _ in range(connections)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    load.wall = time.perf_counter() - began
    return load


def _run_connection(
    port: int, bodies: list[bytes], numbers: Iterator[int], load: Load, lock: threading.Lock
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    token = read_local_token(f"http://127.0.0.1:{port}")
    headers = {"content-type": "application/json", "authorization": f"Bearer {token}"}
    while True:
        with lock:
            number = next(numbers, None)
        if number is None:
            connection.close()
            return
        sent = time.perf_counter()
        connection.request("POST", "/v1/recommendations", bodies[number % len(bodies)], headers)
        response = connection.getresponse()
        content = response.read()
        took = time.perf_counter() - sent
        version = orjson.loads(content).get("model_version", "none")
        with lock:
            load.seconds.append(took)
            load.statuses[response.status] += 1
            load.versions[version] += 1
