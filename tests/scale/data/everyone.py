"""A tiny model for users of prepared events, and a process that is killed while it recommends."""

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from model.inference.predictor import Predictor
from model.store.opening import open_predictor
from tests import tiny
from tests.training.preparation.worlds import prepare_into
from training.engines import EngineName, open_engine
from training.preparation.events import PreparedEvents
from training.preparation.folder import Folder
from training.recommendations import Request, recommend_everyone

USERS = 400
SHARDS = 20
KILLED_AFTER = 9


@dataclass(frozen=True)
class TinyModel:
    """A bundle of 24 items in a directory."""

    bundle: Path

    def __call__(self) -> Predictor:
        return open_predictor(self.bundle)


def prepare_users(folder: Path) -> PreparedEvents:
    """Prepare events of 400 users in 20 shards."""
    file = folder / "events.parquet"
    tiny.gap_world(users=USERS, length=5).write_parquet(file)
    return prepare_into(file, folder / "prepared", shards=SHARDS)


def recommend(
    model: TinyModel,
    events: PreparedEvents,
    output: Path,
    engine: EngineName,
    on_task: Callable[[str, int], None] = lambda _, __: None,
) -> pl.DataFrame:
    """Recommend five items to each user."""
    request = Request(model_version=model.bundle.name, query_time=tiny.LAST_AT, n=5)
    with open_engine(engine) as mapper:
        recommend_everyone(model, request, events, Folder(str(output)), mapper, on_task=on_task)
    return pl.read_parquet(output / "*.parquet")


def recommend_until_killed(bundle: str, prepared: str, output: str) -> None:
    """Recommend, and kill this process once nine shards are done."""
    done: list[str] = []

    def kill(stage: str, _: int) -> None:
        done.append(stage)
        if len(done) == KILLED_AFTER:
            os.kill(os.getpid(), signal.SIGKILL)

    recommend(TinyModel(Path(bundle)), PreparedEvents.open(prepared), Path(output), "local", kill)
