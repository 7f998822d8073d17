"""Preparations: what is written, resumed, continued and refused."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from model.clock import now
from model.errors import EventSourceError
from tests.training.preparation.worlds import odd_world, prepare_into, write_parts
from training.data.dataset import Dataset
from training.data.sources import PREPARED_MANIFEST, STARTED, read_events
from training.engines import open_engine
from training.preparation import prepare as preparing
from training.preparation.events import PreparedEvents, is_prepared
from training.preparation.folder import Folder
from training.preparation.prepare import prepare
from training.preparation.stages import (
    BuildTask,
    BuiltShard,
    PartitionTask,
    assign_shards,
    partition,
)
from training.recommendations import MANIFEST, RecommendationManifest, Request


@pytest.fixture(autouse=True)
def _one_file_per_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparing, "GROUP_BYTES", 0)


def digests(directory: Path) -> list[str]:
    shards = PreparedEvents.open(str(directory)).manifest.shards
    return [shard.sha256 for shard in shards]


def test_events_of_a_user_are_in_one_shard_in_order(tmp_path: Path) -> None:
    events = odd_world()
    prepared = prepare_into(write_parts(events, tmp_path / "source"), tmp_path / "prepared")
    item_ids, actions = (prepared.list_texts(kind) for kind in ("item_id", "action"))
    rows = []
    for shard in prepared.shards:
        users = pl.Series(shard.list_users()).gather(shard.number_users())
        columns = (item_ids.gather(shard.items), actions.gather(shard.actions))
        rows += zip(users, shard.times.tolist(), *columns, strict=True)
    ordered = events.select("user_id", pl.col("timestamp").to_physical(), "item_id", "action")
    of_users = sorted(ordered.rows())
    assert sorted(rows) == of_users
    by_user = {user: [row for row in rows if row[0] == user] for user, *_ in of_users}
    assert [row for user in sorted(by_user) for row in by_user[user]] == of_users
    assert len(prepared.shards) == 5


def test_a_shard_may_have_no_user(tmp_path: Path) -> None:
    events = odd_world()
    of_one = events.filter(pl.col("user_id") == events["user_id"][0])
    source = write_parts(of_one, tmp_path / "source")
    with open_engine("local") as engine:
        prepare(f"{source}/*.parquet", str(tmp_path / "prepared"), engine, shards=5)
    prepared = PreparedEvents.open(str(tmp_path / "prepared"))
    assert sorted(shard.users for shard in prepared.manifest.shards) == [0, 0, 0, 0, 1]
    data = prepared.select_plausible(now()).build_dataset()
    assert np.array_equal(data.times, Dataset.of(of_one).times)


def test_items_are_counted(tmp_path: Path) -> None:
    events = odd_world()
    prepared = prepare_into(write_parts(events, tmp_path / "source"), tmp_path / "prepared")
    counted = prepared.vocabulary.filter(pl.col("kind") == "item_id").select("text", "events")
    expected = events.group_by("item_id", maintain_order=True).len()
    assert counted.rows() == expected.rows()


def test_shards_have_users_in_like_numbers() -> None:
    for shards in (16, 50):
        numbers = assign_shards((f"{number}" for number in range(50_000)), shards)
        counts = np.bincount(numbers, minlength=shards)
        assert counts.max() < 1.2 * counts.mean()
    assert assign_shards(["customer-42", "é"], 64) == [21, 62]


def test_processes_write_the_same_bytes(tmp_path: Path) -> None:
    source = write_parts(odd_world(), tmp_path / "source", parts=4)
    prepare_into(source, tmp_path / "one")
    with open_engine("local", workers=2) as engine:
        prepare(str(source), str(tmp_path / "two"), engine, shards=5)
    assert digests(tmp_path / "two") == digests(tmp_path / "one")


def test_small_files_are_read_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_parts(odd_world(), tmp_path / "source", parts=9)
    prepare_into(source, tmp_path / "alone")
    sizes = [file.stat().st_size for file in sorted(source.iterdir())]
    monkeypatch.setattr(preparing, "GROUP_BYTES", sum(sizes[:4]))
    run: list[int] = []
    monkeypatch.setattr(
        preparing, "partition", lambda task: run.append(len(task.parts)) or partition(task)
    )
    prepare_into(source, tmp_path / "together")
    assert run[0] == 4
    assert sum(run) == 9
    assert digests(tmp_path / "together") == digests(tmp_path / "alone")


def test_an_interrupted_preparation_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_parts(odd_world(), tmp_path / "source", parts=4)
    prepare_into(source, tmp_path / "whole")
    run: list[int] = []

    def stop_at_third(task: PartitionTask) -> int:
        run.append(task.number)
        if len(run) == 3:
            raise KeyboardInterrupt
        return partition(task)

    monkeypatch.setattr(preparing, "partition", stop_at_third)
    with pytest.raises(KeyboardInterrupt):
        prepare_into(source, tmp_path / "prepared")
    with pytest.raises(EventSourceError, match="run kairos prepare"):
        PreparedEvents.open(str(tmp_path / "prepared"))
    prepare_into(source, tmp_path / "prepared")
    assert run == [0, 1, 2, 2, 3]
    assert digests(tmp_path / "prepared") == digests(tmp_path / "whole")


def test_files_that_follow_are_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = odd_world()
    source = write_parts(events[:3_000], tmp_path / "source")
    prepare_into(source, tmp_path / "grown")
    events[3_000:].write_parquet(source / "part-later.parquet")
    run: list[int] = []

    def record(task: PartitionTask) -> int:
        run.append(task.number)
        return partition(task)

    monkeypatch.setattr(preparing, "partition", record)
    grown = prepare_into(source, tmp_path / "grown")
    assert run == [3]
    prepare_into(source, tmp_path / "anew")
    assert digests(tmp_path / "grown") == digests(tmp_path / "anew")
    assert grown.manifest.events == len(events)
    names = {path.name for path in (tmp_path / "grown").iterdir()}
    assert names == {PREPARED_MANIFEST, grown.manifest.folder}


def test_a_continued_preparation_is_not_taken_for_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = odd_world()
    source = write_parts(events[:3_000], tmp_path / "source")
    prepare_into(source, tmp_path / "prepared")
    events[3_000:].write_parquet(source / "part-later.parquet")

    def stop(task: BuildTask) -> BuiltShard:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(preparing, "build_shard", stop)
        with pytest.raises(KeyboardInterrupt):
            prepare_into(source, tmp_path / "prepared")
    monkeypatch.setattr(preparing, "GROUP_BYTES", 10**9)  # all files in one task
    (tmp_path / "prepared" / PREPARED_MANIFEST).unlink()
    prepare_into(source, tmp_path / "prepared")
    prepare_into(source, tmp_path / "anew")
    assert digests(tmp_path / "prepared") == digests(tmp_path / "anew")


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    events = odd_world()
    source = write_parts(events, tmp_path / "source")
    prepare_into(source, tmp_path / "prepared")
    events[:100].write_parquet(source / "part-000.parquet")
    changed = prepare_into(source, tmp_path / "prepared")
    prepare_into(source, tmp_path / "anew")
    assert digests(tmp_path / "prepared") == digests(tmp_path / "anew")
    assert changed.manifest.events < len(events)


def test_a_partitioned_directory_is_read_whole(tmp_path: Path) -> None:
    events = odd_world()
    source = tmp_path / "source"
    for number, part in enumerate((events[:1_000], events[1_000:1_500], events[1_500:])):
        write_parts(part, source / f"month=2026-{number + 1:02}", parts=2)
    for left in ("_SUCCESS", ".part-000.parquet.crc", "_temporary/part-000.parquet"):
        (source / left).parent.mkdir(exist_ok=True)
        (source / left).write_bytes(b"unfinished")
    prepared = prepare_into(source, tmp_path / "of-directory")
    with open_engine("local") as engine:
        prepare(f"file://{source}", str(tmp_path / "of-url"), engine, shards=5)
    assert digests(tmp_path / "of-directory") == digests(tmp_path / "of-url")
    read = ["user_id", "item_id", "timestamp", "action"]
    assert prepared.read_sample(len(events)).select(read).equals(events.select(read))
    assert read_events(source).select(read).equals(events.select(read))


def test_a_directory_of_other_files_is_refused(tmp_path: Path) -> None:
    source = write_parts(odd_world(), tmp_path / "source")
    with pytest.raises(EventSourceError, match=r"holds 'part-000\.parquet'; name a new one"):
        prepare_into(source, source)
    (tmp_path / "other" / "photos").mkdir(parents=True)
    with pytest.raises(EventSourceError, match="holds 'photos'; name a new one"):
        prepare_into(source, tmp_path / "other")


def test_only_prepared_events_are_taken_for_such(tmp_path: Path) -> None:
    events = odd_world(300)
    source = write_parts(events, tmp_path / "source")
    (source / "manifest.json").write_text('{"format": "of another program"}')
    assert not is_prepared(str(source))
    assert len(read_events(source)) == len(events)
    directory = tmp_path / "prepared"
    prepare_into(source, directory)
    assert is_prepared(str(directory))
    with pytest.raises(EventSourceError, match="give it to kairos train"):
        read_events(directory)


def test_an_invalid_event_is_named_by_file_and_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("training.data.sources.CHUNK_ROWS", 50)
    file = tmp_path / "events.parquet"
    events = pl.DataFrame({"user_id": ["u"] * 99, "item_id": ["i"] * 99, "timestamp": [10**9] * 99})
    events.with_columns(
        timestamp=pl.when(pl.int_range(99) == 70).then(None).otherwise("timestamp")
    ).write_parquet(file)
    with pytest.raises(EventSourceError, match=r"events\.parquet, row 71, column 'timestamp'"):
        prepare_into(file, tmp_path / "prepared")
    assert not (tmp_path / "prepared" / PREPARED_MANIFEST).exists()


def test_a_file_of_each_kind_is_read(tmp_path: Path) -> None:
    events = odd_world(300, 9).with_columns(pl.col("timestamp").dt.strftime("%+"))
    events.write_csv(tmp_path / "events.csv")
    events.write_ndjson(tmp_path / "events.jsonl")
    events.write_parquet(tmp_path / "events.parquet")
    for suffix in ("csv", "jsonl", "parquet"):
        prepare_into(tmp_path / f"events.{suffix}", tmp_path / suffix)
    assert digests(tmp_path / "csv") == digests(tmp_path / "jsonl") == digests(tmp_path / "parquet")


def test_what_was_written_below_the_source_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = odd_world(300)
    source = write_parts(events, tmp_path / "source")

    def stop(task: BuildTask) -> BuiltShard:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(preparing, "build_shard", stop)
        with pytest.raises(KeyboardInterrupt):
            prepare_into(source, source / "interrupted")
    prepare_into(source, source / "deep" / "prepared")
    request = Request(model_version="m", query_time=1)
    answers = RecommendationManifest(request=request, users=1, files=("00000.parquet",))
    for name, marker in {MANIFEST: answers, STARTED: request}.items():
        write_parts(events[:9], source / name[:4], parts=1)
        (source / name[:4] / name).write_text(marker.model_dump_json(indent=2))
    write_parts(events[:9], source / "later", parts=1)
    (source / "later" / MANIFEST).write_text('{"format": "of another program"}')
    for place in (f"{source}", f"{source}/**/*.parquet"):
        assert len(read_events(place)) == len(events) + 9
        with open_engine("local") as engine:
            url = f"file://{place}"
            prepared = prepare(url, str(tmp_path / f"{len(place)}"), engine, shards=2)
        assert prepared.events == len(events) + 9
    assert prepare_into(source, source / "interrupted").manifest.events == len(events) + 9


def test_what_a_killed_preparation_left_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_parts(odd_world(300), tmp_path / "source")
    (tmp_path / "prepared" / ("0" * 16)).mkdir(parents=True)

    def stop(folder: Folder, name: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "remove", stop)
        with pytest.raises(KeyboardInterrupt):
            prepare_into(source, tmp_path / "prepared")
    prepared = prepare_into(source, tmp_path / "prepared")
    names = {path.name for path in (tmp_path / "prepared").iterdir()}
    assert names == {PREPARED_MANIFEST, prepared.manifest.folder}
    written = (tmp_path / "prepared" / prepared.manifest.folder).iterdir()
    assert all(path.is_file() for path in written)
