"""The counts of events that a wide part reads, as a safetensors file."""

from pathlib import Path

import numpy as np
import safetensors.numpy
import torch
from safetensors import SafetensorError

from model.errors import BundleError
from model.followers import Followers
from model.popularity import Popularity
from model.popularity_table import PopularityTable
from model.wide import EventCounts


def write_event_counts(counts: EventCounts, file: Path) -> None:
    """Write the counts per item and span of time, and the followers of every item."""
    popularity, followers = counts.popularity.popularity, counts.followers
    span = [popularity.first_at, popularity.end_at, popularity.width, popularity.rows]
    safetensors.numpy.save_file(
        {
            "popularity.span": np.array(span, dtype=np.int64),
            "popularity.spans": popularity.spans,
            "popularity.items": popularity.items,
            "popularity.counts": popularity.counts,
            "followers.rows": followers.rows[0].int().numpy(),
            "followers.log_shares": followers.log_shares[0].contiguous().numpy(),
            "followers.log_counts": followers.log_counts[0].contiguous().numpy(),
        },
        file,
    )


def read_event_counts(content: bytes) -> EventCounts:
    """Read counts from a file written by `write_event_counts`.

    Raises:
        BundleError: if the file does not hold them.
    """
    try:
        held = safetensors.numpy.load(content)
        first_at, end_at, width, rows = held["popularity.span"].tolist()
        popularity = Popularity(
            first_at=first_at,
            end_at=end_at,
            width=width,
            rows=rows,
            spans=held["popularity.spans"],
            items=held["popularity.items"],
            counts=held["popularity.counts"],
        )
        followers = Followers(
            torch.from_numpy(held["followers.rows"]).long()[None],
            torch.from_numpy(held["followers.log_shares"])[None],
            torch.from_numpy(held["followers.log_counts"])[None],
        )
    except (SafetensorError, KeyError, ValueError) as error:
        raise BundleError(
            "a file of event counts must hold popularity and followers, but this one does not "
            f"({error}); publish again"
        ) from error
    return EventCounts(PopularityTable(popularity), followers)
