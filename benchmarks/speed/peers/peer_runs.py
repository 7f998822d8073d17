"""What the scripts of the peers share; it imports nothing of theirs."""
# mypy: ignore-errors

import argparse
import time

TRAINER_SETTINGS = {
    "accelerator": "cpu",
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "enable_checkpointing": False,
    "logger": False,
}
"""Of the peers' trainers: nothing is written, and no device is chosen."""


def build_parser(description):
    """Build the parser of the settings that all networks have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("events")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--heads", type=int, default=1)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--max-history", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1)
    return parser


def record_epochs(callback):
    """Build a callback of a trainer, and the list of the seconds of every epoch that it fills.

    Args:
        callback: the class of callbacks that the peer's trainer takes.
    """
    seconds = []

    class EpochSeconds(callback):
        """Records the seconds of each epoch, also if the trainer copies it."""

        def on_train_epoch_start(self, *_):
            """Start the clock."""
            self._began = time.perf_counter()

        def on_train_epoch_end(self, *_):
            """Stop the clock."""
            seconds.append(time.perf_counter() - self._began)

    return EpochSeconds(), seconds
