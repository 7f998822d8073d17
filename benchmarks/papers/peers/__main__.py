"""Runs a peer on a suite: its trials on the validation questions, then the best on the test.

    python -m benchmarks.papers.peers --suite ml100k --peer rectools_hstu --budget 600
    python -m benchmarks.papers.peers --suite retail --peer replay_sasrec --budget 60 --trial 0

Prints the curves on standard error, one line of JSON a trial, and at last the metrics of the test
questions; `--output` keeps them, with the rank of every target, the curve and the versions.
"""

import argparse
import base64
import json
import sys
import tempfile
import zlib
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers.harness.plan import find_data
from benchmarks.papers.harness.suite import Suite
from benchmarks.papers.peers.config import PeerConfig
from benchmarks.papers.peers.run import CurvePoint, PeerFit, PeerOutcome, run_peer, validate_peer
from benchmarks.papers.peers.trials import KINDS, choose, read_trials
from model.errors import KairosError, TrainingError
from training.data.sources import read_events
from training.evaluation.evaluate import select_after_gap
from training.evaluation.metrics import Ranks
from training.run import build_dataset

SUITES = Path(__file__).parents[1] / "suites"


def main() -> int:
    """Run the peer of the command line; return the exit code."""
    arguments = _parse_arguments()
    try:
        record = run(arguments)
    except KairosError as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(record["test"]))
    if arguments.output is not None:
        arguments.output.mkdir(parents=True, exist_ok=True)
        name = f"{arguments.suite}-{arguments.peer}-{arguments.seed}.json"
        (arguments.output / name).write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    return 0


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Choose among the trials, and test the best."""
    suite = Suite.read(SUITES / f"{arguments.suite}.toml")
    # The data, split and monitor are the base's, of which some row must be valid.
    recipe = next(row for row in suite.rows if row.recipe == "base")
    config = suite.build_config(recipe, arguments.seed)
    events = read_events(find_data(arguments.data, suite.data) / "events.parquet")
    whole = build_dataset(config, events, None)
    split = config.split.split(whole, config.data.predict)
    shared: dict[str, Any] = {
        "seed": arguments.seed,
        "budget_seconds": arguments.budget,
        "monitor": config.fit.monitor,
        "threads": arguments.threads,
        "clock": arguments.clock,
    }

    def report(point: CurvePoint) -> None:
        seconds, epoch, metrics = point
        value = metrics[config.fit.monitor]
        print(f"{seconds:.0f} s, epoch {epoch}: {value:.4f}", file=sys.stderr, flush=True)

    def validate(trial: PeerConfig) -> PeerFit:
        with tempfile.TemporaryDirectory() as work:
            fit = validate_peer(
                trial, split, config.data, work=Path(work), report_progress=report, **shared
            )
        print(json.dumps({"trial": trial.model_dump(), "best": fit.best}), flush=True)
        return fit

    trials = read_trials(suite.name, arguments.peer)
    if arguments.trial is not None:
        if arguments.trial not in range(len(trials)):
            raise TrainingError(
                f"{arguments.peer} has the trials 0 to {len(trials) - 1} on {suite.name}, but got "
                f"{arguments.trial}; choose one of these, or leave out --trial to try all"
            )
        trials = (trials[arguments.trial],)
    chosen, fits = choose(trials, validate) if len(trials) > 1 else (trials[0], ())
    with tempfile.TemporaryDirectory() as work:
        outcome = run_peer(
            chosen, whole, split, config.data, work=Path(work), report_progress=report, **shared
        )
    return {
        "suite": suite.name,
        "peer": chosen.model_dump(),
        **shared,
        "trials": [
            {"settings": trial.model_dump(), "best": fit.best, "seconds": fit.seconds}
            for trial, fit in zip(trials[: len(fits)], fits, strict=True)
        ],
        "fit": asdict(outcome.fit) | {"seconds": outcome.fit.seconds},
        "test": {
            name: _summarise(outcome, ranks)
            for name, ranks in (("given", outcome.given), ("withheld", outcome.withheld))
            if ranks is not None
        },
        "ranks": {
            name: _encode(ranks)
            for name, ranks in (("given", outcome.given), ("withheld", outcome.withheld))
            if ranks is not None
        },
    }


def _summarise(outcome: PeerOutcome, ranks: Ranks) -> dict[str, dict[str, float]]:
    """Average the metrics over all questions, and over those after a gap."""
    later = select_after_gap(outcome.split.dataset, outcome.split.test)
    place = np.full(ranks.questions, -1)
    place[later] = np.arange(len(later))
    kept = place[ranks.question] >= 0
    subset = replace(
        ranks,
        ranks=ranks.ranks[kept],
        question=place[ranks.question[kept]],
        questions=len(later),
        sampled=None,
    )
    return {"all": ranks.summarise(), "after_a_gap": subset.summarise()}


def _encode(ranks: Ranks) -> str:
    """Encode the rank of every target, in the order of the questions; 0 if it was not ranked."""
    found = np.where(ranks.ranks > np.iinfo(np.uint32).max, 0, ranks.ranks).astype("<u4")
    return base64.b64encode(zlib.compress(found.tobytes(), 9)).decode("ascii")


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", required=True)
    parser.add_argument("--peer", choices=KINDS, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=float, required=True, help="Seconds of each fit.")
    parser.add_argument("--trial", type=int, help="Only this one of the trials.")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--clock", choices=["wall", "processor"], default="wall")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--output", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
