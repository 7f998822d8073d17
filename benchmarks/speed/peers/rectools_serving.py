"""RecTools' SASRec behind a bare FastAPI; see README.md for its environment."""

import logging
import warnings

import pandas as pd
import torch
from peer_runs import TRAINER_SETTINGS
from peer_service import (
    BLOCKS,
    DIM,
    HEADS,
    MAX_HISTORY,
    TOP_N,
    draw_events,
    parse_arguments,
    serve,
)
from pytorch_lightning import Trainer
from rectools import Columns
from rectools.dataset import Dataset
from rectools.models import SASRecModel


def main():
    """Fit for an epoch, and serve."""
    arguments = parse_arguments(__doc__)
    warnings.filterwarnings("ignore")
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    model = SASRecModel(
        n_blocks=BLOCKS,
        n_heads=HEADS,
        n_factors=DIM,
        session_max_len=MAX_HISTORY,
        loss="softmax",
        get_trainer_func=_build_trainer,
    )
    users, items, instants = zip(*draw_events(arguments.items), strict=True)
    model.fit(_build_dataset(users, items, pd.to_datetime(pd.Series(instants), unit="s")))

    def recommend(items, instants):
        history = _build_dataset(
            [0] * len(items), items, pd.to_datetime(pd.Series(instants)).dt.tz_localize(None)
        )
        found = model.recommend(users=[0], dataset=history, k=TOP_N, filter_viewed=True)
        return found[Columns.Item].tolist()

    serve(recommend, arguments.port)


def _build_dataset(users, items, instants):
    return Dataset.construct(
        pd.DataFrame(
            {
                Columns.User: users,
                Columns.Item: items,
                Columns.Weight: 1.0,
                Columns.Datetime: instants,
            }
        )
    )


def _build_trainer():
    return Trainer(
        max_epochs=1,
        **TRAINER_SETTINGS,
    )


if __name__ == "__main__":
    main()
