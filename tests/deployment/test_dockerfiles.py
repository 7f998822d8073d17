"""The Dockerfiles: stages, user, signals, contents."""

import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from dockerfile_parse import DockerfileParser
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.deployment.programs import program
from tests.processes import ROOT

NAMES = ("api", "trainer")
Steps = list[tuple[str, str]]


def dockerfile(name: str) -> Path:
    return ROOT / "docker" / f"{name}.Dockerfile"


def read_steps(name: str) -> Steps:
    with dockerfile(name).open("rb") as opened:
        structure = DockerfileParser(fileobj=opened, env_replace=False).structure
    steps = [(step["instruction"], step["value"]) for step in structure]
    return [step for step in steps if step[0] != "COMMENT"]


def read_stages(name: str) -> list[Steps]:
    """The steps before the first FROM, and those of each stage."""
    stages: list[Steps] = [[]]
    for step in read_steps(name):
        if step[0] == "FROM":
            stages.append([])
        stages[-1].append(step)
    return stages


def values(steps: Steps, instruction: str) -> list[str]:
    return [value for name, value in steps if name == instruction]


@pytest.mark.parametrize("name", NAMES)
def test_a_linter_finds_nothing(name: str) -> None:
    hadolint = program("hadolint")
    assert hadolint is not None, "hadolint comes with the development dependencies"
    run = subprocess.run([hadolint, str(dockerfile(name))], capture_output=True, check=False)
    assert run.stdout + run.stderr == b""


def test_both_images_are_built_from_the_same_layers() -> None:
    before, build, _ = read_stages("api")
    assert read_stages("trainer")[:2] == [before, build]


@pytest.mark.parametrize("name", NAMES)
def test_the_base_image_has_a_patch_version(name: str) -> None:
    (argument,) = values(read_stages(name)[0], "ARG")
    assert re.fullmatch(r"PYTHON_IMAGE=python:3\.11\.\d+-slim-\w+", argument)
    origins = values(read_steps(name), "FROM")
    assert [origin.partition(" ")[0] for origin in origins] == ["${PYTHON_IMAGE}"] * 2


@pytest.mark.parametrize("name", NAMES)
def test_an_image_runs_with_a_fixed_user_id(name: str) -> None:
    last = read_stages(name)[-1]
    assert values(last, "USER") == ["10001:10001"]
    after = [step for step, _ in last[[step for step, _ in last].index("USER") :]]
    assert not {"RUN", "COPY", "ADD"} & set(after)
    assert "--uid 10001 --gid 10001" in " ".join(values(last, "RUN"))


@pytest.mark.parametrize("name", NAMES)
def test_the_command_receives_signals_directly(name: str) -> None:
    (command,) = values(read_stages(name)[-1], "CMD")
    assert json.loads(command)[0] in {"python", "kairos"}
    assert values(read_steps(name), "ENTRYPOINT") == []


def test_the_health_check_needs_no_http_client() -> None:
    (probe,) = values(read_stages("api")[-1], "HEALTHCHECK")
    assert json.loads(probe[probe.index("[") :]) == ["python", "/opt/kairos/share/probe.py"]
    assert "curl" not in dockerfile("api").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_an_image_holds_no_secret_and_no_build_tool(name: str) -> None:
    text = dockerfile(name).read_text()
    assert not re.search(r"(?i)password|secret|token|api.?key", text)
    assert "PIP_NO_CACHE_DIR=1" in text
    assert "[dev]" not in text
    assert "download.pytorch.org/whl/cpu" in text, "builds for GPUs are gigabytes larger"
    assert values(read_stages(name)[-1], "COPY")[0] == "--from=build /opt/kairos /opt/kairos"


def test_each_math_library_of_the_service_has_one_thread() -> None:
    (environment,) = values(read_stages("api")[-1], "ENV")
    assert set(re.findall(r"(\w+)_NUM_THREADS=1\b", environment)) == {"OMP", "MKL", "OPENBLAS"}


@pytest.mark.parametrize("name", NAMES)
def test_pip_installs_only_files_with_a_listed_hash(name: str) -> None:
    installs = [run for run in values(read_steps(name), "RUN") if "pip --python" in run]
    hashed = [run for run in installs if "--require-hashes" in run]
    (rest,) = [run for run in installs if "--require-hashes" not in run]
    assert ["torch-cpu.txt" in run for run in hashed] == [True, False]
    # Kairos itself, with the setuptools that is already installed.
    assert rest.split()[-3:] == ["--no-deps", "--no-build-isolation", "."]


def test_the_images_hold_the_versions_of_the_constraints() -> None:
    pinned = read_pins(ROOT / "constraints.txt")
    locked = read_pins(ROOT / "docker" / "requirements.txt")
    torch = read_pins(ROOT / "docker" / "torch-cpu.txt")["torch"].partition("+")[0]
    assert {name: pinned.get(name, version) for name, version in locked.items()} == locked
    assert torch == pinned["torch"]
    assert locked.keys() == list_required() - {"torch"} | {"setuptools"}
    beside = read_pins(ROOT / "docker" / "object-store.txt")
    assert {name: pinned.get(name, version) for name, version in beside.items()} == beside
    assert "s3fs" in beside
    assert not beside.keys() & locked.keys()


def read_pins(file: Path) -> dict[str, str]:
    """Read `name==version` lines, with names as PyPI normalizes them."""
    pins = re.findall(r"^([\w.-]+)==(\S+)", file.read_text(), flags=re.MULTILINE)
    return {canonicalize_name(name): version for name, version in pins}


def list_required() -> set[str]:
    """List every package that Kairos requires, directly or not."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    waiting = [Requirement(text) for text in project["dependencies"]]
    seen: set[tuple[str, str]] = set()
    while waiting:
        required = waiting.pop()
        for extra in ("", *required.extras):
            if (required.name, extra) in seen:
                continue
            seen.add((required.name, extra))
            further = [Requirement(text) for text in metadata.requires(required.name) or ()]
            waiting += [
                each
                for each in further
                if each.marker is None or each.marker.evaluate({"extra": extra})
            ]
    return {canonicalize_name(name) for name, _ in seen}


def test_only_named_files_are_sent_to_a_build() -> None:
    lines = [
        line
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    assert lines[0] == "*"
    named = [line[1:] for line in lines if line.startswith("!")]
    assert [name for name in named if not (ROOT / name).exists()] == []
    assert not {".env", ".git", "var", "demo", "tests", ".venv"} & set(named)


@pytest.mark.parametrize("name", NAMES)
def test_a_build_receives_every_file_that_it_copies(name: str) -> None:
    named = (ROOT / ".dockerignore").read_text().splitlines()
    copied = [
        source
        for copy in values(read_steps(name), "COPY")
        if "--from=" not in copy
        for source in copy.split()[:-1]
        if not source.startswith("--") and source != "."
    ]
    assert "docker/requirements.txt" in copied
    assert [source for source in copied if f"!{source}" not in named] == []


def test_a_build_receives_every_package_the_commands_import() -> None:
    """Without one of them no command starts in an image, `kairos migrate` included."""
    listing = "import sys, cli.main, app.server, app.main; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", listing], cwd=ROOT, capture_output=True, text=True, check=True
    )
    imported = {name.partition(".")[0] for name in done.stdout.split()}
    ours = {file.parent.name for file in ROOT.glob("*/__init__.py")}
    named = (ROOT / ".dockerignore").read_text().splitlines()
    assert {"app", "cli", "model"} <= ours & imported
    assert {f"!{package}" for package in ours & imported} <= set(named)
