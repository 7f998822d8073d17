"""Runs the steps of Dockerfiles without a container engine, then the resulting images.

    python docker/run_steps.py docker/*.Dockerfile --directory /var/tmp/kairos-images

Every stage gets a root of its own: a Debian with Python, made by `debootstrap` in place of the
image that FROM names. Then the last stage is run as docker-compose.yml runs it: a read-only root, a
`/tmp` in memory, one writable volume, no capabilities, its own user. Prints the findings as JSON,
and exits with 1 if one is not as expected. Needs Linux, root, `debootstrap` and util-linux.

Not covered: the named base image, layers, and limits of memory and processors.
"""

import argparse
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from stages import Build, Stage, StepError, build_enter_command

BUNDLES = "/var/lib/kairos/bundles"
_READY_SECONDS = 120.0
_COMPOSE_MOUNTS = f"""
mount -t tmpfs -o size=64m,mode=1777 none "$root"/tmp
mount --bind "$volume" "$root"{BUNDLES}
mount -o remount,bind,ro "$root"
"""


def main() -> int:
    """Build, run, report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("dockerfiles", type=Path, nargs="+")
    parser.add_argument("--directory", type=Path, required=True, help="for the roots")
    parser.add_argument("--volume", type=Path, help="a bundle store; an empty one by default")
    parser.add_argument("--build-arg", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument(
        "--borrow",
        action="append",
        default=[],
        help="paths of this machine that the steps may read",
    )
    arguments = parser.parse_args()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    volume = arguments.volume or arguments.directory / "volume"
    volume.mkdir(exist_ok=True)
    build = Build(
        arguments.directory,
        dict(pair.split("=", 1) for pair in arguments.build_arg),
        arguments.borrow,
    )
    all_passed = True
    for dockerfile in arguments.dockerfiles:
        try:
            stage = build.run(dockerfile)
        except StepError as error:
            print(error, file=sys.stderr)
            return 1
        _chown(volume, stage.user)
        runner = Container(stage, volume)
        found = runner.serve() if stage.probe else runner.train()
        print(
            json.dumps({"image": dockerfile.stem, "mebibytes": _measure_mebibytes(stage), **found})
        )
        all_passed &= found["passed"] is True
    return 0 if all_passed else 1


class Container:
    """Runs a stage as a container would run."""

    def __init__(self, stage: Stage, volume: Path) -> None:
        self._stage = stage
        self._volume = volume
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = int(probe.getsockname()[1])

    def serve(self) -> dict[str, object]:
        """Run the service; check its user, its rights, its time to readiness, and how it stops."""
        began = time.monotonic()
        process = self._start(self._stage.command)
        while not (ready := self._is_ready()) and process.poll() is None:
            if time.monotonic() > began + _READY_SECONDS:
                break
            time.sleep(0.1)
        ready_seconds = time.monotonic() - began
        status = dict(
            line.split(":\t", 1)
            for line in Path(f"/proc/{process.pid}/status").read_text().splitlines()
        )
        probe = self._start(self._stage.probe).wait(30)
        writable = self._find_writable()
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        code = process.wait(20)
        found: dict[str, object] = {
            "ready_seconds": round(ready_seconds, 1),
            "user": status["Uid"].split()[0],
            "capabilities": int(status["CapEff"], 16),
            "no_new_privileges": status["NoNewPrivs"] == "1",
            "probe": probe,
            "writable": writable,
            "resident_mebibytes": int(status["VmRSS"].split()[0]) // 1024,
            "exit": code,
            "stop_seconds": round(time.monotonic() - began, 1),
        }
        found["passed"] = (
            ready
            and found["user"] == self._stage.user.partition(":")[0] != "0"
            and (found["capabilities"], found["no_new_privileges"]) == (0, True)
            and (probe, code, writable) == (0, 0, [])
        )
        return found

    def train(self) -> dict[str, object]:
        """Run the trainer; check whether its job and its schedule start."""
        job = self._start([*self._stage.command, "--help"]).wait(60)
        schedule = self._start(["on-schedule", "3600", "0", "true"])
        time.sleep(1)
        schedule.send_signal(signal.SIGTERM)
        ended = schedule.wait(20)
        writable = self._find_writable()
        return {
            "job": job,
            "schedule": ended,
            "writable": writable,
            "passed": (job, ended, writable) == (0, 0, []),
        }

    def _start(self, command: list[str], *, reads: bool = False) -> "subprocess.Popen[str]":
        user, _, group = self._stage.user.partition(":")
        become = (
            f"setpriv --reuid={user} --regid={group} --clear-groups --no-new-privs "
            "--inh-caps=-all --bounding-set=-all"
        )
        environment = {
            **self._stage.environment,
            "HOME": "/tmp",
            "KAIROS_HOST": "127.0.0.1",  # not published
            "KAIROS_PORT": str(self._port),
            "KAIROS_DATABASE_URL": "sqlite:////tmp/kairos.db",
            "volume": str(self._volume),
        }
        return subprocess.Popen(
            build_enter_command(self._stage, [], command, mounts=_COMPOSE_MOUNTS, become=become),
            env=environment,
            stdout=subprocess.PIPE if reads else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL if reads else None,
            text=True,
        )

    def _is_ready(self) -> bool:
        try:
            with urlopen(f"http://127.0.0.1:{self._port}/health/ready", timeout=2) as response:
                return bool(response.status == 200)
        except (URLError, OSError):
            return False

    def _find_writable(self) -> list[str]:
        """Find the paths that the user may write to, apart from `/tmp` and the volume."""
        left_out = shlex.split(f"( -path /tmp -o -path {BUNDLES} ) -prune -o")
        searched = ["find", "/", "-xdev", *left_out, "-writable", "!", "-type", "l", "-print"]
        process = self._start(searched, reads=True)
        output, _ = process.communicate(timeout=120)
        return output.split()


def _chown(volume: Path, user: str) -> None:
    owner, _, group = user.partition(":")
    for path in (volume, *volume.rglob("*")):
        os.chown(path, int(owner), int(group))


def _measure_mebibytes(stage: Stage) -> int:
    output = subprocess.run(
        ["du", "--summarize", "--block-size=1M", str(stage.root / "opt")],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(output.stdout.split()[0])


if __name__ == "__main__":
    sys.exit(main())
