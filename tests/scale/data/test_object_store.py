"""Events in an object store: read from it, prepared into it, and trained on from it."""

from pathlib import Path

import fsspec
import pytest

from model.errors import EventSourceError
from tests.training.preparation.worlds import NOW, odd_world, prepare_into, write_parts
from training.engines import open_engine
from training.preparation.events import PreparedEvents, is_prepared
from training.preparation.prepare import prepare


def test_events_are_prepared_from_and_into_s3(bucket: str, tmp_path: Path) -> None:
    folder = write_parts(odd_world(), tmp_path / "source")
    local = prepare_into(folder, tmp_path / "prepared")
    files = fsspec.filesystem("s3")
    files.put(str(folder), f"{bucket}/events", recursive=True)
    target = f"{bucket}/prepared"
    for source in (f"{bucket}/events", f"{bucket}/events/part-*.parquet"):
        with open_engine("local") as engine:
            manifest = prepare(source, target, engine, shards=5)
        assert [shard.sha256 for shard in manifest.shards] == [
            shard.sha256 for shard in local.manifest.shards
        ]
    assert is_prepared(target)
    names = {name.removeprefix(f"{bucket.removeprefix('s3://')}/") for name in files.find(target)}
    folder_of_shards = manifest.folder
    shards = {f"prepared/{folder_of_shards}/{number:05}.safetensors" for number in range(5)}
    assert names == shards | {
        f"prepared/{folder_of_shards}/vocabulary.parquet",
        "prepared/manifest.json",
    }
    remote = PreparedEvents.open(target).select_plausible(NOW).build_dataset()
    expected = local.select_plausible(NOW).build_dataset()
    assert remote.user_ids == expected.user_ids
    assert remote.rows.tolist() == expected.rows.tolist()
    assert remote.times.tolist() == expected.times.tolist()


def test_an_empty_url_is_refused(bucket: str, tmp_path: Path) -> None:
    with (
        open_engine("local") as engine,
        pytest.raises(EventSourceError, match="is none; check the URL"),
    ):
        prepare(f"{bucket}/nothing", str(tmp_path / "prepared"), engine)
