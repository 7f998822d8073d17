"""Recommendations for every user of prepared events, one file per shard.

Each user's answer is that of `Predictor.recommend`, by itself: in a batch, sums would be added in
another order, and their last bits would differ from the service's answers.
"""

import hashlib
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol, final

import numpy as np
import polars as pl
import torch
from pydantic import ValidationError

from model.config import Config
from model.errors import EventSourceError
from model.history import Query
from model.inference.answers import Constraints, Recommendation
from model.inference.predictor import Predictor
from training.data.columns import EVENT_SCHEMA
from training.data.erasures import Erasures
from training.data.sources import RECOMMENDATIONS_FORMAT, STARTED
from training.engines import Engine
from training.preparation.events import PreparedEvents, find_not_erased, list_history
from training.preparation.folder import Folder

ANSWERS = pl.Schema(
    {
        "user_id": pl.String(),
        "item_ids": pl.List(pl.String()),
        "scores": pl.List(pl.Float32()),
        "reasons": pl.List(pl.String()),
        "model_version": pl.String(),
        "query_time": EVENT_SCHEMA["timestamp"],
    }
)
"""One row per user; its lists are of equal length, the best item first."""

MANIFEST = "manifest.json"
_IDENTITY = "kairos"
_ANSWERS_FILE = re.compile(r"\d{5,}\.parquet")


class OpenModel(Protocol):
    """Opens the model in the process that calls it; a value that can be pickled and hashed."""

    def __call__(self) -> Predictor:
        """Open the model."""
        ...

    def __hash__(self) -> int:
        """Return equal hashes for equal models."""
        ...


@final
class Request(Config):
    """What is asked for every user.

    Attributes:
        model_version: of the bundle.
        query_time: epoch microseconds.
        n: items per user.
        erasures: identifies the erased users that are left out; empty without any.
    """

    format: str = f"{RECOMMENDATIONS_FORMAT}1"
    model_version: str
    query_time: int
    n: int = 10
    exclude_seen: bool = True
    erasures: str = ""


@final
class RecommendationManifest(Config):
    """The contents of a directory of recommendations; written last, so one with it is complete."""

    request: Request
    users: int
    files: tuple[str, ...]


@final
@dataclass(frozen=True)
class ShardTask:
    """Recommend to the users of one shard."""

    open_model: OpenModel
    request: Request
    events: PreparedEvents
    shard: int
    erasures: Erasures | None
    output: Folder
    name: str
    identity: str


def recommend_everyone(
    open_model: OpenModel,
    request: Request,
    events: PreparedEvents,
    output: Folder,
    engine: Engine,
    *,
    erasures: Erasures | None = None,
    on_task: Callable[[str, int], None] = lambda _, __: None,
) -> RecommendationManifest:
    """Recommend to every user, into a directory with a Parquet file per shard.

    A file is complete or not there. Those that an earlier call has written of the same events,
    model and request are kept.

    Args:
        on_task: called when a task is done, with the name of its stage and the number of its tasks.

    Raises:
        EventSourceError: if the events cannot be read, the files do not hold one row per user, or
            the directory holds other files.
    """
    require_own(output)
    # In this order: a directory always says that its files are recommendations.
    output.write(STARTED, request.model_dump_json().encode())
    output.remove(MANIFEST)
    tasks = [
        ShardTask(
            open_model=open_model,
            request=request,
            events=events,
            shard=number,
            erasures=erasures,
            output=output,
            name=f"{number:05}.parquet",
            identity=_identify(request, entry.sha256, events.manifest.vocabulary_sha256),
        )
        for number, entry in enumerate(events.manifest.shards)
    ]
    kept = {*output.names()}
    missing = [
        task
        for task in tasks
        if task.name not in kept or _read_identity(output, task.name) != task.identity
    ]
    for _ in engine.run(recommend_shard, missing):
        on_task("recommend", len(missing))
    names = tuple(task.name for task in tasks)
    for name in kept - {*names}:
        if _ANSWERS_FILE.fullmatch(name):
            output.remove(name)
    users = sum(_count_rows(output, name) for name in names)
    if erasures is None and users != events.manifest.users:
        raise EventSourceError(
            f"every user gets one row, but {users:,} rows are of {events.manifest.users:,} users; "
            f"remove {output.location} and run again"
        )
    manifest = RecommendationManifest(request=request, users=users, files=names)
    output.write(MANIFEST, manifest.model_dump_json(indent=2).encode() + b"\n")
    output.remove(STARTED)
    output.remove_partial()
    return manifest


