"""The two stages of a preparation, each a function of one task.

`partition` divides some parts of the source into pieces, one per shard; `build_shard` sorts the
pieces of one shard. A task that runs again writes the same files.
"""

import hashlib
import io
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
import polars as pl

from model.errors import EventSourceError
from training.data.database_source import stream_event_range
from training.data.sources import CHUNK_ROWS, stream_file_events
from training.preparation.folder import Folder, fetch
from training.preparation.manifest import Part, ShardEntry
from training.preparation.shard import Shard

_ROWS_OF_FILE = 40
"""Bits of a position that number the rows of a file; those above number the files."""

VOCABULARY = "vocabulary.parquet"
"""The items and actions of all parts, with the numbers of their events."""

SHARD_KIND = "shard"
"""The kind of those rows of a task's vocabulary that count its events by shard."""

_VOCABULARY = pl.Schema(
    {"kind": pl.String(), "text": pl.String(), "events": pl.Int64(), "first": pl.Int64()}
)
_COMPACT = pl.Schema(
    {
        "user_id": pl.String(),
        "item": pl.Int32(),
        "at": pl.Int64(),
        "action": pl.Int16(),
        "position": pl.Int64(),
    }
)


class LostEventsError(EventSourceError):
    """Files that a stage has written are not there, or no longer whole, in a later one."""


@final
@dataclass(frozen=True)
class PartitionTask:
    """Divide some parts of the source.

    Attributes:
        address: of the database; None where the parts are files.
        parts: with their numbers in the plan, ascending.
        target: the folder of the preparation.
    """

    address: str | None
    parts: tuple[tuple[int, Part], ...]
    shards: int
    target: Folder

    @property
    def number(self) -> int:
        """The number of the first part, which names what the task writes."""
        return self.parts[0][0]


@final
@dataclass(frozen=True)
class BuildTask:
    """Build one shard of its pieces.

    Attributes:
        number: of the shard.
        target: the folder of the preparation.
        name: of that folder, in the directory of prepared events.
        events: how many the shard must have.
        earlier: the directory of an earlier preparation, which this one continues, and its shard.
    """

    number: int
    target: Folder
    name: str
    events: int
    earlier: tuple[Folder, ShardEntry] | None


@final
@dataclass(frozen=True)
class BuiltShard:
    """A shard as it was written; the instants are None without events."""

    entry: ShardEntry
    first_at: int | None
    last_at: int | None


def assign_shards(user_ids: Iterable[str], shards: int) -> list[int]:
    """Assign users to shards by their ids; the same everywhere and in every version."""
    return [zlib.crc32(user_id.encode()) % shards for user_id in user_ids]


def name_vocabulary(number: int) -> str:
    """Return the name of the vocabulary of a task; it is written last, after the pieces."""
    return f"parts/{number:06}.parquet"


def partition(task: PartitionTask) -> int:
    """Divide some parts of the source into pieces; return the number of their events.

    Raises:
        EventSourceError: if an event is invalid; the message names the file, row and column.
    """
    vocabulary = _VOCABULARY.to_frame()
    events = 0
    for chunk, frame in enumerate(_join_chunks(_stream_parts(task))):
        events += len(frame)
        counted = [*_count_texts(frame)]
        for number, piece in _divide(frame, task.shards):
            counted.append(_count_shard(number, piece))
            name = f"pieces/{number:05}/{task.number:06}-{chunk:06}.parquet"
            task.target.write(name, encode_table(piece), lasting=False)
        vocabulary = merge_vocabularies([vocabulary, *counted])
    task.target.write(name_vocabulary(task.number), encode_table(vocabulary), lasting=False)
    return events


