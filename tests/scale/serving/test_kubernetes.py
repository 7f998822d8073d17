"""docker/kubernetes: valid by the schemas, and consistent with settings, API and Compose."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import botocore.session
import kubernetes_validate
import pytest
import yaml

from app.db.database import _CONTROL_THREADS
from app.db.engine import _EXTRA_CONNECTIONS
from app.main import create_app
from app.settings import _FOREIGN, Settings
from tests.deployment.compose import FILE_SERVICES, SLOWEST_EXIT_SECONDS
from tests.processes import ROOT

Manifest = dict[str, Any]

FOLDER = ROOT / "docker" / "kubernetes"
FILES = sorted(FOLDER.glob("*.yaml"))
POSTGRESQL_CONNECTIONS = 100


def read(file: Path) -> list[Manifest]:
    return [*yaml.safe_load_all(file.read_text())]


MANIFESTS = {
    (each["kind"], each["metadata"]["name"]): each
    for file in FILES
    if file.name != "kustomization.yaml"
    for each in read(file)
}
WORKLOADS = {
    "api": MANIFESTS["Deployment", "kairos-api"]["spec"]["template"],
    "migrate": MANIFESTS["Job", "kairos-migrate"]["spec"]["template"],
    "retrain": MANIFESTS["CronJob", "kairos-retrain"]["spec"]["jobTemplate"]["spec"]["template"],
}
every_workload = pytest.mark.parametrize("name", WORKLOADS)


def container(name: str) -> Manifest:
    (only,) = WORKLOADS[name]["spec"]["containers"]
    return dict(only)


def walk(value: object) -> Iterator[tuple[str, object]]:
    """Every key of a manifest, at any depth, with its value."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key, inner
            yield from walk(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from walk(inner)


@pytest.mark.parametrize("key", MANIFESTS, ids="-".join)
def test_a_manifest_is_valid_by_the_schema(key: tuple[str, str]) -> None:
    kubernetes_validate.validate(MANIFESTS[key], "1.31", strict=True)


def test_the_schema_would_find_a_misspelt_field() -> None:
    deployment = {**MANIFESTS["Deployment", "kairos-api"]}
    deployment["spec"] = {**deployment["spec"], "minReadySecond": 10}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, "1.31", strict=True)


def test_every_file_is_applied_or_by_hand() -> None:
    (kustomization,) = read(FOLDER / "kustomization.yaml")
    by_hand = {"kustomization.yaml", "secret.example.yaml", "migration.yaml"}
    assert {*kustomization["resources"]} == {file.name for file in FILES} - by_hand


def test_every_variable_is_a_setting() -> None:
    known = {name.upper() for name in Settings.model_fields} | _FOREIGN
    known |= {"DATABASE_URL_FILE", "BUNDLE_KEY_FILE"}
    for file in FILES:
        used = {*re.findall(r"KAIROS_(\w+)", file.read_text())} - {""}
        assert used <= known, file.name


def test_the_settings_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    values = MANIFESTS["ConfigMap", "kairos"]["data"]
    values |= {each["name"]: each["value"] for each in container("api")["env"]}
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    settings = Settings()
    assert settings.open_bundle_store().root == settings.bundle_cache
    assert not settings.migrate_on_start


def test_the_database_library_finds_the_system_authorities() -> None:
    values = MANIFESTS["ConfigMap", "kairos"]["data"]
    assert "sslrootcert=system" in values["KAIROS_DATABASE_URL"]
    # That of psycopg's wheels has a default of its own, which no image has.
    assert values["SSL_CERT_FILE"] == "/etc/ssl/certs/ca-certificates.crt"


