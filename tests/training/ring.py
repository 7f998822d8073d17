"""A world that is learned in a moment: items stand in a ring, and users walk along it."""

from pathlib import Path

import numpy as np
import polars as pl

from model.encoders.markov import MarkovConfig
from model.encoders.self_attention import SelfAttentionConfig
from model.time_encodings.mercer import MercerConfig
from tests import tiny
from training.config import DataConfig, FitConfig, GateConfig, RunConfig
from training.data.split import ByTimeConfig
from training.fitting.fit import EpochReport
from training.retraining.job import Phase

ITEMS = 12
GATE = GateConfig(questions=20, p95_seconds=5.0)

COUNTED = RunConfig(
    data=DataConfig(),
    split=ByTimeConfig(test=0.15, validation=0.15),
    encoder=MarkovConfig(),
    fit=FitConfig(refit=True),
    profile_histories=0,
    export_encoder=False,
    gate=GATE,
)
"""Fitted by counting."""

LEARNED = COUNTED.model_copy(
    update={
        "encoder": SelfAttentionConfig(
            dim=16,
            heads=2,
            layers=1,
            feed_forward=16,
            max_history=8,
            time_encoding=MercerConfig(periods=2),
        ),
        "fit": FitConfig(epochs=3, tokens=400, warmup_steps=2, learning_rate=0.02, refit=True),
    }
)
"""Fitted by gradients, in about a second."""


def ring_world(
    users: int = 60, length: int = 20, *, seed: int = 0, items: int = ITEMS
) -> pl.DataFrame:
    """After every item comes the next one of the ring, nine times in ten; all are as popular."""
    rng = np.random.default_rng(seed)
    happened: list[tuple[str, str, int]] = []
    for user in range(users):
        steps = np.where(rng.random(length) < 0.9, 1, rng.integers(items, size=length))
        met = (rng.integers(items) + np.cumsum(steps)) % items
        at = tiny.FIRST_AT + (rng.uniform(0, 5) + np.cumsum(rng.uniform(1, 5, length))) * tiny.DAY
        happened += [(f"u{user}", f"i{n}", int(t)) for n, t in zip(met, at, strict=True)]
    return tiny.event_log(happened)


def shuffle_items(events: pl.DataFrame, seed: int = 0) -> pl.DataFrame:
    """The same events with their items shuffled, as after an import that mixed up the rows."""
    return events.with_columns(pl.col("item_id").shuffle(seed))


def write_events(events: pl.DataFrame, file: Path) -> str:
    """Write the events to a file, and return its path."""
    events.write_parquet(file)
    return str(file)


class PhaseRecorder:
    """Records the phases and epochs of a run."""

    def __init__(self) -> None:
        self.phases: list[Phase] = []
        self.epochs: list[tuple[str, int]] = []
        self._fitting = ""

    def start_phase(self, phase: Phase) -> None:
        self.phases.append(phase)

    def start_fit(self, name: str, epochs: int, done: int = 0) -> None:
        self._fitting = name

    def finish_step(self, done: int, of: int, loss: float) -> None: ...

    def finish_epoch(self, report: EpochReport) -> None:
        self.epochs.append((self._fitting, report.epoch))
