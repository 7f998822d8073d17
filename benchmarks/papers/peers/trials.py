"""The settings that a peer tries on a suite, and the choice among them on validation questions."""

import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import get_args

from pydantic import TypeAdapter

from benchmarks.papers.peers.config import PeerConfig
from benchmarks.papers.peers.run import PeerFit
from model.errors import TrainingError

TRIALS = Path(__file__).with_name("trials.toml")

KINDS: tuple[str, ...] = tuple(
    config.model_fields["kind"].default for config in get_args(get_args(PeerConfig)[0])
)
"""The peers."""

_CONFIG: TypeAdapter[PeerConfig] = TypeAdapter(PeerConfig)


def read_trials(suite: str, kind: str, file: Path = TRIALS) -> tuple[PeerConfig, ...]:
    """Read the settings that a peer tries on a suite.

    Raises:
        TrainingError: if there is no such peer, or the file has no trial of it.
    """
    if kind not in KINDS:
        raise TrainingError(f"a peer is one of {KINDS}, but got {kind!r}; check the name")
    tables = tomllib.loads(file.read_text("utf-8"))
    own = tables.get(suite, {})
    shared = tables["all"]["shared"] | own.get("shared", {})
    changes = own.get(kind) or tables["all"].get(kind)
    if not changes:
        raise TrainingError(
            f"every peer has trials, but {file.name} has none of {kind} for {suite}; add "
            f"[[all.{kind}]]"
        )
    return tuple(_CONFIG.validate_python({"kind": kind} | shared | each) for each in changes)


def choose(
    trials: Sequence[PeerConfig], validate: Callable[[PeerConfig], PeerFit]
) -> tuple[PeerConfig, tuple[PeerFit, ...]]:
    """Fit every trial, and choose the one with the best validation metric, the first of equals.

    Returns:
        The chosen settings, and the fit of every trial, in order.
    """
    fits = tuple(validate(trial) for trial in trials)
    best = max(range(len(trials)), key=lambda number: fits[number].best)
    return trials[best], fits
