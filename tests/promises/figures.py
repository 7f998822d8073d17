"""What was measured of the promises, as records that the operations page is made from."""

import json
import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

RECORDS = Path(__file__).parents[2] / "docs" / "promises"

Figure = str | int | float | bool | None


@dataclass(frozen=True)
class Figures:
    """Keeps the figures of promises: prints them, and writes down those of full strength.

    Attributes:
        records: where they are written; None where this run is too weak to be quoted.
    """

    records: Path | None

    def keep(self, promise: str, measured: str, **figures: Figure) -> None:
        """One measurement of one promise; a repeated one takes the earlier one's place.

        Args:
            promise: "R1" to "R16".
            measured: what was tried, in a few words: a promise may be tried in several ways.
            figures: by name, units last: `p99_seconds`, `rss_growth`.
        """
        told = " ".join(f"{name}={_short(figure)}" for name, figure in figures.items())
        print(f"{promise} {measured}: {told}")  # noqa: T201 - for whoever runs `make promises`
        if self.records is None:
            return
        self.records.mkdir(exist_ok=True)
        file = self.records / f"R{int(promise.removeprefix('R')):02}.json"
        known = json.loads(file.read_text()) if file.exists() else {}
        known[measured] = {
            "figures": figures,
            "device": f"{_processor()}, {os.cpu_count()} cores",
            "measured_on": datetime.now(UTC).date().isoformat(),
        }
        file.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n")


def _short(figure: Figure) -> Figure:
    return f"{figure:.4g}" if isinstance(figure, float) else figure


def _processor() -> str:
    """The processor's name, as the kernel tells it."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text().splitlines() if told.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
