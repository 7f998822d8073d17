"""The stages of a Dockerfile, each in a directory that stands for its image."""

import json
import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dockerfile_parse import DockerfileParser

CONTEXT = Path(__file__).parents[1]
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
PACKAGES = "python3,python3-venv,python3-pip,ca-certificates"
BORROWED = ("/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs", "/etc/pip.conf", "/proc", "/dev")
"""Paths of this machine that are mounted in every root."""
_SEEN = ("PIP_", "SSL_CERT_")
_OF_NO_EFFECT = frozenset({"EXPOSE", "LABEL", "STOPSIGNAL"})


class StepError(Exception):
    """A step failed, or its instruction is not supported."""


@dataclass
class Stage:
    """One stage of a Dockerfile: its root directory and settings.

    Attributes:
        directory: the working directory, inside the root.
        command: of CMD.
        probe: of HEALTHCHECK.
    """

    root: Path
    arguments: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})
    directory: str = "/"
    user: str = "0:0"
    command: list[str] = field(default_factory=list)
    probe: list[str] = field(default_factory=list)

    def to_host_path(self, path: str) -> Path:
        """Convert a path inside the root to the path on this machine."""
        return self.root / os.path.join(self.directory, path).lstrip("/")

    def expand(self, text: str) -> str:
        """Replace each `${NAME}` of a text."""
        known = {**self.arguments, **self.environment}
        return re.sub(r"\$\{(\w+)\}", lambda match: known.get(match.group(1), ""), text)


