"""The service reads the machine's clock where replicas need not agree, and nowhere else."""

import ast
from pathlib import Path

from tests.architecture.repository import ROOT, sources

MAY_READ_THE_MACHINE = {
    "app/db/clock.py": "it builds the service's clock",
    "app/auth/key_cache.py": "a default, which the application replaces by the service's clock",
    "app/backups/copying.py": "the label of a backup",
    "app/health/samples.py": "the instant of this process's metrics",
    "app/observability/metrics.py": "the start of this process",
    "app/observability/shared_metrics.py": "the start of several workers",
    "app/popularity/tally.py": "a default, which the application replaces by the service's clock",
    "app/serving/model_manager.py": "a metric: when this process opened its model",
}
"""Modules that read the machine's clock, and why it may be off; others take `AppContext.clock`, or
`app.db.clock.read_time` in a transaction."""


def test_only_the_listed_modules_read_the_machines_clock() -> None:
    reading = {str(file) for file in sources("app") if _reads_the_machine(file)}
    assert reading == MAY_READ_THE_MACHINE.keys()


def _reads_the_machine(file: Path) -> bool:
    for node in ast.walk(ast.parse((ROOT / file).read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "model.clock":
            if any(alias.name == "now" for alias in node.names):
                return True
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            read = f"{node.value.id}.{node.attr}"
            if read in {"time.time", "time.time_ns", "datetime.now", "datetime.utcnow"}:
                return True
    return False
