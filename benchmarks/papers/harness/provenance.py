"""What a record says of the code, the data and the machine that it is of."""

import hashlib
import platform
from pathlib import Path

import torch

from benchmarks.papers.peers.environments import CODE

MEASURING_FOLDERS = ("model", "training", "benchmarks/papers/peers")
"""Code that figures depend on."""

MEASURING_FILES = (
    "benchmarks/papers/harness/cell.py",
    "benchmarks/papers/harness/peer_run.py",
    "benchmarks/papers/harness/question_ranks.py",
    "benchmarks/papers/harness/recipe_run.py",
    "benchmarks/papers/harness/run_cell.py",
    "benchmarks/papers/harness/search.py",
    "benchmarks/papers/harness/stopwatch.py",
    "benchmarks/papers/harness/tuning.py",
    "benchmarks/speed/peers/peer_runs.py",
)
"""More of it."""


def digest_code() -> str:
    """Compute a digest of the code that a figure depends on: models, training, runs and peers.

    What only renders pages is left out.
    """
    found = [file for folder in MEASURING_FOLDERS for file in (CODE / folder).rglob("*.py")]
    found += [CODE / name for name in MEASURING_FILES]
    found += (CODE / "benchmarks/papers/peers/constraints").glob("*.txt")
    digest_of = hashlib.sha256()
    for file in sorted(found):
        digest_of.update(file.relative_to(CODE).as_posix().encode() + b"\0")
        digest_of.update(file.read_bytes())
    return digest_of.hexdigest()


def digest_data(folder: Path) -> dict[str, str]:
    """Compute the sha256 of every file of some data."""
    files = (folder / name for name in ("events.parquet", "items.parquet"))
    return {
        f"{folder.name}/{file.name}": hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
        if file.exists()
    }


def format_data(data: dict[str, str]) -> str:
    """Format the files of some data with the first digits of their sha256."""
    return ", ".join(f"{name} {sha256[:12]}" for name, sha256 in data.items()) or "no files"


def read_device_name(device: str) -> str:
    """Read the name of a device: that of the card for a GPU."""
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device


def read_processor_name() -> str:
    """Read the name of this machine's processor."""
    cpuinfo = Path("/proc/cpuinfo")
    for line in cpuinfo.read_text("utf-8").splitlines() if cpuinfo.exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