def _join_chunks(frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Join frames until they have as many rows as one that is read at a time."""
    waiting: list[pl.DataFrame] = []
    for frame in frames:
        waiting.append(frame)
        if sum(map(len, waiting)) >= CHUNK_ROWS:
            yield pl.concat(waiting)
            waiting.clear()
    if waiting:
        yield pl.concat(waiting)


def _stream_parts(task: PartitionTask) -> Iterator[pl.DataFrame]:
    """Yield the events of the parts with their positions in the source."""
    for number, part in task.parts:
        if task.address is not None:
            for events in stream_event_range(task.address, part.after, part.last):
                yield _select_columns(events)
            continue
        with fetch(part.name) as file:
            begin = number << _ROWS_OF_FILE
            for events in stream_file_events(file, part.name):
                end = begin + len(events)
                position = pl.int_range(begin, end, dtype=pl.Int64).alias("position")
                yield _select_columns(events.with_columns(position))
                begin = end


def _select_columns(events: pl.DataFrame) -> pl.DataFrame:
    at = pl.col("timestamp").to_physical().alias("at")
    return events.select("user_id", "item_id", at, "action", "position")


def _count_texts(events: pl.DataFrame) -> Iterator[pl.DataFrame]:
    for kind in ("item_id", "action"):
        counted = events.group_by(kind).agg(
            events=pl.len().cast(pl.Int64), first=pl.col("position").min()
        )
        yield counted.select(pl.lit(kind).alias("kind"), text=kind, events="events", first="first")


def _count_shard(number: int, piece: pl.DataFrame) -> pl.DataFrame:
    row = (SHARD_KIND, str(number), len(piece), piece["position"].min())
    return pl.DataFrame([row], _VOCABULARY, orient="row")


def merge_vocabularies(vocabularies: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Add up the counts of items and actions, in the order of their first events."""
    return (
        pl.concat([_VOCABULARY.to_frame(), *vocabularies])
        .group_by("kind", "text")
        .agg(pl.col("events").sum(), pl.col("first").min())
        .sort("kind", "first", "text")
    )


def _divide(events: pl.DataFrame, shards: int) -> Iterator[tuple[int, pl.DataFrame]]:
    users = events["user_id"].unique()
    numbers = pl.Series(assign_shards(users, shards), dtype=pl.Int32)
    number = pl.col("user_id").replace_strict(users, numbers, return_dtype=pl.Int32)
    parts = events.with_columns(shard=number).partition_by(
        "shard", as_dict=True, include_key=False, maintain_order=True
    )
    for (shard,), piece in sorted(parts.items()):
        yield int(shard), piece


def build_shard(task: BuildTask) -> BuiltShard:
    """Sort the events of a shard by user, and write it.

    Raises:
        LostEventsError: if there are fewer or more events than the tasks before have counted.
    """
    events = _COMPACT.to_frame()
    if task.earlier is not None:
        folder, known = task.earlier
        events = _unpack(Shard.open(folder, known.name, known.sha256))
    pieces = [
        read_written(task.target, f"pieces/{task.number:05}/{name}")
        for name in task.target.names(f"pieces/{task.number:05}")
    ]
    found = len(events) + sum(map(len, pieces))
    if found != task.events:
        raise LostEventsError(
            f"a shard holds every event of its users, but {found:,} of the {task.events:,} events "
            f"of shard {task.number} are in {task.target.location}; {_RUN_AGAIN}"
        )
    vocabulary = read_written(task.target, VOCABULARY)
    if pieces:
        events = pl.concat([events, _number_texts(pl.concat(pieces), vocabulary)])
    shard = _sort(events, vocabulary)
    content = shard.encode()
    name = f"{task.number:05}.safetensors"
    task.target.write(name, content)
    entry = ShardEntry(
        name=f"{task.name}/{name}",
        sha256=hashlib.sha256(content).hexdigest(),
        events=len(shard),
        users=shard.users,
    )
    if not len(shard):
        return BuiltShard(entry, None, None)
    return BuiltShard(entry, int(shard.times.min()), int(shard.times.max()))


def index_texts(vocabulary: pl.DataFrame, kind: str) -> pl.DataFrame:
    """Return the numbers of items or actions in a vocabulary, and their ranks by code point.

    Returns:
        Columns `text`, `number` and `rank`.
    """
    texts = vocabulary.filter(pl.col("kind") == kind)["text"]
    order = texts.arg_sort().to_numpy()
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return pl.DataFrame({"text": texts, "number": np.arange(len(texts)), "rank": rank})


def _number_texts(piece: pl.DataFrame, vocabulary: pl.DataFrame) -> pl.DataFrame:
    columns = {"item_id": "item", "action": "action"}
    for name, numbered in columns.items():
        index = index_texts(vocabulary, name)
        number = pl.col(name).replace_strict(
            index["text"], index["number"], return_dtype=_COMPACT[numbered]
        )
        piece = piece.with_columns(number.alias(numbered))
    return piece.select(_COMPACT.names())


def _unpack(shard: Shard) -> pl.DataFrame:
    users = pl.Series(shard.list_users(), dtype=pl.String)
    return pl.DataFrame(
        [
            users.gather(shard.number_users()).alias("user_id"),
            pl.Series("item", shard.items),
            pl.Series("at", shard.times),
            pl.Series("action", shard.actions),
            pl.Series("position", shard.positions),
        ],
        schema=_COMPACT,
    )


def _sort(events: pl.DataFrame, vocabulary: pl.DataFrame) -> Shard:
    """Sort events by user, instant, item and action; by code point, as `sort_events` does."""
    firsts = events.group_by("user_id").agg(pl.col("position").min()).sort("position")["user_id"]
    user = pl.col("user_id").replace_strict(
        firsts, pl.int_range(len(firsts), eager=True), return_dtype=pl.Int64
    )
    ranks = {
        name: index_texts(vocabulary, kind)["rank"]
        for name, kind in {"item": "item_id", "action": "action"}.items()
    }
    ordered = (
        events.with_columns(user=user)
        .drop("user_id")
        .with_columns(
            item_rank=ranks["item"].gather(events["item"]),
            action_rank=ranks["action"].gather(events["action"]),
        )
        .sort("user", "at", "item_rank", "action_rank", "position")
    )
    # Without events, of a shard that no user is in, the column holds no numbers.
    users = ordered["user"].to_numpy().astype(np.int64)
    counts = np.bincount(users, minlength=len(firsts))
    texts = firsts.to_list()
    lengths = np.array([0, *(len(text.encode()) for text in texts)], dtype=np.int64)
    return Shard(
        items=ordered["item"].to_numpy(),
        times=ordered["at"].to_numpy(),
        actions=ordered["action"].to_numpy(),
        positions=ordered["position"].to_numpy(),
        offsets=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        names=np.frombuffer("".join(texts).encode(), dtype=np.uint8),
        name_offsets=np.cumsum(lengths),
    )


_RUN_AGAIN = "run kairos prepare again, and no other one into the same directory meanwhile"


def read_written(folder: Folder, name: str) -> pl.DataFrame:
    """Read a table that an earlier stage has written.

    Raises:
        LostEventsError: if it is not there, or not whole: another preparation has removed it, or
            the machine lost power before its disk had it.
    """
    try:
        return decode_table(folder.read(name))
    except (FileNotFoundError, pl.exceptions.PolarsError) as error:
        raise LostEventsError(
            "the stages of a preparation read what those before have written, but "
            f"{folder.location}/{name} is not there or not whole; {_RUN_AGAIN}"
        ) from error


def encode_table(table: pl.DataFrame) -> bytes:
    """Encode a table as Parquet."""
    buffer = io.BytesIO()
    table.write_parquet(buffer, compression="zstd", compression_level=1, statistics=False)
    return buffer.getvalue()


def decode_table(content: bytes) -> pl.DataFrame:
    """Decode a table from Parquet."""
    return pl.read_parquet(io.BytesIO(content))
