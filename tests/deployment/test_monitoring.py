"""Scrape configuration, alerts and Grafana dashboard: every metric they read is exported."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from app.observability.metrics import Metrics
from tests.deployment.programs import program, requires_program
from tests.deployment.proxy import Site, needs_nginx
from tests.processes import ROOT, eventually, free_port

FOLDER = ROOT / "docker" / "prometheus"
DASHBOARD = json.loads((ROOT / "docker" / "grafana" / "kairos.json").read_text())
ALERTS = yaml.safe_load((FOLDER / "alerts.yml").read_text())
RULE_TESTS = sorted(FOLDER.glob("*.test.yml"))
RULES = [rule for group in ALERTS["groups"] for rule in group["rules"]]
REQUIRED_ALERTS = {
    "KairosErrors",
    "KairosSlow",
    "KairosEventsLate",
    "KairosModelOld",
    "KairosFallbackJump",
    "KairosNoEvents",
    "KairosShedding",
    "KairosSwapRefused",
    "KairosRetrainingFailed",
    "KairosVersionsDiffer",
    "KairosClockOff",
}
# Metrics of Prometheus itself.
BUILT_IN = {"up", "ALERTS"}
needs_promtool = requires_program("promtool", "apt-get install prometheus")
needs_prometheus = requires_program("prometheus", "apt-get install prometheus")


def graph_expressions() -> Iterator[tuple[str, str]]:
    """Every expression of the dashboard, with the title of its panel."""
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"].replace("$__rate_interval", "1m")
    for annotation in DASHBOARD["annotations"]["list"]:
        yield annotation["name"], annotation["expr"]


def exported_names() -> set[str]:
    """The name of every series that the service exports."""
    names = set(BUILT_IN)
    for family in Metrics().registry.collect():
        endings = {
            "counter": ("_total",),
            "gauge": ("",),
            "histogram": ("_bucket", "_sum", "_count"),
        }[family.type]
        names |= {family.name + ending for ending in endings}
    return names


def read_names(expression: str) -> set[str]:
    """The metrics that an expression reads."""
    without_strings = re.sub(r'"[^"]*"', '""', expression)
    without_labels = re.sub(r"\{[^}]*\}", "{}", without_strings)
    without_groupings = re.sub(r"\b(by|on|ignoring|without) ?\([^)]*\)", "", without_labels)
    words = re.findall(
        r"[a-zA-Z_:][\w:]*", re.sub(r"\[[^]]*\]|\boffset \w+", "", without_groupings)
    )
    return {word for word in words if "_" in word or word in BUILT_IN} - FUNCTIONS


FUNCTIONS = {"histogram_quantile", "group_left", "group_right"}


def test_every_required_alert_exists_with_a_remedy() -> None:
    alerts = {rule["alert"]: rule for rule in RULES if "alert" in rule}
    assert alerts.keys() >= REQUIRED_ALERTS
    for alert in alerts.values():
        assert alert["labels"]["severity"] in {"page", "ticket"}
        assert {"summary", "remedy"} <= alert["annotations"].keys()


def test_every_alert_has_a_rule_test() -> None:
    tests = "".join(file.read_text() for file in RULE_TESTS)
    assert [rule["alert"] for rule in RULES if "alert" in rule and rule["alert"] not in tests] == []


def test_alerts_read_metrics_that_the_service_exports() -> None:
    recorded = {rule["record"] for rule in RULES if "record" in rule}
    read = {name for rule in RULES for name in read_names(rule["expr"])}
    assert read - exported_names() - recorded == set()
    assert len(read) > 8


@pytest.mark.parametrize(("panel", "expression"), tuple(graph_expressions()))
def test_graphs_read_metrics_that_the_service_exports(panel: str, expression: str) -> None:
    read = read_names(expression)
    assert read, expression
    assert read <= exported_names()


def test_every_metric_is_on_the_dashboard() -> None:
    read = {name for _, expression in graph_expressions() for name in read_names(expression)}
    families = {re.sub("_(bucket|sum|count)$", "", name) for name in read}
    expected = {re.sub("_(bucket|sum|count)$", "", name) for name in exported_names()}
    assert expected - families == set()


def test_a_model_is_called_old_after_two_retraining_intervals() -> None:
    compose = (ROOT / "docker-compose.yml").read_text()
    (seconds,) = re.findall(r"KAIROS_RETRAIN_SECONDS:-(\d+)", compose)
    (rule,) = [rule for rule in RULES if rule.get("alert") == "KairosModelOld"]
    (days,) = re.findall(r"offset (\d+)d", rule["expr"])
    assert int(days) * 86400 == 2 * int(seconds)


@needs_promtool
def test_promtool_accepts_the_configuration(tmp_path: Path) -> None:
    configuration = (FOLDER / "prometheus.yml").read_text()
    (tmp_path / "alerts.yml").write_text((FOLDER / "alerts.yml").read_text())
    file = tmp_path / "prometheus.yml"
    file.write_text(configuration.replace("/etc/prometheus/", f"{tmp_path}/"))
    result = run("promtool", "check", "config", str(file))
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(r"found: \d\d rules|\d\d rules found", result.stdout)


@needs_promtool
def test_alerts_fire_on_their_conditions_only() -> None:
    result = run("promtool", "test", "rules", *map(str, RULE_TESTS))
    assert result.returncode == 0, result.stdout + result.stderr


@needs_promtool
def test_rule_tests_notice_an_alert_that_never_fires(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "rules")
    rules = tmp_path / "rules" / "alerts.yml"
    rules.write_text(rules.read_text().replace("> 0.01", "> 0.99"))
    result = run("promtool", "test", "rules", str(tmp_path / "rules" / "alerts.test.yml"))
    assert result.returncode != 0


@needs_nginx
@needs_prometheus
def test_prometheus_scrapes_replicas_and_runs_every_query(site: Site, tmp_path: Path) -> None:
    request = {"history": [{"item_id": "i1", "timestamp": 1_767_225_600}]}
    assert site.proxy.http.post("/v1/recommendations", json=request).is_success
    with prometheus(site, tmp_path) as http:
        eventually(lambda: value(http, 'count(up{job="kairos"} == 1)') == 2)
        eventually(lambda: value(http, "sum(kairos_model_info)") == 2)
        eventually(lambda: (value(http, "sum(kairos_recommendations_total)") or 0) > 0)
        for panel, expression in graph_expressions():
            response = http.get("/api/v1/query", params={"query": expression})
            assert response.status_code == 200, f"{panel}: {response.text}"
        rules = http.get("/api/v1/rules").json()["data"]["groups"]
        assert {rule["health"] for group in rules for rule in group["rules"]} <= {"ok", "unknown"}
        alerts = http.get("/api/v1/alerts").json()["data"]["alerts"]
        firing = [alert for alert in alerts if alert["state"] == "firing"]
        assert [alert["labels"]["alertname"] for alert in firing] == []


@contextmanager
def prometheus(site: Site, directory: Path) -> Iterator[httpx.Client]:
    """Runs Prometheus with the shipped configuration, but static targets in place of DNS."""
    configuration: dict[str, Any] = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    configuration["rule_files"] = [str(FOLDER / "alerts.yml")]
    configuration["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    (job,) = configuration["scrape_configs"]
    (lookup,) = job.pop("dns_sd_configs")
    assert lookup["names"] == ["api"]
    targets = [f"{replica.address}:{replica.port}" for replica in site.replicas]
    job["static_configs"] = [{"targets": targets}]
    file, port, log = directory / "prometheus.yml", free_port(), directory / "log"
    file.write_text(yaml.safe_dump(configuration))
    command = [
        program("prometheus") or "",
        f"--config.file={file}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=stream, cwd=directory)
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=10) as http:
        try:
            eventually(lambda: is_up(http, process, log))
            yield http
        finally:
            process.terminate()
            process.wait(20)


def is_up(http: httpx.Client, process: "subprocess.Popen[bytes]", log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    try:
        return http.get("/-/ready").is_success
    except httpx.TransportError:
        return False


def value(http: httpx.Client, expression: str) -> float | None:
    """The current value of an expression; None if it has no series."""
    found = http.get("/api/v1/query", params={"query": expression}).json()["data"]["result"]
    return float(found[0]["value"][1]) if found else None


def run(name: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [program(name) or name, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)
