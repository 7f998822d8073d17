from collections.abc import Callable
from pathlib import Path

import pytest
import torch.distributed as dist

from model.errors import KairosError, TrainingError
from tests import tiny
from tests.training.progress import RecordingProgress
from tests.training.recipes import RUN
from training.distributed import ALONE, ProcessGroup, join_group
from training.run import train

LEADER = ProcessGroup(rank=0, size=2)


def test_processes_with_other_events_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gather(values: list[object], own: object) -> None:
        values[:] = [own, "that of other events"]

    monkeypatch.setattr(dist, "all_gather_object", gather)
    events = tiny.gap_world(users=30, length=8)
    with pytest.raises(TrainingError, match="have the same recipe and events, but theirs are"):
        train(RUN, events, None, tmp_path, progress=RecordingProgress(), group=LEADER)


@pytest.mark.parametrize("error", [OSError("no space left"), KairosError("must be finite")])
def test_an_error_of_the_leader_is_that_of_all(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    sent: list[object] = []
    monkeypatch.setattr(dist, "broadcast_object_list", sent.extend)

    def fail() -> None:
        raise error

    with pytest.raises(type(error), match=str(error)):
        LEADER.run_on_leader(fail)
    monkeypatch.setattr(dist, "broadcast_object_list", _receive(sent))
    with pytest.raises(type(error), match=str(error)):
        ProcessGroup(rank=1, size=2).run_on_leader(fail)


def _receive(sent: list[object]) -> Callable[[list[object]], None]:
    def receive(objects: list[object]) -> None:
        objects[:] = sent

    return receive


def test_without_a_launcher_a_process_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with join_group() as group:
        assert group == ALONE
        assert group.is_leader
        assert group.run_on_leader(lambda: 5) == 5


def test_a_single_process_of_a_launcher_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "1")
    with join_group() as group:
        assert group == ALONE


def test_restarts_on_several_machines_need_new_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    torchrun = {
        **{"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"},
        **{"GROUP_WORLD_SIZE": "2", "TORCHELASTIC_MAX_RESTARTS": "3"},
    }
    for name, value in torchrun.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", raising=False)
    with pytest.raises(KairosError, match="set it to 1 where torchrun is started"), join_group():
        pass