def read_interrupted(output: Folder) -> Request | None:
    """Read the request of an earlier call that did not end; None if there is none."""
    if not output.has(STARTED):
        return None
    try:
        return Request.model_validate_json(output.read(STARTED))
    except ValidationError:
        return None


def require_own(output: Folder) -> None:
    """Refuse a directory that holds anything but recommendations.

    Raises:
        EventSourceError: if it does.
    """
    names = output.names()
    foreign = [
        name for name in names if not (_ANSWERS_FILE.fullmatch(name) or name in (MANIFEST, STARTED))
    ]
    if not foreign and not _holds_recommendations(output):
        foreign = names
    if foreign:
        raise EventSourceError(
            "recommendations are written into a directory of their own, but "
            f"{output.location} holds {foreign[0]!r}; name a new one"
        )


def _holds_recommendations(output: Folder) -> bool:
    if not output.has(MANIFEST):
        return read_interrupted(output) is not None
    try:
        RecommendationManifest.model_validate_json(output.read(MANIFEST))
    except ValidationError:
        return False
    return True


def _identify(request: Request, shard: str, vocabulary: str) -> str:
    # A shard holds numbers of items, and the vocabulary their ids.
    content = f"{request.model_dump_json()}\n{shard}\n{vocabulary}"
    return hashlib.sha256(content.encode()).hexdigest()


def _read_identity(output: Folder, name: str) -> str | None:
    return pl.read_parquet_metadata(_open_file(output, name)).get(_IDENTITY)


def _count_rows(output: Folder, name: str) -> int:
    rows = pl.scan_parquet(_open_file(output, name), glob=False).select(pl.len())
    return int(rows.collect().item())


def _open_file(output: Folder, name: str) -> Path | io.BytesIO:
    path = output.path(name)
    return io.BytesIO(output.read(name)) if path is None else path


def recommend_shard(task: ShardTask) -> int:
    """Recommend to the users of one shard, into its file; return their number."""
    torch.set_num_threads(1)
    table = build_answers(_open_once(task.open_model), task)
    buffer = io.BytesIO()
    table.write_parquet(buffer, metadata={_IDENTITY: task.identity})
    task.output.write(task.name, buffer.getvalue())
    return len(table)


@cache
def _open_once(open_model: OpenModel) -> Predictor:
    return open_model()


def build_answers(predictor: Predictor, task: ShardTask) -> pl.DataFrame:
    """Build the table of a shard, in `ANSWERS`."""
    request = task.request
    answers = list(_answer_users(predictor, task))
    table = pl.DataFrame(
        {
            "user_id": [user_id for user_id, _ in answers],
            "item_ids": [[item.item_id for item in answer.items] for _, answer in answers],
            "scores": [[item.score for item in answer.items] for _, answer in answers],
            "reasons": [[item.reason for item in answer.items] for _, answer in answers],
        },
        schema={name: ANSWERS[name] for name in ("user_id", "item_ids", "scores", "reasons")},
    )
    return table.with_columns(
        pl.lit(request.model_version).alias("model_version"),
        pl.lit(request.query_time).cast(ANSWERS["query_time"]).alias("query_time"),
    )


def _answer_users(predictor: Predictor, task: ShardTask) -> Iterator[tuple[str, Recommendation]]:
    request = task.request
    constraints = Constraints(n=request.n, exclude_seen=request.exclude_seen)
    shard = task.events.open_shard(task.shard)
    item_ids = task.events.list_texts("item_id").to_list()
    actions = task.events.list_texts("action").to_list()
    remains = find_not_erased(shard, task.erasures)
    has_events = np.logical_or.reduceat(remains, shard.offsets[:-1]) if shard.users else remains
    for user, user_id in enumerate(shard.list_users()):
        if not has_events[user]:
            continue
        history = list_history(shard, user, item_ids, actions, remains)
        query = Query.as_of(history, request.query_time, user_id=user_id)
        yield user_id, predictor.recommend(query, constraints)
