"""A step on an accelerator never waits for it: nothing that a device computes is read by the host.

Tensors of the device "meta" have shapes and no values, so whatever reads one raises an error.
"""

import math

import numpy as np
import pytest
import torch
from torch import nn

from model.errors import DivergedError
from model.interfaces import CountingEncoder, RandomFeatures
from tests import tiny, zoo
from training.config import FitConfig, RunConfig
from training.data.batches import TrainingBatch, TrainingWindows
from training.data.dataset import Dataset
from training.distributed import ALONE
from training.fitting.building import build_recommender
from training.fitting.fit import EpochLosses, make_optimizer
from training.fitting.objective import Objective

READS = {"bochner_invcdf_real_nvp"}
"""Methods whose steps read values: the flow of a library selects by a mask."""
LEARNED = sorted(
    name
    for name in zoo.METHODS
    if not issubclass(type(zoo.recipe(name).encoder.build(items=5, actions=0)), CountingEncoder)
)
SHIPPED = ("badges_mercer", "badges_positional", "movielens_mercer", "movielens_positional")


def take_step(config: RunConfig) -> None:
    """Take a step as `fit` does, on the device "meta"."""
    data = Dataset.of(tiny.gap_world(users=30, length=8))
    _, recommender = build_recommender(config, data, np.ones(len(data), dtype=np.bool_))
    windows = TrainingWindows(
        data, data.offsets[1:], predict=config.data.predict, max_history=config.encoder.max_history
    )
    (chosen, *_) = windows.plan(np.random.default_rng(0), tokens=300)
    batch: TrainingBatch = windows.build_batch(chosen)
    recommender.to("meta").train()
    optimizer = make_optimizer(recommender, config.fit)
    for module in recommender.modules():
        if isinstance(module, RandomFeatures):
            module.resample()
    loss = Objective(recommender, config.fit).compute_loss(batch, np.random.default_rng(0))
    loss.backward()
    for group in optimizer.param_groups:
        group["fused"] = None  # of CPUs and GPUs only
        nn.utils.clip_grad_norm_(group["params"], group["clip"])
    optimizer.step()


@pytest.mark.parametrize("method", [name for name in LEARNED if name not in READS])
def test_a_step_reads_nothing_of_the_device(method: str) -> None:
    take_step(zoo.recipe(method))


@pytest.mark.parametrize("recipe", SHIPPED)
def test_a_step_of_a_shipped_recipe_reads_nothing(recipe: str) -> None:
    take_step(RunConfig.read(recipe))


def test_sampled_negatives_are_drawn_without_a_read() -> None:
    take_step(
        RunConfig.model_validate(
            {"fit": {"loss": {"kind": "softmax", "sample_above": 0, "negatives": 8}}}
        )
    )


@pytest.mark.parametrize("method", sorted(READS))
def test_a_method_that_reads_the_device_is_known(method: str) -> None:
    with pytest.raises(NotImplementedError):
        take_step(zoo.recipe(method))


def test_a_wide_part_reads_the_device() -> None:
    # The items of a history, and the snapshots of popularity, are as many as the data has.
    with pytest.raises(NotImplementedError):
        take_step(RunConfig.read("demo"))


def test_a_loss_that_diverges_is_named_when_it_is_read() -> None:
    losses = EpochLosses(FitConfig(), ALONE, torch.device("cuda"))
    losses.add(torch.tensor(1.0), 1, is_last=False)
    losses.add(torch.tensor(math.nan), 2, is_last=False)
    losses.add(torch.tensor(1.0), 3, is_last=False)
    with pytest.raises(DivergedError, match="but is nan at step 2"):
        losses.add(torch.tensor(1.0), 4, is_last=True)


def test_losses_of_a_device_are_read_a_few_times_an_epoch() -> None:
    losses, smoothed = EpochLosses(FitConfig(), ALONE, torch.device("cuda")), set()
    for step in range(1, 101):
        losses.add(torch.tensor(float(step)), step, is_last=step == 100)
        smoothed.add(losses.smoothed)
    assert len(smoothed) == 3
    assert losses.mean == pytest.approx(50.5)
