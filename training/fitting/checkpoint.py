"""Checkpoints, from which a killed run resumes with the same result."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from model.errors import ForeignCheckpointError
from model.recommender import Recommender
from training.fitting.fit import EpochReport, FitState

CHECKPOINT = "checkpoint.safetensors"


def save_checkpoint(
    directory: Path,
    fingerprint: str,
    state: FitState,
    recommender: Recommender,
    optimizer: torch.optim.Optimizer,
) -> None:
    """Write a checkpoint atomically.

    Args:
        fingerprint: a digest of the recipe and its events; resuming requires the same.
    """
    tensors = {f"weights/{name}": tensor for name, tensor in recommender.state_dict().items()}
    tensors |= {f"best/{name}": tensor for name, tensor in state.best_weights.items()}
    tensors |= {f"average/{name}": tensor for name, tensor in state.averaged_weights.items()}
    for number, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{number}/{name}": tensor for name, tensor in moments.items()}
    metadata = {
        "fingerprint": fingerprint,
        "epoch": state.epoch,
        "step": state.step,
        "best_epoch": state.best_epoch,
        "best_value": state.best_value,
        "reports": [report._asdict() for report in state.reports],
    }
    file = directory / CHECKPOINT
    unfinished = file.with_suffix(".unfinished")
    safetensors.torch.save_file(
        {name: tensor.contiguous() for name, tensor in tensors.items()},
        unfinished,
        metadata={"state": json.dumps(metadata)},
    )
    unfinished.replace(file)


def load_checkpoint(
    directory: Path,
    fingerprint: str,
    recommender: Recommender,
    optimizer: torch.optim.Optimizer,
) -> FitState | None:
    """Load a checkpoint's weights and moments; None if there is no checkpoint.

    Raises:
        ForeignCheckpointError: if the checkpoint is damaged, or belongs to another configuration
            or other events.
    """
    file = directory / CHECKPOINT
    if not file.exists():
        return None
    try:
        with safetensors.safe_open(file, framework="pt") as opened:
            metadata: dict[str, Any] = json.loads(opened.metadata()["state"])
            tensors: dict[str, Tensor] = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except safetensors.SafetensorError as error:
        raise ForeignCheckpointError(
            f"a run resumes from a whole checkpoint, but {file} is damaged ({error}); "
            "delete it to begin anew"
        ) from error
    if metadata["fingerprint"] != fingerprint:
        raise ForeignCheckpointError(
            f"a run resumes only with the recipe and events it began with, but {file} belongs to "
            "others; choose another output directory, or delete it to begin anew"
        )
    weights = _select_prefix("weights/", tensors)
    own = recommender.state_dict()
    if differing := sorted({name for name, _ in _list_shapes(weights) ^ _list_shapes(own)}):
        raise ForeignCheckpointError(
            f"a run resumes with weights as this version of Kairos has them, but {file} "
            f"differs in {differing[0]!r}; delete it to start again, or finish the run with the "
            "version that wrote it"
        )
    recommender.load_state_dict(weights)
    moments: dict[int, dict[str, Tensor]] = {}
    for name, tensor in _select_prefix("optimizer/", tensors).items():
        number, key = name.split("/")
        moments.setdefault(int(number), {})[key] = tensor
    optimizer.load_state_dict(optimizer.state_dict() | {"state": moments})
    return FitState(
        epoch=metadata["epoch"],
        step=metadata["step"],
        best_epoch=metadata["best_epoch"],
        best_value=metadata["best_value"],
        best_weights=_select_prefix("best/", tensors),
        averaged_weights={
            name: average.to(recommender.device)
            for name, average in _select_prefix("average/", tensors).items()
        },
        reports=[EpochReport(**report) for report in metadata["reports"]],
    )


def _list_shapes(tensors: Mapping[str, Tensor]) -> set[tuple[str, torch.Size]]:
    return {(name, tensor.shape) for name, tensor in tensors.items()}


def _select_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
