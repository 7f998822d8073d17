import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.speed.serving.generator import NO_RESPONSE, Load, generate, send

REQUEST = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}"
SLOW_SECONDS = 0.1


@contextmanager
def serving(respond: bytes, *, seconds: float = 0.0) -> Iterator[int]:
    """A server that takes some seconds for each request, one at a time; yields its port."""
    one_at_a_time = threading.Lock()
    listener = socket.create_server(("127.0.0.1", 0))

    def answer(connection: socket.socket) -> None:
        with connection:
            while connection.recv(65_536):
                with one_at_a_time:
                    time.sleep(seconds)
                if not respond:
                    return
                # In two parts, as a service sends the headers and the body.
                connection.sendall(respond[:40])
                connection.sendall(respond[40:])

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def response(status: int = 200, body: bytes = b'{"items": []}') -> bytes:
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


def test_latency_counts_from_the_intended_start() -> None:
    with serving(response(), seconds=SLOW_SECONDS) as port:
        # All are due at once, but the server needs a tenth of a second for each.
        outcome = send(Load(port, [REQUEST] * 5, [0.0] * 5, 1.0, connections=5))
    latencies = sorted(latency for latency in outcome.latencies if latency is not None)
    assert len(latencies) == 5
    assert all(latency >= SLOW_SECONDS * place for place, latency in enumerate(latencies, start=1))


def test_latency_includes_the_wait_for_a_connection() -> None:
    with serving(response(), seconds=SLOW_SECONDS) as port:
        outcome = send(Load(port, [REQUEST] * 4, [0.0] * 4, 1.0, connections=1))
    assert outcome.starts == [0.0] * 4
    assert outcome.sent[-1] >= 3 * SLOW_SECONDS
    assert outcome.latencies[-1] is not None
    assert outcome.latencies[-1] >= 4 * SLOW_SECONDS


def test_a_request_is_not_sent_before_its_start() -> None:
    with serving(response()) as port:
        outcome = send(Load(port, [REQUEST] * 3, [0.0, 0.1, 0.2], 0.3, connections=2))
    assert all(sent >= start for sent, start in zip(outcome.sent, outcome.starts, strict=True))
    assert outcome.ended >= 0.2


def test_a_refused_request_has_failed() -> None:
    with serving(response(503)) as port:
        outcome = send(Load(port, [REQUEST] * 2, [0.0, 0.0], 0.1, connections=2))
    assert outcome.statuses == {503: 2, NO_RESPONSE: 0}
    assert outcome.failed == 2


def test_a_broken_connection_is_a_failure() -> None:
    with serving(b"") as port:
        outcome = send(Load(port, [REQUEST] * 2, [0.0, 0.1], 0.1, connections=1))
    assert outcome.statuses[NO_RESPONSE] == 2
    assert outcome.latencies == [None, None]


def test_a_closed_loop_waits_for_each_response() -> None:
    with serving(response(), seconds=SLOW_SECONDS) as port:
        outcome = send(Load(port, [REQUEST], None, 0.35, connections=1))
    assert 1 <= outcome.statuses[200] <= 4
    assert outcome.failed == 0


def test_the_first_watched_response_is_timed() -> None:
    with serving(response(body=b'{"model_version": "second"}')) as port:
        load = Load(port, [REQUEST], [0.0], 0.1, connections=1, watched=b"second")
        assert send(load).watched_at is not None


def test_the_generator_runs_in_a_process_of_its_own() -> None:
    meanwhile: list[str] = []
    with serving(response()) as port:
        load = Load(port, [REQUEST] * 3, [0.0, 0.0, 0.1], 0.2, connections=2)
        outcome = generate(load, meanwhile=lambda: meanwhile.append("ran"))
    assert outcome.statuses[200] == 3
    assert meanwhile == ["ran"]
