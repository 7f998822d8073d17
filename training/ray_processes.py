"""Training by processes that Ray Train starts, on this machine or on those of a cluster."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from model.errors import KairosError
from training.distributed import TIMEOUT, ProcessGroup, choose_backend, join_group
from training.ray_cluster import connect_to_ray

Result = TypeVar("Result")

_RUNS = "ray"
"""Where Ray Train keeps its own records in the output directory, while it runs."""


def run_on_ray(
    work: Callable[[ProcessGroup], Result],
    output: Path,
    *,
    processes: int,
    uses_gpus: bool | None,
    threads: int = 1,
    restarts: int = 3,
) -> Result:
    """Run a function in processes of Ray Train; each gets the group of them all.

    Ray is that of `RAY_ADDRESS`, or started on this machine. Where a process dies, all are started
    again, so the function resumes from what it has written into the output directory.

    Args:
        work: can be pickled, and reads nothing that other machines lack.
        output: an absolute path, of a file system that the machines share.
        uses_gpus: whether every process has a GPU; None: if there are enough.
        threads: CPUs of each process.
        restarts: how often the processes are started again.

    Returns:
        What the function returned in the first process.

    Raises:
        KairosError: if the function raises one in any process, or if the processes died too often.
        MissingPackageError: if Ray is not installed.
    """

    def run_in_process() -> Result:
        with join_group() as group:
            return work(group)

    with connect_to_ray(shows_logs=True) as ray:
        if uses_gpus is None:
            uses_gpus = ray.cluster_resources().get("GPU", 0) >= processes
        from ray.train import FailureConfig, RunConfig, ScalingConfig  # noqa: PLC0415
        from ray.train.torch import TorchConfig, TorchTrainer  # noqa: PLC0415
        from ray.train.v2.api.exceptions import TrainingFailedError  # noqa: PLC0415

        trainer = TorchTrainer(
            run_in_process,
            torch_config=TorchConfig(
                backend=choose_backend(uses_gpus=uses_gpus), timeout_s=int(TIMEOUT.total_seconds())
            ),
            scaling_config=ScalingConfig(
                num_workers=processes,
                use_gpu=uses_gpus,
                resources_per_worker={"CPU": threads} | ({"GPU": 1} if uses_gpus else {}),
            ),
            run_config=RunConfig(
                storage_path=str(output / _RUNS),
                failure_config=FailureConfig(max_failures=restarts),
            ),
        )
        try:
            returned: Result = trainer.fit().return_value
            return returned
        except TrainingFailedError as error:
            for cause in _iter_causes(error):
                if isinstance(cause, KairosError):
                    raise cause from error
            raise KairosError(
                f"processes that die are started again at most {restarts} times, but Ray Train "
                f"gave up: {error}; see its messages above, and run the command again to resume"
            ) from error
        finally:
            shutil.rmtree(output / _RUNS, ignore_errors=True)


def _iter_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors of the processes that an error of Ray Train names."""
    for failure in getattr(error, "worker_failures", {}).values():
        cause = failure
        while cause is not None:
            yield cause
            cause = getattr(cause, "cause", None) or cause.__cause__
