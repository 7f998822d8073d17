"""docker-compose.yml, as the tests of it and of what has to agree with it read it."""

from typing import Any

import yaml

from tests.processes import ROOT

SLOWEST_EXIT_SECONDS = 26
"""Of a process beside a dependency that hangs: docs/operations.md adds its steps up."""

FILE = ROOT / "docker-compose.yml"
OBJECT_STORE_FILE = ROOT / "docker" / "object-store.yml"
"""Added to it where bundles are in an object store."""
Service = dict[str, Any]
FILE_SERVICES: dict[str, Service] = yaml.safe_load(FILE.read_text())["services"]
