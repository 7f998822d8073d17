"""RePlay's SASRec behind a bare FastAPI; see README.md for its environment.

RePlay predicts from rows of items: their encoding, the removal of seen items and the choice of the
best are written here, the cheapest way.
"""

import logging
import warnings

import lightning
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
from replay.models.nn.sequential import SasRec
from replay.models.nn.sequential.sasrec import SasRecTrainingDataset
from replay_training import tokenize


def main():
    """Fit for an epoch, and serve."""
    arguments = parse_arguments(__doc__)
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    events = pd.DataFrame(draw_events(arguments.items), columns=["user", "item", "timestamp"])
    tokenizer, sequences = tokenize(events)
    model = SasRec(
        sequences.schema,
        block_count=BLOCKS,
        head_count=HEADS,
        hidden_size=DIM,
        max_seq_len=MAX_HISTORY,
        loss_type="CE",
    )
    batches = torch.utils.data.DataLoader(
        SasRecTrainingDataset(
            sequences, max_sequence_length=MAX_HISTORY, padding_value=arguments.items
        ),
        batch_size=128,
    )
    trainer = lightning.Trainer(
        max_epochs=1,
        **TRAINER_SETTINGS,
    )
    trainer.fit(model, batches)
    model.eval()
    rows = tokenizer.item_id_encoder.mapping["item"]
    item_ids = {row: item_id for item_id, row in rows.items()}

    @torch.inference_mode()
    def recommend(items, _):
        history = torch.tensor([[rows[item] for item in items]])
        scores = model.predict(
            {
                "feature_tensor": {"item": history},
                "padding_mask": torch.ones_like(history, dtype=torch.bool),
            }
        )[0]
        scores[history[0]] = -torch.inf
        return [item_ids[row] for row in scores.topk(TOP_N).indices.tolist()]

    serve(recommend, arguments.port)


if __name__ == "__main__":
    main()