def test_the_client_of_s3_reads_the_region(monkeypatch: pytest.MonkeyPatch) -> None:
    values = MANIFESTS["ConfigMap", "kairos"]["data"]
    for name in ("AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    for name in (name for name in values if name.startswith("AWS_")):
        monkeypatch.setenv(name, values[name])
    region = botocore.session.get_session().get_config_variable("region")
    assert region == "eu-central-1"


def test_probes_ask_for_paths_of_the_api() -> None:
    paths = {getattr(route, "path", None) for route in create_app(Settings()).routes}
    probes = [value for key, value in walk(container("api")) if key == "httpGet"]
    assert len(probes) == 3
    for probe in probes:
        assert isinstance(probe, dict)
        assert probe["path"] in paths
        assert probe["port"] == "http"


@every_workload
def test_every_reference_leads_somewhere(name: str) -> None:
    spec = WORKLOADS[name]["spec"]
    assert ("ServiceAccount", spec["serviceAccountName"]) in MANIFESTS
    for source in container(name)["envFrom"]:
        kinds = {"configMapRef": "ConfigMap", "secretRef": "Secret"}
        for kind, reference in source.items():
            assert (kinds[kind], reference["name"]) in MANIFESTS
    for claim in (value for key, value in walk(spec) if key == "persistentVolumeClaim"):
        assert isinstance(claim, dict)
        assert ("PersistentVolumeClaim", claim["claimName"]) in MANIFESTS
    mounted = {mount["name"] for mount in container(name)["volumeMounts"]}
    assert mounted == {volume["name"] for volume in spec["volumes"]}


def test_selectors_find_the_replicas_and_nothing_else() -> None:
    deployment = MANIFESTS["Deployment", "kairos-api"]["spec"]
    chosen = deployment["selector"]["matchLabels"]
    for name, template in WORKLOADS.items():
        labels = template["metadata"]["labels"].items()
        assert (chosen.items() <= labels) == (name == "api")
    selectors = [
        MANIFESTS["Service", "kairos-api"]["spec"]["selector"],
        MANIFESTS["PodDisruptionBudget", "kairos-api"]["spec"]["selector"]["matchLabels"],
        MANIFESTS["NetworkPolicy", "kairos"]["spec"]["podSelector"]["matchLabels"],
        *(
            each["labelSelector"]["matchLabels"]
            for each in WORKLOADS["api"]["spec"]["topologySpreadConstraints"]
        ),
    ]
    assert all(selector == chosen for selector in selectors)
    target = MANIFESTS["HorizontalPodAutoscaler", "kairos-api"]["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) in MANIFESTS


def test_a_rolling_update_keeps_every_replica() -> None:
    deployment = MANIFESTS["Deployment", "kairos-api"]["spec"]
    assert deployment["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    stop = container("api")["lifecycle"]["preStop"]["sleep"]["seconds"]
    grace = WORKLOADS["api"]["spec"]["terminationGracePeriodSeconds"]
    assert grace >= stop + SLOWEST_EXIT_SECONDS
    readiness = container("api")["readinessProbe"]
    assert stop >= readiness["periodSeconds"] * readiness["failureThreshold"]


def test_the_replicas_fit_into_the_connections_of_postgresql() -> None:
    defaults = Settings()
    each = defaults.database_threads + defaults.database_write_threads
    each += _CONTROL_THREADS + _EXTRA_CONNECTIONS
    scaled = MANIFESTS["HorizontalPodAutoscaler", "kairos-api"]["spec"]
    surge = MANIFESTS["Deployment", "kairos-api"]["spec"]["strategy"]["rollingUpdate"]["maxSurge"]
    assert (scaled["maxReplicas"] + surge) * each <= POSTGRESQL_CONNECTIONS
    assert scaled["minReplicas"] >= 2


@pytest.mark.parametrize(
    ("name", "service"), [("api", "api"), ("migrate", "migrate"), ("retrain", "scheduler")]
)
def test_containers_are_those_of_compose(name: str, service: str) -> None:
    composed = FILE_SERVICES[service]
    image, _, default = composed["image"].partition(":")
    assert (
        container(name)["image"]
        == f"{image}:{default.removeprefix('${KAIROS_VERSION:-').rstrip('}')}"
    )
    limit = container(name)["resources"]["limits"]["memory"]
    assert limit == f"{composed['mem_limit'].upper().rstrip('G')}Gi"


@every_workload
def test_containers_have_no_privileges(name: str) -> None:
    assert WORKLOADS[name]["spec"]["securityContext"]["runAsNonRoot"]
    assert not WORKLOADS[name]["spec"]["automountServiceAccountToken"]
    security = container(name)["securityContext"]
    assert security["readOnlyRootFilesystem"]
    assert not security["allowPrivilegeEscalation"]
    assert security["capabilities"] == {"drop": ["ALL"]}
    writable = {mount["mountPath"] for mount in container(name)["volumeMounts"]}
    assert "/tmp" in writable
    assert name == "migrate" or container_cache() in writable


def container_cache() -> str:
    return str(MANIFESTS["ConfigMap", "kairos"]["data"]["KAIROS_BUNDLE_CACHE"])


def test_the_schedule_trains_as_compose_does() -> None:
    composed = FILE_SERVICES["scheduler"]["command"]
    command = container("retrain")["command"]
    assert command[:2] == ["kairos", "retrain"]
    assert {option for option in command[2:] if "recipe" not in option} <= {*composed}
    job = MANIFESTS["CronJob", "kairos-retrain"]["spec"]
    assert job["concurrencyPolicy"] == "Forbid"
    assert container("migrate")["command"] == FILE_SERVICES["migrate"]["command"]


def test_no_secret_has_a_value() -> None:
    secret = MANIFESTS["Secret", "kairos"]
    assert {*secret["stringData"].values()} == {""}
    assert "password" not in MANIFESTS["ConfigMap", "kairos"]["data"]["KAIROS_DATABASE_URL"]
