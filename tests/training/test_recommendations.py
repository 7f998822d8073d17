"""Recommendations for everyone: what the directory of their files may hold, and when it is kept."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from model.errors import EventSourceError
from model.inference.predictor import Predictor
from model.store.opening import open_predictor
from tests import tiny
from tests.training.preparation.worlds import prepare_into
from training.engines import open_engine
from training.preparation.events import PreparedEvents
from training.preparation.folder import Folder
from training.recommendations import MANIFEST, Request, recommend_everyone


@dataclass(frozen=True)
class TinyModel:
    bundle: Path

    def __call__(self) -> Predictor:
        return open_predictor(self.bundle)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    return TinyModel(tiny.write_bundle(tmp_path_factory.mktemp("bundles")))


@pytest.fixture
def events(tmp_path: Path) -> PreparedEvents:
    file = tmp_path / "events.parquet"
    tiny.gap_world(users=12, length=4).write_parquet(file)
    return prepare_into(file, tmp_path / "prepared", shards=3)


def recommend(model: TinyModel, events: PreparedEvents, output: Path) -> dict[str, int]:
    request = Request(model_version="tiny", query_time=tiny.LAST_AT, n=3)
    with open_engine("local") as engine:
        recommend_everyone(model, request, events, Folder(str(output)), engine)
    return {file.name: file.stat().st_mtime_ns for file in output.glob("*.parquet")}


@pytest.mark.parametrize("name", ["notes.txt", "events.parquet", "00000.parquet", MANIFEST])
def test_a_directory_of_other_files_is_refused(
    model: TinyModel, events: PreparedEvents, tmp_path: Path, name: str
) -> None:
    output = tmp_path / "top"
    output.mkdir()
    (output / name).write_text("mine")
    with pytest.raises(EventSourceError, match=f"holds '{name}'; name a new one"):
        recommend(model, events, output)
    assert {file.name: file.read_text() for file in output.iterdir()} == {name: "mine"}


def test_the_directory_of_the_events_is_refused(model: TinyModel, events: PreparedEvents) -> None:
    with pytest.raises(EventSourceError, match=r"holds 'manifest\.json'; name a new one"):
        recommend(model, events, Path(events.folder.location))
    assert PreparedEvents.open(events.folder.location).manifest == events.manifest


def test_files_of_more_shards_are_removed(
    model: TinyModel, events: PreparedEvents, tmp_path: Path
) -> None:
    output = tmp_path / "top"
    recommend(model, events, output)
    fewer = prepare_into(tmp_path / "events.parquet", tmp_path / "fewer", shards=2)
    assert {*recommend(model, fewer, output)} == {"00000.parquet", "00001.parquet"}
    assert len(pl.read_parquet(output / "*.parquet")) == 12


def test_files_of_events_of_other_items_are_replaced(
    model: TinyModel, events: PreparedEvents, tmp_path: Path
) -> None:
    table = pl.read_parquet(tmp_path / "events.parquet")
    ids = table["item_id"].unique().sort()
    renamed = table.with_columns(pl.col("item_id").replace_strict(ids, ids.reverse()))
    renamed.write_parquet(tmp_path / "renamed.parquet")
    others = prepare_into(tmp_path / "renamed.parquet", tmp_path / "others", shards=3)
    digests = [[shard.sha256 for shard in of.manifest.shards] for of in (events, others)]
    assert digests[0] == digests[1]
    recommend(model, events, tmp_path / "top")
    first = pl.read_parquet(tmp_path / "top" / "*.parquet")
    for output in ("top", "anew"):
        recommend(model, others, tmp_path / output)
    found, expected = (pl.read_parquet(tmp_path / name / "*.parquet") for name in ("top", "anew"))
    assert found.equals(expected)
    assert not found.equals(first)
