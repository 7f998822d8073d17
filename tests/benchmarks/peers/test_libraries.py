"""The libraries themselves; skipped unless `KAIROS_PEERS` names their environments."""

import os
import subprocess
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from benchmarks.papers.peers.config import PeerConfig
from benchmarks.papers.peers.environments import CODE, FOLDER_VARIABLE, find_interpreter
from benchmarks.papers.peers.run import FitOptions, run_peer, validate_peer
from tests.benchmarks.peers.small_splits import split_chains
from training.config import DataConfig

pytestmark = pytest.mark.skipif(
    not os.environ.get(FOLDER_VARIABLE),
    reason=f"{FOLDER_VARIABLE} does not name environments of RecTools and RePlay; make them: "
    "python -m benchmarks.papers.peers.environments",
)

CASES: list[tuple[int, dict[str, object]]] = [
    (0, {"kind": "rectools_sasrec", "windows": "all"}),
    (1, {"kind": "rectools_ligr", "negatives": 4}),
    (3, {"kind": "rectools_hstu", "loss": "softmax"}),
    (2, {"kind": "replay_sasrec", "shuffle_instants": True}),
    (3, {"kind": "replay_tisasrec", "time_unit": 3_600}),
]
"""Splits of `SPLITS`, and peers."""


@pytest.mark.parametrize(("kind", "settings"), CASES)
def test_a_library_learns_a_chain(kind: int, settings: dict[str, object], tmp_path: Path) -> None:
    whole, split, predict = split_chains(kind)
    config: PeerConfig = TypeAdapter(PeerConfig).validate_python(
        {
            "dim": 16,
            "max_history": 6,
            "batch_size": 4,
            "epochs": 30,
            "patience": 30,
            "learning_rate": 0.01,
        }
        | settings
    )
    data, options = DataConfig(predict=predict), FitOptions(0, 40, monitor="accuracy")
    for folder in ("trial", "test"):
        (tmp_path / folder).mkdir()
    trial = validate_peer(config, split, data, tmp_path / "trial", options)
    found = config.model_copy(update={"epochs": trial.best_epoch})
    outcome = run_peer(found, whole, split, data, tmp_path / "test", options)
    # A random order of the items has 1/12.
    assert outcome.given.accuracy().mean() > 0.5
    assert trial.curve[-1][0] > 0
    assert outcome.fit.parameters > 16 * 12
    assert outcome.fit.versions["torch"].startswith("2.13.0")
    assert (outcome.withheld is not None) == (config.kind == "rectools_hstu")


@pytest.mark.parametrize("kind", ["rectools_sasrec", "rectools_ligr", "rectools_hstu"])
def test_scores_are_those_of_rectools_recommendations(kind: str) -> None:
    run_in_rectools("rectools_recommendations", kind)


def test_scores_of_ease_are_those_of_its_paper() -> None:
    run_in_rectools("rectools_ease")


def run_in_rectools(module: str, *arguments: str) -> None:
    """Run a module beside this one in the environment of RecTools."""
    done = subprocess.run(
        [find_interpreter("rectools"), "-m", f"tests.benchmarks.peers.{module}", *arguments],
        cwd=CODE,
        env=os.environ | {"PYTHONPATH": str(CODE), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
