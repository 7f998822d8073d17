"""What is left in a process once the processes that trained with it have parted."""

import weakref
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing

from tests import tiny
from tests.training.progress import RecordingProgress
from tests.training.recipes import RUN
from training.distributed import join_group
from training.run import train

PROCESSES = 2


def train_and_leave(rank: int, directory: Path) -> None:
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as environment:
        for name, value in {"RANK": rank, "WORLD_SIZE": PROCESSES, "LOCAL_RANK": rank}.items():
            environment.setenv(name, str(value))
        environment.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")  # the store below
        environment.setenv("MASTER_ADDR", "localhost")
        environment.setenv("MASTER_PORT", (directory / "port").read_text("utf-8"))
        with join_group() as group:
            left = weakref.ref(dist.group.WORLD)
            events = tiny.gap_world(users=30, length=8)
            train(RUN, events, None, directory, progress=RecordingProgress(), group=group)
    assert left() is None


@pytest.mark.timeout(400)
def test_no_thread_of_a_group_outlives_it(tmp_path: Path) -> None:
    store = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    (tmp_path / "port").write_text(str(store.port), "utf-8")
    torch.multiprocessing.spawn(train_and_leave, (tmp_path,), nprocs=PROCESSES)
