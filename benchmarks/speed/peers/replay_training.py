"""Seconds per epoch of RePlay's SASRec with a full softmax; see README.md for its environment."""

import json
import logging
import warnings

import lightning
import pandas as pd
import torch
from peer_runs import TRAINER_SETTINGS, build_parser, record_epochs
from replay.data import (
    Dataset,
    FeatureHint,
    FeatureInfo,
    FeatureSchema,
    FeatureSource,
    FeatureType,
)
from replay.data.nn import (
    SequenceTokenizer,
    TensorFeatureInfo,
    TensorFeatureSource,
    TensorSchema,
)
from replay.models.nn.optimizer_utils import FatOptimizerFactory
from replay.models.nn.sequential import SasRec
from replay.models.nn.sequential.sasrec import SasRecTrainingDataset


def main():
    """Train, and print the seconds of every epoch."""
    arguments = build_parser(__doc__).parse_args()
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    torch.set_num_threads(arguments.threads)
    lightning.seed_everything(1)
    events = pd.read_csv(arguments.events, sep="\t")[["user", "item", "timestamp"]]
    last = events.groupby("user").cumcount(ascending=False) == 0
    _, sequences = tokenize(events[~last])
    items = sequences.schema.item_id_features.item().cardinality
    model = SasRec(
        sequences.schema,
        block_count=2,
        head_count=arguments.heads,
        hidden_size=arguments.dim,
        max_seq_len=arguments.max_history,
        dropout_rate=0.2,
        loss_type="CE",
        optimizer_factory=FatOptimizerFactory(learning_rate=1e-3),
    )
    batches = torch.utils.data.DataLoader(
        SasRecTrainingDataset(
            sequences, max_sequence_length=arguments.max_history, padding_value=items
        ),
        batch_size=128,
        shuffle=True,
    )
    clock, seconds = record_epochs(lightning.Callback)
    trainer = lightning.Trainer(
        max_epochs=arguments.epochs,
        callbacks=[clock],
        **TRAINER_SETTINGS,
    )
    trainer.fit(model, batches)
    print(json.dumps({"seconds_per_epoch": seconds}))


def tokenize(events):
    """Build the tokenizer of items, and the sequences of the events."""
    features = FeatureSchema(
        [
            FeatureInfo("user", FeatureType.CATEGORICAL, FeatureHint.QUERY_ID),
            FeatureInfo("item", FeatureType.CATEGORICAL, FeatureHint.ITEM_ID),
            FeatureInfo("timestamp", FeatureType.NUMERICAL, FeatureHint.TIMESTAMP),
        ]
    )
    schema = TensorSchema(
        [
            TensorFeatureInfo(
                "item",
                is_seq=True,
                feature_type=FeatureType.CATEGORICAL,
                feature_sources=[TensorFeatureSource(FeatureSource.INTERACTIONS, "item")],
                feature_hint=FeatureHint.ITEM_ID,
            )
        ]
    )
    tokenizer = SequenceTokenizer(schema, allow_collect_to_master=True)
    return tokenizer, tokenizer.fit_transform(Dataset(features, interactions=events))


if __name__ == "__main__":
    main()
