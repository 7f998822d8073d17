"""The processes that train one model together: their numbers, and what they exchange.

torchrun or Ray Train starts them, and PyTorch carries what they exchange: by gloo between CPUs, by
NCCL between GPUs. A process alone exchanges nothing.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar, final

import torch
import torch.distributed as dist

# Imported before there is a group: its functions have the present one as a default, so they would
# keep it and its threads, which abort the process if they free a tensor while the interpreter ends.
import torch.distributed.nn.functional
from torch import Tensor, nn
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from model.errors import KairosError, TrainingError

Result = TypeVar("Result")

_OWN_STORE = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"
"""The setting of torchrun for a store of addresses per start; read by torch itself."""

TIMEOUT = timedelta(hours=2)
"""The longest wait for another process; all wait while the leader validates and exports."""


@final
@dataclass(frozen=True)
class ProcessGroup:
    """The processes that train one model together, as one of them sees them.

    Attributes:
        rank: the number of this process; 0 is the leader, which validates, writes and prints.
        size: the number of processes.
        local_rank: the number of this process on its machine, which is that of its GPU.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0

    @property
    def is_leader(self) -> bool:
        """Whether this process validates, writes and prints."""
        return self.rank == 0

    @property
    def is_alone(self) -> bool:
        """Whether there is no other process."""
        return self.size == 1

    def add_up(self, values: Tensor) -> Tensor:
        """Add the values of all processes, element by element; each process gets the sums."""
        if self.is_alone:
            return values
        sums = values.clone()
        dist.all_reduce(sums)
        return sums

    def run_on_leader(self, work: Callable[[], Result]) -> Result:
        """Run something on the leader only; each process returns its result.

        An error of the leader is raised by every process.
        """
        if self.is_alone:
            return work()
        outcome: list[Any] = [None, None]
        if self.is_leader:
            try:
                outcome[0] = work()
            except (KairosError, OSError) as error:
                outcome[1] = error
        dist.broadcast_object_list(outcome)
        if outcome[1] is not None:
            raise outcome[1]
        result: Result = outcome[0]
        return result

    def require_agreement(self, what: str, value: object, remedy: str) -> None:
        """Check that a value is the same in every process.

        Raises:
            TrainingError: if it is not.
        """
        if self.is_alone:
            return
        values: list[object] = [None] * self.size
        dist.all_gather_object(values, value)
        if any(other != values[0] for other in values):
            raise TrainingError(
                f"all processes of a training have the same {what}, but theirs are "
                f"{', '.join(map(str, values))}; {remedy}"
            )

    def share_gradients(self, module: nn.Module) -> nn.Module:
        """Wrap a module so that its backward pass leaves the mean gradients of all processes.

        The processes begin with the leader's weights, and take every step with its buffers, such as
        frequencies that are drawn at random.
        """
        if self.is_alone:
            return module
        # A parameter may be unused, such as that of an event time that is not weighted. PyTorch
        # warns where none is, so one is.
        module.register_parameter("unused", nn.Parameter(torch.zeros(())))
        return nn.parallel.DistributedDataParallel(
            module, find_unused_parameters=True, gradient_as_bucket_view=True
        )


ALONE = ProcessGroup()
"""A single process."""


def choose_backend(*, uses_gpus: bool) -> str:
    """Choose what carries values: those of GPUs NCCL, and everything else gloo."""
    return "cpu:gloo,cuda:nccl" if uses_gpus else "gloo"


def read_local_rank() -> int:
    """Return the number of this process on its machine, as its launcher set it; 0 without one."""
    return int(os.environ.get("LOCAL_RANK", "0"))


@contextmanager
def join_group() -> Iterator[ProcessGroup]:
    """Join the processes that the launcher of this one has started, until the end of the block.

    torchrun describes them in the environment. Ray Train has joined them already. Without a
    launcher the process is alone.

    Raises:
        KairosError: if this build of torch cannot connect processes.
    """
    if dist.is_available() and dist.is_initialized():
        yield _describe_group()
        return
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield ALONE
        return
    if not dist.is_available():
        raise KairosError(
            "training by several processes needs a torch with torch.distributed, but torch "
            f"{torch.__version__} has none; start a single process, or install another build"
        )
    start = _name_start()
    store, rank, size = next(rendezvous("env://", timeout=TIMEOUT))
    dist.init_process_group(
        choose_backend(uses_gpus=torch.cuda.is_available()),
        store=PrefixStore(start, store),
        rank=rank,
        world_size=size,
        timeout=TIMEOUT,
    )
    try:
        yield _describe_group()
    finally:
        dist.destroy_process_group()


def _name_start() -> str:
    """Name this start of the processes, so that none finds an address that another start left.

    torchrun keeps its store of addresses when it starts processes again (torch 2.13), so they would
    connect to those that have ended.

    Raises:
        KairosError: if torchrun on several machines may start processes again, but keeps its store.
    """
    restarts = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    if int(os.environ.get("GROUP_WORLD_SIZE", "1")) == 1:
        return f"start-{restarts}"
    # The machines count their own restarts, so only a store of its own tells a start from others.
    can_restart = int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0")) > 0
    if can_restart and os.environ.get(_OWN_STORE) != "1":
        raise KairosError(
            "on several machines torchrun must have a new store for every start of the processes, "
            f"but {_OWN_STORE} is {os.environ.get(_OWN_STORE)}; set it to 1 where torchrun is "
            "started, or give --max-restarts 0"
        )
    return "start"


def _describe_group() -> ProcessGroup:
    return ProcessGroup(dist.get_rank(), dist.get_world_size(), read_local_rank())
