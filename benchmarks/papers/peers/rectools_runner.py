"""Runs a task with RecTools, in its environment: python -m ...rectools_runner FOLDER."""
# mypy: ignore-errors

import logging
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from pytorch_lightning import Callback, Trainer, seed_everything
from rectools import Columns
from rectools.dataset import Dataset
from rectools.models import EASEModel, SASRecModel
from rectools.models.nn.item_net import IdEmbeddingsItemNet
from rectools.models.nn.transformers.hstu import HSTUModel
from rectools.models.nn.transformers.ligr import LiGRLayers

from benchmarks.papers.peers.fitting import count_parameters, find_trained_rows, run_task
from benchmarks.speed.peers.peer_runs import TRAINER_SETTINGS

MICROSECONDS = 1_000_000


class RecTools:
    """A transformer of RecTools.

    It is trained by `fit`, and scored by its torch module: `recommend` takes one history a user,
    while a test user may have many questions. The scores are the same.
    """

    def __init__(self, task, sequences):
        torch.set_num_threads(task.threads)
        seed_everything(task.seed)
        self._settings = task.settings
        self._session = task.session_seconds * MICROSECONDS
        self._max_history = task.settings["max_history"]
        self._sequences = sequences
        self.known = find_trained_rows(sequences)

    @property
    def parameters(self):
        """Number of learned parameters."""
        return count_parameters(self._model.torch_model)

    def fit(self, epochs, finish_epoch):
        """Train with the library's own loop."""
        peer = self

        class FinishEpoch(Callback):
            """Ends the fit. The trainer is copied, so it has no state."""

            def on_train_start(self, trainer, *_):
                """Map the rows, now that the library has mapped its items."""
                peer._map_rows(trainer.train_dataloader.dataset.sessions)

            def on_train_epoch_end(self, trainer, module):
                """Ask whether to stop."""
                trainer.should_stop = finish_epoch()
                module.train()

        def build_trainer():
            return Trainer(max_epochs=epochs, callbacks=[FinishEpoch()], **TRAINER_SETTINGS)

        self._model = self._build(build_trainer)
        self._model.fit(Dataset.construct(self._build_table()))

    def score(self, rows, times, query_times):
        """Score every row for some histories."""
        module = self._model.torch_model.eval()
        batch = {"x": torch.from_numpy(self._internal[rows])}
        if self._settings.get("relative_time"):
            instants = np.column_stack((times, query_times)) // MICROSECONDS
            batch["unix_ts"] = torch.from_numpy(instants)
        with torch.no_grad():
            items = module.item_model.get_all_embeddings()
            users = module.encode_sessions(batch, items)[:, -1]
            scores = module.similarity_module(users, items).numpy()
        return scores[:, self._internal]

    def _build_table(self):
        """Build the table of interactions; a sequence is a user, and a row an item.

        RecTools sorts by time, stably, and HSTU reads whole seconds: within a second the order is
        that of the sequence.
        """
        sequences = self._sequences
        seconds = sequences.times // MICROSECONDS
        return pd.DataFrame(
            {
                Columns.User: np.repeat(np.arange(len(sequences)), np.diff(sequences.offsets)),
                Columns.Item: sequences.rows,
                Columns.Weight: self._weigh_sessions(),
                Columns.Datetime: pd.to_datetime(pd.Series(seconds), unit="s"),
            }
        )

    def _weigh_sessions(self):
        """Weigh every event by the interval since the one before; the first is no target."""
        times = self._sequences.times
        is_session = np.diff(times, prepend=times[:1]) < self._session
        return np.where(is_session, self._settings["session_weight"], 1.0)

    def _map_rows(self, sessions):
        """Map rows to the library's items; check that it kept sequences as they are."""
        preparator = self._model.data_preparator
        self._internal = np.zeros(len(self.known), dtype=np.int64)
        self._internal[preparator.get_known_item_ids().astype(np.int64)] = (
            preparator.get_known_items_sorted_internal_ids()
        )
        sequences = self._sequences
        assert len(sessions) == len(sequences)
        kept = {tuple(session) for session in sessions}
        internal = self._internal[sequences.rows]
        assert all(
            tuple(internal[start:end]) in kept
            for start, end in zip(sequences.offsets[:-1], sequences.offsets[1:], strict=True)
        ), "RecTools changed the order of a sequence"

    def _build(self, build_trainer):
        settings = self._settings
        arguments = {
            "n_blocks": settings["blocks"],
            "n_heads": settings["heads"],
            "n_factors": settings["dim"],
            "dropout_rate": settings["dropout"],
            "session_max_len": settings["max_history"],
            "batch_size": settings["batch_size"],
            "lr": settings["learning_rate"],
            "loss": settings["loss"],
            "n_negatives": settings["negatives"],
            "gbce_t": settings["calibration"],
            "item_net_block_types": (IdEmbeddingsItemNet,),
            "get_trainer_func": build_trainer,
        }
        if settings["kind"] == "rectools_hstu":
            return HSTUModel(
                relative_time_attention=settings["relative_time"],
                relative_pos_attention=settings["relative_positions"],
                lightning_module_kwargs={"logits_t": settings["temperature"]},
                **arguments,
            )
        if settings["kind"] == "rectools_ligr":
            return SASRecModel(
                transformer_layers_type=LiGRLayers,
                transformer_layers_kwargs={
                    "ff_factors_multiplier": settings["feed_forward_factor"]
                },
                use_key_padding_mask=True,
                **arguments,
            )
        return SASRecModel(**arguments)


class EASE:
    """EASE of RecTools, fitted by the library, in one step that learns from every sequence.

    Scores are the items of a history times the weights, as the paper has them (Steck 2019,
    equation 8); the library's `recommend` multiplies by the transposed weights.
    """

    def __init__(self, task, sequences):
        self._sequences = sequences
        self._model = EASEModel(regularization=task.settings["regularization"])
        self.known = find_trained_rows(sequences)

    @property
    def parameters(self):
        """Number of learned parameters."""
        return self._model.weight.size

    def fit(self, _, finish_epoch):
        """Compute the weights. An item counts once per sequence."""
        sequences = self._sequences
        users = np.repeat(np.arange(len(sequences)), np.diff(sequences.offsets))
        table = pd.DataFrame({Columns.User: users, Columns.Item: sequences.rows})
        table = table.drop_duplicates().assign(
            **{Columns.Weight: 1.0, Columns.Datetime: pd.Timestamp(0)}
        )
        dataset = Dataset.construct(table)
        self._model.fit(dataset)
        self._row_of = dataset.item_id_map.external_ids.astype(np.int64)
        finish_epoch()

    def score(self, rows, times, query_times):  # noqa: ARG002 - times are what others read
        """Score every row for some histories."""
        histories = np.zeros((len(rows), len(self.known)), dtype=np.float32)
        np.put_along_axis(histories, rows.astype(np.int64), 1.0, axis=1)
        scores = np.zeros_like(histories)
        scores[:, self._row_of] = histories[:, self._row_of] @ self._model.weight
        return scores


def build(task, sequences):
    """Build the peer of a task."""
    peer = EASE if task.settings["kind"] == "rectools_ease" else RecTools
    return peer(task, sequences)


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    run_task(
        Path(sys.argv[1]), build, ("rectools", "torch", "pytorch_lightning", "numpy", "pandas")
    )
