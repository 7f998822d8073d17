"""Preparations by Ray: the bytes of the local engine, also when a node is lost."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from model.errors import EventSourceError
from tests.scale.data.tasks import RecordedTask, fail_or_wait, has_begun_on, has_ended, run_recorded
from tests.training.preparation.worlds import odd_world, prepare_into, write_parts
from training.engines import open_engine
from training.preparation import prepare as preparing
from training.preparation.events import PreparedEvents
from training.preparation.prepare import prepare


def digests(directory: Path) -> list[str]:
    return [shard.sha256 for shard in PreparedEvents.open(str(directory)).manifest.shards]


def test_a_task_of_a_lost_node_runs_on_another(
    cluster: Any, second_node: Any, tmp_path: Path
) -> None:
    lost_node = second_node.node_id
    tasks = [RecordedTask(number, tmp_path, lost_node) for number in range(8)]

    def lose_the_node() -> None:
        deadline = time.monotonic() + 60
        while not has_begun_on(lost_node, tmp_path) and time.monotonic() < deadline:
            time.sleep(0.01)
        cluster.remove_node(second_node, allow_graceful=False)

    losing = threading.Thread(target=lose_the_node)
    losing.start()
    with open_engine("ray") as engine:
        results = sorted(engine.run(run_recorded, tasks))
    losing.join()
    begun = [file.name.split() for file in tmp_path.iterdir()]
    lost = [number for number, node in begun if node == lost_node]
    assert results == list(range(8))
    assert len(lost) == 1
    assert len(begun) == 9


def test_shards_are_the_same_though_a_node_is_lost(
    cluster: Any, second_node: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "GROUP_BYTES", 0)  # one file per task
    source = write_parts(odd_world(20_000), tmp_path / "source", parts=40)
    prepare_into(source, tmp_path / "local")
    done: list[str] = []

    def lose_the_node(stage: str, _: int) -> None:
        done.append(stage)
        if len(done) == 8:
            cluster.remove_node(second_node, allow_graceful=False)

    with open_engine("ray") as engine:
        prepare(str(source), str(tmp_path / "ray"), engine, shards=5, on_task=lose_the_node)
    assert digests(tmp_path / "ray") == digests(tmp_path / "local")
    assert done == ["partition"] * 40 + ["sort"] * 5


def test_ray_stops_what_runs_after_an_error(cluster: Any, tmp_path: Path) -> None:
    with open_engine("ray") as engine:
        with pytest.raises(EventSourceError, match="this one does not"):
            list(engine.run(fail_or_wait, [None, tmp_path / "begun"]))
        # The one CPU is free before the second task would have ended.
        assert list(engine.run(has_ended, [tmp_path / "begun"])) == [False]


def test_an_invalid_event_is_named_by_ray_too(cluster: Any, tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("user_id,item_id,timestamp\nu,i,yesterday\n")
    with (
        open_engine("ray") as engine,
        pytest.raises(EventSourceError, match="line 2, column 'timestamp'"),
    ):
        prepare(str(tmp_path / "events.csv"), str(tmp_path / "prepared"), engine)
