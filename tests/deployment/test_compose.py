"""docker-compose.yml: networks, privileges, limits and settings of the containers."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from app.db.database import _CONTROL_THREADS
from app.db.engine import _EXTRA_CONNECTIONS
from app.settings import Settings
from tests.architecture.repository import document
from tests.deployment.compose import (
    FILE,
    FILE_SERVICES,
    OBJECT_STORE_FILE,
    SLOWEST_EXIT_SECONDS,
)
from tests.deployment.programs import program
from tests.processes import ROOT

PASSWORDS = {
    "POSTGRES_PASSWORD": "zero",
    "DATABASE_PASSWORD": "one",
    "GRAFANA_PASSWORD": "two",
}
every_service = pytest.mark.parametrize("name", FILE_SERVICES)


def compose_command() -> list[str] | None:
    """The installed compose command; reading the file needs no container engine."""
    docker, standalone = program("docker"), program("docker-compose")
    if docker is not None:
        plugin = subprocess.run([docker, "compose", "version"], capture_output=True, check=False)
        if plugin.returncode == 0:
            return [docker, "compose"]
    return None if standalone is None else [standalone]


def run_compose_config(
    environment: dict[str, str], *further: Path
) -> "subprocess.CompletedProcess[str]":
    command = compose_command()
    if command is None:
        pytest.skip("no compose is installed (Debian: apt-get install docker-compose)")
    kept = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    return subprocess.run(
        [*command, *(f"--file={file}" for file in (FILE, *further)), "config"],
        env={**kept, **environment},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )


def test_compose_accepts_the_file() -> None:
    run = run_compose_config(PASSWORDS)
    assert run.returncode == 0, run.stderr
    services = yaml.safe_load(run.stdout)["services"]
    assert services.keys() == FILE_SERVICES.keys()
    assert services["api"]["environment"]["PGPASSWORD"] == "one"


@pytest.mark.parametrize("missing", PASSWORDS)
def test_a_missing_password_is_reported_by_name(missing: str) -> None:
    given = {name: value for name, value in PASSWORDS.items() if name != missing}
    run = run_compose_config(given)
    assert run.returncode != 0
    assert f"set {missing} in .env" in run.stderr


def test_the_example_names_every_variable_and_gives_no_password() -> None:
    # A variable without a value is passed on as it is.
    text = FILE.read_text() + OBJECT_STORE_FILE.read_text()
    used = set(re.findall(r"(?<!\$)\$\{(\w+)", text))
    used |= set(re.findall(r"^ +((?:KAIROS|AWS)_\w+):$", text, flags=re.MULTILINE))
    example = (ROOT / ".env.example").read_text()
    documented = dict(re.findall(r"^#?(\w+)=(.*)$", example, flags=re.MULTILINE))
    assert used == documented.keys() - {"COMPOSE_PROJECT_NAME", "COMPOSE_FILE"}
    assert documented["COMPOSE_FILE"] == ":".join(
        str(file.relative_to(ROOT)) for file in (FILE, OBJECT_STORE_FILE)
    )
    assert {name: documented[name] for name in PASSWORDS} == dict.fromkeys(PASSWORDS, "")
    defaults = dict(re.findall(r"\$\{(\w+):-([^}]*)\}", FILE.read_text()))
    assert {name: documented[name] for name in defaults} == defaults


@every_service
def test_a_container_has_few_privileges(name: str) -> None:
    service = FILE_SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in service
    assert not any("docker.sock" in str(volume) for volume in service.get("volumes", ()))
    assert "cap_add" not in service or name == "database"


@every_service
def test_a_container_has_resource_limits(name: str) -> None:
    service = FILE_SERVICES[name]
    assert {"mem_limit", "cpus", "pids_limit", "logging"} <= service.keys()


@every_service
def test_an_image_has_a_patch_version(name: str) -> None:
    # Another image is a variable in .env, by tag or by digest.
    image = re.sub(r"^\$\{\w+_IMAGE:-(.*)\}$", r"\1", FILE_SERVICES[name]["image"])
    assert re.fullmatch(r"[\w/-]+:(v?\d+\.\d+(\.\d+)?(-\w+)?|\$\{KAIROS_VERSION:-[\d.]+\})", image)


@pytest.mark.parametrize("name", ["migrate", "api", "scheduler"])
def test_kairos_does_not_have_the_superusers_password(name: str) -> None:
    service = FILE_SERVICES[name]
    assert service["environment"]["PGPASSWORD"].startswith("${DATABASE_PASSWORD:?")
    assert "POSTGRES_PASSWORD" not in str(service)


@pytest.mark.parametrize("name", ["migrate", "api", "scheduler"])
def test_the_key_of_bundles_is_passed_on_if_it_is_set(name: str) -> None:
    environments = [
        yaml.safe_load(run_compose_config(PASSWORDS | key).stdout)["services"][name]["environment"]
        for key in ({}, {"KAIROS_BUNDLE_KEY": "k" * 32})
    ]
    assert [each["KAIROS_BUNDLE_KEY"] for each in environments] == [None, "k" * 32]


STORE = "s3://example-kairos/bundles"


@pytest.mark.parametrize("name", ["api", "scheduler"])
def test_an_object_store_is_reached_by_what_needs_it(name: str) -> None:
    own = {"KAIROS_BUNDLE_STORE": STORE, "AWS_ACCESS_KEY_ID": "someone"}
    run = run_compose_config(PASSWORDS | own, OBJECT_STORE_FILE)
    assert run.returncode == 0, run.stderr
    composed = yaml.safe_load(run.stdout)
    service = composed["services"][name]
    assert own.items() <= service["environment"].items()
    assert service["environment"]["PGPASSWORD"] == "one"
    assert {*FILE_SERVICES[name]["networks"], "object-store"} == {*service["networks"]}
    assert not (composed["networks"]["object-store"] or {}).get("internal")
    cache = service["environment"]["KAIROS_BUNDLE_CACHE"]
    mounted = [volume for volume in service["volumes"] if cache in str(volume)]
    assert len(mounted) == 1
    assert "bundle-cache" in str(mounted)


def test_an_object_store_changes_nothing_else() -> None:
    added = yaml.safe_load(OBJECT_STORE_FILE.read_text())
    assert added["services"].keys() == {"api", "scheduler"}
    settings = {f"KAIROS_{setting.upper()}" for setting in Settings.model_fields}
    for service in added["services"].values():
        assert service.keys() == {"environment", "volumes", "networks"}
        names = {name for name in service["environment"] if name.startswith("KAIROS_")}
        assert names <= settings


def test_a_missing_object_store_is_reported_by_name() -> None:
    run = run_compose_config(PASSWORDS, OBJECT_STORE_FILE)
    assert run.returncode != 0
    assert "set KAIROS_BUNDLE_STORE in .env" in run.stderr


def test_only_proxy_and_graphs_are_published_on_loopback() -> None:
    published = {
        name: service["ports"] for name, service in FILE_SERVICES.items() if "ports" in service
    }
    assert published == {
        "proxy": ["${KAIROS_PUBLISH:-127.0.0.1:8080}:8080"],
        "grafana": ["${GRAFANA_PUBLISH:-127.0.0.1:3000}:3000"],
    }


def test_networks_separate_the_services() -> None:
    networks = yaml.safe_load(FILE.read_text())["networks"]
    on = {
        network: {name for name, service in FILE_SERVICES.items() if network in service["networks"]}
        for network in networks
    }
    assert on == {
        "edge": {"proxy"},
        "operators": {"grafana"},
        "inside": {"proxy", "api"},
        "database": {"database", "migrate", "api", "scheduler"},
        "metrics": {"api", "prometheus"},
        "graphs": {"prometheus", "grafana"},
    }
    open_ones = {name for name, network in networks.items() if not network.get("internal")}
    assert open_ones == {"edge", "operators"}


def test_migrations_finish_before_a_replica_starts() -> None:
    api = FILE_SERVICES["api"]
    assert api["environment"]["KAIROS_MIGRATE_ON_START"] == "false"
    assert api["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    migrate = FILE_SERVICES["migrate"]
    assert migrate["depends_on"]["database"] == {"condition": "service_healthy"}
    assert migrate["command"] == ["kairos", "migrate"]


def test_the_stop_grace_period_exceeds_the_drain_time() -> None:
    seconds = int(FILE_SERVICES["api"]["stop_grace_period"].removesuffix("s"))
    assert seconds > SLOWEST_EXIT_SECONDS


def test_an_acknowledged_event_is_on_disk() -> None:
    assert {"--synchronous_commit=on", "--fsync=on"} <= set(FILE_SERVICES["database"]["command"])


def test_replicas_use_at_most_half_of_the_connections() -> None:
    api, (most,) = (
        FILE_SERVICES["api"],
        [
            int(option.partition("=")[2])
            for option in FILE_SERVICES["database"]["command"]
            if option.startswith("--max_connections")
        ],
    )
    fields = Settings.model_fields
    threads = fields["database_threads"].default + fields["database_write_threads"].default
    # Each of the two pools may open more than it keeps.
    others = _CONTROL_THREADS + 2 * _EXTRA_CONNECTIONS
    assert api["deploy"]["replicas"] * (threads + others) < most / 2
    page = " ".join(document("docs/operations.md").split())
    assert f"`KAIROS_DATABASE_WRITE_THREADS` + {others} connections" in page
    assert f" {threads + others} by default" in page


@every_service
def test_a_container_uses_existing_settings(name: str) -> None:
    known = {f"KAIROS_{setting.upper()}" for setting in Settings.model_fields}
    environment = FILE_SERVICES[name].get("environment", {})
    assert {key for key in environment if key.startswith("KAIROS_")} <= known


@every_service
def test_files_that_are_mounted_exist(name: str) -> None:
    sources = [str(volume).partition(":")[0] for volume in FILE_SERVICES[name].get("volumes", ())]
    assert [path for path in sources if path[0] == "." and not (ROOT / path).exists()] == []
