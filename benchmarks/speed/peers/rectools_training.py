"""Seconds per epoch of a RecTools model with a full softmax; see README.md for its environment."""

import json
import logging
import warnings

import pandas as pd
import torch
from peer_runs import TRAINER_SETTINGS, build_parser, record_epochs
from pytorch_lightning import Callback, Trainer, seed_everything
from rectools import Columns
from rectools.dataset import Dataset
from rectools.models import SASRecModel
from rectools.models.nn.transformers.hstu import HSTUModel


def main():
    """Train, and print the seconds of every epoch."""
    arguments = _parse_arguments()
    warnings.filterwarnings("ignore")
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    torch.set_num_threads(arguments.threads)
    seed_everything(1)
    events = pd.read_csv(arguments.events, sep="\t")
    last = events.groupby("user").cumcount(ascending=False) == 0
    order = events.groupby(["user", "timestamp"]).cumcount()
    table = pd.DataFrame(
        {
            Columns.User: events["user"],
            Columns.Item: events["item"],
            Columns.Weight: 1.0,
            # RecTools sorts by time; events of one second keep their order.
            Columns.Datetime: pd.to_datetime(events["timestamp"], unit="s")
            + pd.to_timedelta(order, unit="ms"),
        }
    )
    clock, seconds = record_epochs(Callback)

    def build_trainer():
        return Trainer(
            max_epochs=arguments.epochs,
            callbacks=[clock],
            **TRAINER_SETTINGS,
        )

    settings = {
        "n_blocks": 2,
        "n_heads": arguments.heads,
        "n_factors": arguments.dim,
        "dropout_rate": 0.2,
        "session_max_len": arguments.max_history,
        "batch_size": 128,
        "lr": 1e-3,
        "loss": "softmax",
        "get_trainer_func": build_trainer,
    }
    if arguments.model == "hstu":
        model = HSTUModel(relative_time_attention=True, relative_pos_attention=True, **settings)
    else:
        model = SASRecModel(**settings)
    model.fit(Dataset.construct(table[~last]))
    print(json.dumps({"seconds_per_epoch": seconds}))


def _parse_arguments():
    parser = build_parser(__doc__)
    parser.add_argument("--model", choices=["sasrec", "hstu"], required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main()