@dataclass
class Build:
    """Runs the steps of Dockerfiles in order; those of equal stages once.

    Attributes:
        directory: where the roots are.
        given: arguments of the build, by name.
        borrowed: paths of this machine that are mounted for the steps, beside the usual ones.
        stages: those of the current Dockerfile, by name.
        made: every stage, by its steps and those before it.
    """

    directory: Path
    given: dict[str, str]
    borrowed: list[str]
    stages: dict[str, Stage] = field(default_factory=dict)
    made: dict[str, Stage] = field(default_factory=dict)

    def run(self, dockerfile: Path) -> Stage:
        """Run every step, and return the last stage.

        Raises:
            StepError: if a step fails.
        """
        self.stages.clear()
        before, *stages = split_stages(dockerfile)
        known = dict(self._resolve_argument(value, {}) for _, value in before)
        done = ""
        for (_, origin), *steps in stages:
            # The identity of a stage: its own steps, and those that it may copy from.
            done += json.dumps([origin, steps])
            name = origin.partition(" AS ")[2].strip() or dockerfile.stem
            if done not in self.made:
                self.made[done] = self._make(name, steps, known)
            self.stages[name] = self.made[done]
        return self.made[done]

    def _make(self, name: str, steps: list[tuple[str, str]], known: dict[str, str]) -> Stage:
        stage = self._begin(name)
        for instruction, value in steps:
            began = time.monotonic()
            if instruction == "ARG":
                stage.arguments.update([self._resolve_argument(value, known)])
            elif instruction not in _OF_NO_EFFECT:
                self._take(stage, instruction, value)
            shortened = " ".join(value.split())[:80]
            print(
                f"{name} {time.monotonic() - began:6.1f} s  {instruction} {shortened}", flush=True
            )
        return stage

    def _resolve_argument(self, value: str, known: dict[str, str]) -> tuple[str, str]:
        key, _, default = value.partition("=")
        return key, self.given.get(key, default or known.get(key, ""))

    def _begin(self, name: str) -> Stage:
        root = self.directory / name
        if root.exists():
            shutil.rmtree(root)
        base = make_debian(self.directory)
        subprocess.run(["cp", "--archive", "--reflink=auto", str(base), str(root)], check=True)
        return Stage(root)

    def _take(self, stage: Stage, name: str, value: str) -> None:
        if name == "RUN":
            self._run(stage, value)
        elif name == "COPY":
            self._copy(stage, shlex.split(value))
        elif name == "ENV":
            pairs = [pair.partition("=") for pair in shlex.split(value)]
            stage.environment.update({key: stage.expand(text) for key, _, text in pairs})
        elif name == "WORKDIR":
            stage.directory = value
            stage.to_host_path(".").mkdir(parents=True, exist_ok=True)
        elif name == "USER":
            stage.user = value
        elif name == "CMD":
            stage.command = json.loads(value)
        elif name == "HEALTHCHECK":
            stage.probe = json.loads(value[value.index("[") :])
        else:
            raise StepError(
                f"a step must be a supported instruction, but got {name}; add it to Build"
            )

    def _run(self, stage: Stage, script: str) -> None:
        seen = {key: value for key, value in os.environ.items() if key.startswith(_SEEN)}
        done = subprocess.run(
            build_enter_command(stage, self.borrowed, ["/bin/sh", "-c", script]),
            env={"HOME": "/root", **seen, **stage.arguments, **stage.environment},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise StepError(f"RUN {script}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")

    def _copy(self, stage: Stage, words: list[str]) -> None:
        flags = dict(word.split("=", 1) for word in words if word.startswith("--"))
        *sources, target = [word for word in words if not word.startswith("--")]
        destination = stage.to_host_path(target)
        if "--from" in flags:
            (source,) = sources
            destination.parent.mkdir(parents=True, exist_ok=True)
            origin = self.stages[flags["--from"]].to_host_path(source)
            subprocess.run(["cp", "--archive", str(origin), str(destination)], check=True)
            return
        is_directory = sources == ["."] or target.endswith("/")
        for source in sources:
            for file in list_context(source):
                copy = destination / file if sources == ["."] else destination / file.name
                copy = copy if is_directory else destination
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(CONTEXT / file, copy)
                copy.chmod(int(flags.get("--chmod", oct(copy.stat().st_mode & 0o777)), 8))


def build_enter_command(
    stage: Stage, borrowed: list[str], command: list[str], *, mounts: str = "", become: str = ""
) -> list[str]:
    """Build a command that runs another inside a stage's root, in mounts of its own.

    Args:
        mounts: further shell lines; `$root` is the root.
        become: a command that runs the command, such as setpriv.
    """
    lines = ["set -e", f"root={shlex.quote(str(stage.root))}", 'mount --bind "$root" "$root"']
    for path in filter(os.path.exists, (*BORROWED, *borrowed)):
        inside = f'"$root"{shlex.quote(path)}'
        make = "mkdir -p" if Path(path).is_dir() else "touch"
        lines += [
            f"[ -e {inside} ] || {make} {inside}",
            f"mount --rbind {shlex.quote(path)} {inside}",
        ]
    entered = f"{become} env --chdir={shlex.quote(stage.directory)} {shlex.join(command)}"
    lines += [mounts, f'exec chroot "$root" {entered}']
    return ["unshare", "--mount", "sh", "-c", "\n".join(lines)]


def make_debian(directory: Path) -> Path:
    """Make a Debian with Python, once, in place of the image that FROM names."""
    base, made = directory / "base", directory / "base-is-made"
    if not made.exists():
        shutil.rmtree(base, ignore_errors=True)
        options = ["--variant=minbase", f"--include={PACKAGES}"]
        command = ["debootstrap", *options, "bookworm", str(base)]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        for name in ("python", "pip"):
            (base / "usr/local/bin" / name).symlink_to(f"/usr/bin/{name}3")
        made.touch()
    return base


def split_stages(dockerfile: Path) -> list[list[tuple[str, str]]]:
    """Split instructions, with their values, into those before the first FROM and each stage's."""
    with dockerfile.open("rb") as opened:
        steps = DockerfileParser(fileobj=opened, env_replace=False).structure
    stages: list[list[tuple[str, str]]] = [[]]
    for step in steps:
        if step["instruction"] == "FROM":
            stages.append([])
        if step["instruction"] != "COMMENT":
            stages[-1].append((step["instruction"], step["value"]))
    return stages


def list_context(source: str) -> Iterator[Path]:
    """List the files under a path that .dockerignore allows, relative to the repository."""
    lines = (CONTEXT / ".dockerignore").read_text().splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    top = CONTEXT / source
    files = [top] if top.is_file() else (file for file in _list_files(top) if file.is_file())
    for file in files:
        relative = file.relative_to(CONTEXT)
        if not _is_ignored(relative, patterns):
            yield relative


def _list_files(top: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(top):
        folders[:] = [name for name in folders if name not in {".git", ".venv"}]
        yield from (Path(folder) / name for name in names)


def _is_ignored(file: Path, patterns: list[str]) -> bool:
    """Apply the last pattern that fits a file, or a folder it is in."""
    ignored = False
    for pattern in patterns:
        regex = re.escape(pattern.lstrip("!")).replace(r"\*\*/", "(.*/)?").replace(r"\*", "[^/]*")
        if any(re.fullmatch(regex, str(path)) for path in (file, *file.parents)):
            ignored = not pattern.startswith("!")
    return ignored
