"""Two processes with a part of a batch each, beside one with the whole."""

from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing
from torch import Tensor, nn

from model.layers.dropout import Dropout
from model.recommender import Recommender
from tests import tiny, zoo
from training.config import RunConfig
from training.data.batches import TrainingBatch, TrainingWindows
from training.data.dataset import Dataset
from training.distributed import ALONE, ProcessGroup
from training.fitting.building import build_recommender
from training.fitting.objective import Objective

PROCESSES = 2
METHODS = ("wide", "time_joint", "self_modulating_ctreg")
"""Their terms are means over different targets and weights."""
WIDE = {
    "encoder": {"repeats": True},
    "wide": {"popularity": True, "repeats": True, "followers": False, "calendar": True},
}
"""Weighs targets by how often they were counted. The followers of items are dropped at random."""
EVERY_TARGET_WEIGHED = {"weight": 0.5, "integral": "right_end"}


def recipe(method: str) -> RunConfig:
    settings = zoo.recipe("mercer_concat" if method == "wide" else method).model_dump()
    settings["fit"] |= {"query_time_dropout": 0.0}
    if method == "wide":
        settings["encoder"] |= WIDE["encoder"]
        settings["wide"] = WIDE["wide"]
    if settings["fit"]["continuous_time"]["weight"]:
        settings["fit"]["continuous_time"] = EVERY_TARGET_WEIGHED
    return RunConfig.model_validate(settings)


def compute_gradients(
    recommender: Recommender, config: RunConfig, batch: TrainingBatch, group: ProcessGroup
) -> tuple[Tensor, dict[str, Tensor]]:
    recommender.zero_grad()
    objective = Objective(recommender, config.fit, group)

    class Loss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.recommender = recommender

        def forward(self) -> Tensor:
            return objective.compute_loss(batch, np.random.default_rng(0))

    shared = group.share_gradients(Loss())  # held: the backward pass needs it
    loss = shared()
    loss.backward()
    gradients = {
        name: parameter.grad.clone()
        for name, parameter in recommender.named_parameters()
        if parameter.grad is not None
    }
    return group.add_up(loss.detach()) / group.size, gradients


def compare_method(method: str, group: ProcessGroup) -> None:
    """Compare the loss and the gradients of divided batches with those of the whole."""
    config = recipe(method)
    data = Dataset.of(tiny.gap_world(users=30, length=8))
    is_training = np.ones(len(data.rows), dtype=np.bool_)
    _, recommender = build_recommender(config, data, is_training)
    recommender.train()
    for module in recommender.modules():
        if isinstance(module, Dropout):
            module.p = 0.0
    windows = TrainingWindows(
        data, data.offsets[1:], predict=config.data.predict, max_history=config.encoder.max_history
    )
    plan = windows.plan(np.random.default_rng(0), tokens=300)
    # The last has fewer windows than there are processes.
    for chosen in (plan[0], plan[1], plan[0][:1]):
        whole_loss, whole = compute_gradients(
            recommender, config, windows.build_batch(chosen), ALONE
        )
        part = windows.build_part(chosen, group.rank, group.size)
        loss, gradients = compute_gradients(recommender, config, part, group)
        torch.testing.assert_close(loss, whole_loss, rtol=1e-5, atol=1e-6)
        assert gradients.keys() == whole.keys()
        for name, gradient in gradients.items():
            torch.testing.assert_close(
                gradient,
                whole[name],
                rtol=1e-3,
                atol=1e-6,
                msg=lambda text, name=name: f"{method}, {name}: {text}",
            )


def compare_methods(rank: int, directory: Path) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{directory}/store",
        rank=rank,
        world_size=PROCESSES,
        timeout=timedelta(seconds=300),
    )
    for method in METHODS:
        compare_method(method, ProcessGroup(rank, PROCESSES))
    dist.destroy_process_group()


@pytest.mark.timeout(400)
def test_the_mean_of_the_parts_is_the_loss_of_the_whole(tmp_path: Path) -> None:
    torch.multiprocessing.spawn(compare_methods, (tmp_path,), nprocs=PROCESSES)
