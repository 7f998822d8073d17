"""The `kairos dashboard` command, and the link of `kairos serve`."""

import os
import pty
import re
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from app.auth.local_token import LocalToken, write_token_file
from kairos_client import KairosClient
from tests.cli.world import kairos
from tests.processes import eventually, free_port

LINK = re.compile(r"http://127\.0\.0\.1:\d+/dashboard/#token=kairos_local_[\w-]{43}")


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KAIROS_RUNTIME_DIRECTORY", str(tmp_path / "runtime"))
    return tmp_path / "runtime"


def test_a_link_for_every_running_service_is_printed(runtime: Path) -> None:
    files = [
        write_token_file(runtime, LocalToken(), host="127.0.0.1", port=port)
        for port in (8000, 8001)
    ]
    printed = kairos("dashboard").stdout.splitlines()
    assert printed == [file.service.dashboard_link for file in files]
    for file in files:
        file.remove()
    output = kairos("dashboard", exit_code=1).output
    assert f"a file in {runtime}, but none does; run kairos serve" in output


def test_a_link_of_a_service_with_keys_holds_no_token(runtime: Path) -> None:
    """Its token no longer admits, and the page prompts for a key."""

    class RefusesAll(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(401)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), RefusesAll) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        file = write_token_file(runtime, LocalToken(), host="127.0.0.1", port=server.server_port)
        printed = kairos("dashboard")
        server.shutdown()
    file.remove()
    assert printed.stdout == f"http://127.0.0.1:{server.server_port}/dashboard/\n"
    assert "has keys: its page prompts for one" in printed.stderr


def test_an_address_that_is_in_use_is_refused_in_one_line(runtime: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        output = kairos("serve", "--port", str(taken.getsockname()[1]), exit_code=1).output
    message = " ".join(output.split())
    assert message.startswith(
        "error the service listens on an address of this machine that is free"
    )
    assert "Address already in use; stop the process that listens there, or set" in message


def test_a_number_of_workers_is_at_least_one() -> None:
    output = kairos("serve", "--workers", "0", exit_code=2).output
    assert "--workers" in output
    assert "greater than or equal to 1" in output


@pytest.mark.slow
@pytest.mark.parametrize("has_terminal", [True, False])
@pytest.mark.parametrize("workers", [1, 2])
def test_serve_prints_its_link_on_a_terminal_only(
    runtime: Path, tmp_path: Path, has_terminal: bool, workers: int
) -> None:
    port = free_port()
    own, end = pty.openpty()
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                Path(sys.executable).parent / "kairos",
                *("serve", "--port", str(port), "--workers", str(workers)),
            ],
            env={**os.environ, "KAIROS_DATABASE_URL": f"sqlite:///{tmp_path / 'kairos.db'}"},
            cwd=tmp_path,
            stdout=log,
            stderr=end if has_terminal else log,
        )
    os.close(end)
    try:
        eventually((runtime / f"127.0.0.1_{port}").exists)
        token = (runtime / f"127.0.0.1_{port}").read_text()
        with KairosClient(f"http://127.0.0.1:{port}") as client:
            assert client.read_caller().role == "admin"
        if has_terminal:
            shown = b""
            while b"#token=" not in shown or not shown.endswith(b"\n"):
                shown += os.read(own, 4096)
            links = LINK.findall(shown.decode())
            assert len(links) == 1
            assert token in links[0]
        process.terminate()
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
        os.close(own)
    assert token not in (tmp_path / "log").read_text()
    assert [*runtime.iterdir()] == []
