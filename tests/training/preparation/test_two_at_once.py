"""Preparations into one directory at the same time, and after files of a stage were lost."""

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from model.errors import EventSourceError
from tests.training.preparation.worlds import odd_world, prepare_into, write_parts
from training.engines import open_engine
from training.preparation import prepare as preparing
from training.preparation.events import PreparedEvents
from training.preparation.manifest import Manifest
from training.preparation.prepare import prepare
from training.preparation.stages import BuildTask, BuiltShard

EVENTS = odd_world(900)


@pytest.fixture(autouse=True)
def _one_file_per_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparing, "GROUP_BYTES", 0)


def run(
    source: Path, directory: str, on_task: Callable[[str, int], None] = lambda _, __: None
) -> Manifest:
    with open_engine("local") as engine:
        return prepare(str(source), directory, engine, shards=5, on_task=on_task)


def run_after(place: int, other: Callable[[], object]) -> Callable[[str, int], None]:
    """Run another preparation after so many tasks of this one."""
    done: list[str] = []

    def on_task(stage: str, _: int) -> None:
        done.append(stage)
        if len(done) == place:
            other()

    return on_task


def test_a_second_preparation_of_a_directory_is_refused(tmp_path: Path) -> None:
    source = write_parts(EVENTS, tmp_path / "source", parts=4)
    directory = str(tmp_path / "prepared")

    def refused() -> None:
        with pytest.raises(EventSourceError, match="wait until it has ended, or name another"):
            run(source, directory)

    assert run(source, directory, run_after(2, refused)).events == len(EVENTS)
    assert run(source, directory).events == len(EVENTS)


@pytest.mark.parametrize("grows", [False, True])
@pytest.mark.parametrize("place", [2, 4, 6, 9])  # of 4 parts and 5 shards
def test_two_at_once_at_a_url_lose_no_event(tmp_path: Path, place: int, grows: bool) -> None:
    source = write_parts(EVENTS, tmp_path / "source", parts=4)
    directory = f"memory://{uuid4().hex}"

    def end_first() -> None:
        if grows:
            EVENTS[:50].write_parquet(source / "part-later.parquet")
        assert run(source, directory).events == len(EVENTS) + 50 * grows

    try:
        found = run(source, directory, run_after(place, end_first)).events
    except EventSourceError as error:
        assert "again" in str(error)  # noqa: PT017 - it need not be raised
    else:
        assert (found, grows) == (len(EVENTS), False)
    manifest = run(source, directory)
    assert manifest.events == len(EVENTS) + 50 * grows
    assert sum(map(len, PreparedEvents.open(directory).shards)) == manifest.events


@pytest.mark.parametrize("kept_bytes", [None, 0, 100])
@pytest.mark.parametrize("stage", ["pieces/00001", "parts"])
def test_what_a_power_cut_took_is_read_again(
    tmp_path: Path, stage: str, kept_bytes: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_parts(EVENTS, tmp_path / "source", parts=4)
    whole = prepare_into(source, tmp_path / "whole")
    directory = tmp_path / "prepared"

    def stop(task: BuildTask) -> BuiltShard:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(preparing, "build_shard", stop)
        with pytest.raises(KeyboardInterrupt):
            run(source, str(directory))
    (file, *_) = sorted(directory.glob(f"*/{stage}/*.parquet"))
    if kept_bytes is None:
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:kept_bytes])
    try:
        run(source, str(directory))
    except EventSourceError as error:
        assert "run kairos prepare again" in str(error)  # noqa: PT017 - a lost part is read again
    else:
        assert (stage, kept_bytes) == ("parts", None)
    assert prepare_into(source, directory).manifest.shards == whole.manifest.shards
