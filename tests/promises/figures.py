"""Measurements of the promises, as the records behind the table in docs/promises.md."""

import json
import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.promises.claims import CLAIMS

RECORDS = Path(__file__).parents[2] / "docs" / "promises"

Figure = str | int | float | bool | None


@dataclass(frozen=True)
class Figures:
    """Prints the figures of promises, and writes those of full strength to records.

    Attributes:
        records: folder of the records; None at short strength, which is not published.
    """

    records: Path | None

    def record(self, promise: str, measured: str, **figures: Figure) -> None:
        """Record one measurement of a promise; it replaces an earlier one of the same name.

        Args:
            promise: "R1" to "R21".
            measured: the experiment, in a few words; a promise may have several.
            figures: by name, units last: `p99_seconds`, `rss_growth`.
        """
        line = " ".join(f"{name}={_shorten(figure)}" for name, figure in figures.items())
        print(f"{promise} {measured}: {line}")  # noqa: T201 - progress of `make promises`
        if self.records is None:
            return
        self.records.mkdir(exist_ok=True)
        file = self.records / f"R{int(promise.removeprefix('R')):02}.json"
        known = json.loads(file.read_text()) if file.exists() else {}
        known[measured] = {
            "claim": CLAIMS[promise],
            "figures": figures,
            "device": f"{_read_processor()}, {os.cpu_count()} cores",
            "measured_on": datetime.now(UTC).date().isoformat(),
        }
        file.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n")


def _shorten(figure: Figure) -> Figure:
    return f"{figure:.4g}" if isinstance(figure, float) else figure


def _read_processor() -> str:
    """Read the processor's name from the kernel."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
