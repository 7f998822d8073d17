"""Runs a task with RePlay, in its environment: python -m ...replay_runner FOLDER."""
# mypy: ignore-errors

import logging
import sys
import warnings
from pathlib import Path

import lightning
import numpy as np
import pandas as pd
import torch
from replay.data import FeatureHint, FeatureSource, FeatureType
from replay.data.nn import (
    PandasSequentialDataset,
    TensorFeatureInfo,
    TensorFeatureSource,
    TensorSchema,
)
from replay.models.nn.optimizer_utils import FatOptimizerFactory
from replay.models.nn.sequential import SasRec
from replay.models.nn.sequential.sasrec import SasRecTrainingDataset
from torch.utils.data import DataLoader

from benchmarks.papers.peers.fitting import count_parameters, find_trained_rows, run_task
from benchmarks.speed.peers.peer_runs import TRAINER_SETTINGS

MICROSECONDS = 1_000_000


class RePlay:
    """SASRec of RePlay, with intervals or without.

    Its sequences are built here, not by its tokenizer, so that events of one instant keep their
    order; an item is its row less one, and the number of items is padding.
    """

    def __init__(self, task, sequences):
        torch.set_num_threads(task.threads)
        lightning.seed_everything(task.seed)
        settings = self._settings = task.settings
        self._sequences = sequences
        self._items = int(sequences.items)
        self.known = find_trained_rows(sequences)
        self._reads_time = settings["kind"] == "replay_tisasrec"
        if self._reads_time:
            self._unit = int(settings["time_unit"] * MICROSECONDS)
            self._origin = int(sequences.times.min())
            # The library pads epoch seconds with 0: an interval to padding is the longest.
            self._padding_time = -settings["time_span"]
        self._schema = self._build_schema()
        timing = {"time_span": settings["time_span"]} if self._reads_time else {}
        self._model = SasRec(
            self._schema,
            block_count=settings["blocks"],
            head_count=settings["heads"],
            hidden_size=settings["dim"],
            max_seq_len=settings["max_history"],
            dropout_rate=settings["dropout"],
            loss_type=settings["loss"],
            loss_sample_count=settings["negatives"],
            ti_modification=self._reads_time,
            optimizer_factory=FatOptimizerFactory(learning_rate=settings["learning_rate"]),
            **timing,
        )
        self.parameters = count_parameters(self._model)

    def fit(self, epochs, finish_epoch):
        """Train with the library's own loop."""

        class FinishEpoch(lightning.Callback):
            """Ends the fit."""

            def on_train_epoch_end(self, trainer, module):
                """Ask whether to stop."""
                trainer.should_stop = finish_epoch()
                module.train()

        trainer = lightning.Trainer(
            max_epochs=epochs, callbacks=[FinishEpoch()], **TRAINER_SETTINGS
        )
        batches = DataLoader(
            SasRecTrainingDataset(
                self._build_dataset(),
                max_sequence_length=self._settings["max_history"],
            ),
            batch_size=self._settings["batch_size"],
            shuffle=True,
        )
        trainer.fit(self._model, batches)

    def score(self, rows, times, query_times):  # noqa: ARG002 - none reads the query time
        """Score every row for some histories."""
        self._model.eval()
        mask = torch.from_numpy(rows > 0)
        items = np.where(rows > 0, rows - 1, self._items).astype(np.int64)
        features = {"item": torch.from_numpy(items)}
        if self._reads_time:
            units = np.where(rows > 0, self._count_units(times), self._padding_time)
            features["timestamp"] = torch.from_numpy(units)
        with torch.no_grad():
            scores = self._model.predict({"feature_tensor": features, "padding_mask": mask})
        padded = np.full((len(rows), self._items + 1), -np.inf, dtype=np.float32)
        padded[:, 1:] = scores.numpy()
        return padded

    def _count_units(self, times):
        """Count whole units since the first event of the training."""
        return ((times - self._origin) // self._unit).astype(np.int64)

    def _build_schema(self):
        features = [
            TensorFeatureInfo(
                "item",
                is_seq=True,
                feature_type=FeatureType.CATEGORICAL,
                feature_sources=[TensorFeatureSource(FeatureSource.INTERACTIONS, "item")],
                feature_hint=FeatureHint.ITEM_ID,
                cardinality=self._items,
                padding_value=self._items,
            )
        ]
        if self._reads_time:
            features.append(
                TensorFeatureInfo(
                    "timestamp",
                    is_seq=True,
                    feature_type=FeatureType.NUMERICAL,
                    tensor_dim=1,
                    feature_sources=[TensorFeatureSource(FeatureSource.INTERACTIONS, "timestamp")],
                    feature_hint=FeatureHint.TIMESTAMP,
                    padding_value=self._padding_time,
                )
            )
        return TensorSchema(features)

    def _build_dataset(self):
        sequences = self._sequences
        spans = [
            slice(*span) for span in zip(sequences.offsets[:-1], sequences.offsets[1:], strict=True)
        ]
        items = sequences.rows.astype(np.int64) - 1
        columns = {"user": np.arange(len(spans)), "item": [items[span] for span in spans]}
        if self._reads_time:
            units = self._count_units(sequences.times)
            columns["timestamp"] = [units[span] for span in spans]
        return PandasSequentialDataset(self._schema, "user", "item", pd.DataFrame(columns))


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    run_task(Path(sys.argv[1]), RePlay, ("replay-rec", "torch", "lightning", "numpy", "pandas"))
