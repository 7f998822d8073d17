"""What fails at start, at stop and outside requests is logged without users' data."""

import subprocess
import sys
from pathlib import Path

import pytest

SECRET = "must-not-be-logged"

_FAIL = f"""
import asyncio, threading
def fail(*_, **__):
    raise ValueError("{SECRET}")
async def fail_later(*_, **__):
    fail()
"""
_SERVE = """
from app import main, server, settings
from app.thread_pool import BoundedPool
"""
_RUN = """
server.run(settings.Settings(port=0, log_format="json", bundle_store="bundles",
                             database_url="sqlite:///kairos.db", drain_seconds=0))
"""
_LOGGED = """
from app.observability.logs import configure_logs, log_loop_exception, log_uncaught_exceptions
configure_logs("json", "info")
log_uncaught_exceptions()
"""
AT_START_AND_STOP = {
    "start": _SERVE + "main.record_impressions = fail" + _RUN,
    "stop": _SERVE
    + """
import os, signal
BoundedPool.close = fail
server.DrainingServer.on_tick = lambda self, _: fail_to_run()
async def fail_to_run():
    return True
"""
    + _RUN,
    "main loop": _SERVE + "server.DrainingServer.on_tick = fail_later" + _RUN,
}
ELSEWHERE = {
    "main thread": "fail()",
    "thread": "threading.Thread(target=fail).start()",
    "task": """
async def main():
    asyncio.get_running_loop().set_exception_handler(log_loop_exception)
    task = asyncio.create_task(fail_later())
    await asyncio.sleep(0)
    del task
asyncio.run(main())
""",
    "finalizer": """
class Broken:
    __del__ = fail
Broken()
""",
}


def run(script: str, directory: Path) -> str:
    """Run a script; return what it prints to standard error."""
    root = Path(__file__).parents[3]
    finished = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(root)!r}){script}"],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return finished.stderr


@pytest.mark.parametrize("script", ELSEWHERE.values(), ids=ELSEWHERE.keys())
def test_an_unhandled_exception_is_logged_without_its_message(script: str, tmp_path: Path) -> None:
    logged = run(_FAIL + _LOGGED + script, tmp_path)
    assert "ValueError: (message withheld" in logged
    assert "uncaught_exception" in logged
    assert SECRET not in logged


@pytest.mark.slow
@pytest.mark.parametrize("script", AT_START_AND_STOP.values(), ids=AT_START_AND_STOP.keys())
def test_a_failing_process_is_logged_without_messages(script: str, tmp_path: Path) -> None:
    logged = run(_FAIL + script, tmp_path)
    assert "ValueError: (message withheld" in logged
    assert SECRET not in logged
