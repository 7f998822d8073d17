"""A step on an accelerator never waits for it: nothing that a device computes is read by the host.

Tensors of the device "meta" have shapes and no values, so whatever reads one raises an error. What
copies to it and waits for the copy is found by the modes here.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from model import accelerators
from model.errors import DivergedError
from model.interfaces import CountingEncoder, RandomFeatures
from tests import tiny, zoo
from training.config import FitConfig, RunConfig
from training.data import batches
from training.data.batches import TrainingWindows
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
SHIPPED = ("demo", "badges_mercer", "badges_positional", "movielens_mercer", "movielens_positional")


class WaitingCopyError(Exception):
    """A copy to the device for which the host waits."""


class NoWaitingCopies(TorchDispatchMode):
    """Finds operations that copy tensors of the host to the device and wait for it."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if is_on_device(result):
            copied = [one for one in tree_leaves((args, kwargs)) if is_on_host(one)]
            waits = not (kwargs or {}).get("non_blocking", False)
            if copied and waits:
                raise WaitingCopyError(f"{func} of {[tuple(one.shape) for one in copied]}")
        return result


class NoValuesOfThePython(TorchFunctionMode):
    """Finds tensors that are made of values of the program, which are copied to the device."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if func in {torch.tensor, torch.as_tensor, torch.Tensor.new_tensor} and is_on_device(
            result
        ):
            raise WaitingCopyError(f"{func} of {args}")
        return result


def is_on_device(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == "meta"


def is_on_host(value: object) -> bool:
    """Whether it is a tensor of the host that is copied; a number is given to an operation."""
    return isinstance(value, torch.Tensor) and value.device.type == "cpu" and value.ndim > 0


def take_step(config: RunConfig) -> None:
    """Take a step as `fit` does, on the device "meta"; not the first, which copies constants."""
    take = prepare_step(config)
    take()
    with NoWaitingCopies(), NoValuesOfThePython():
        take()


def prepare_step(config: RunConfig) -> Callable[[], None]:
    data = Dataset.of(tiny.gap_world(users=30, length=8))
    _, recommender = build_recommender(config, data, np.ones(len(data), dtype=np.bool_))
    recommender.to("meta").train()
    windows = windows_of(data, config, recommender.device)
    (chosen, *_) = windows.plan(np.random.default_rng(0), tokens=300)
    optimizer = make_optimizer(recommender, config.fit)
    objective = Objective(recommender, config.fit)
    for group in optimizer.param_groups:
        group["fused"] = None  # of CPUs and GPUs only

    def take() -> None:
        for module in recommender.modules():
            if isinstance(module, RandomFeatures):
                module.resample()
        loss = objective.compute_loss(windows.build_batch(chosen), np.random.default_rng(0))
        loss.backward()
        for group in optimizer.param_groups:
            nn.utils.clip_grad_norm_(group["params"], group["clip"])
        optimizer.step()

    return take


def windows_of(
    data: Dataset, config: RunConfig, device: torch.device | None = None
) -> TrainingWindows:
    return TrainingWindows(
        data,
        data.offsets[1:],
        predict=config.data.predict,
        max_history=config.encoder.max_history,
        device=device or torch.device("cpu"),
    )


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


def test_a_sampled_loss_of_a_wide_part_reads_nothing() -> None:
    recipe = RunConfig.read("demo").model_dump()
    recipe["fit"]["loss"] |= {"sample_above": 0, "negatives": 8}
    take_step(RunConfig.model_validate(recipe))


@pytest.mark.parametrize("sample_above", [0, 1_000], ids=["sampled", "full"])
def test_fixed_shapes_give_a_wide_part_the_same_loss(
    sample_above: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = RunConfig.read("demo").model_dump()
    recipe["fit"]["loss"] |= {"sample_above": sample_above, "negatives": 8}
    assert_fixed_shapes_change_nothing(RunConfig.model_validate(recipe), monkeypatch)


@pytest.mark.parametrize("method", LEARNED)
def test_fixed_shapes_give_the_same_loss(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = zoo.recipe(method)
    # The longest history has 7 events: a batch has one position that none of them has.
    encoder = recipe.encoder.model_copy(update={"max_history": 8})
    config = recipe.model_copy(update={"encoder": encoder})
    assert_fixed_shapes_change_nothing(config, monkeypatch)


def assert_fixed_shapes_change_nothing(config: RunConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    losses, gradients = zip(
        *(compute_gradients(config, monkeypatch, is_fixed=one) for one in (False, True)),
        strict=True,
    )
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient, rtol=1e-4, atol=1e-6)


def compute_gradients(
    config: RunConfig, monkeypatch: pytest.MonkeyPatch, *, is_fixed: bool
) -> tuple[float, dict[str, torch.Tensor]]:
    """Compute a loss without dropout and its gradients, as a CPU or as an accelerator does."""
    for module in (accelerators, batches):
        monkeypatch.setattr(module, "needs_fixed_shapes", lambda _device: is_fixed)
    data = Dataset.of(tiny.gap_world(users=30, length=8))
    torch.manual_seed(0)
    _, recommender = build_recommender(config, data, np.ones(len(data), dtype=np.bool_))
    windows = windows_of(data, config)
    (chosen, *_) = windows.plan(np.random.default_rng(0), tokens=300)
    batch = windows.build_batch(chosen)
    assert batch.sequences.rows.shape[1] == (8 if is_fixed else 7)
    # What is drawn per position differs with the positions.
    time = config.fit.continuous_time.model_copy(update={"integral": "right_end"})
    fitted = config.fit.model_copy(update={"query_time_dropout": 0.0, "continuous_time": time})
    torch.manual_seed(1)
    loss = Objective(recommender.eval(), fitted).compute_loss(batch, np.random.default_rng(0))
    loss.backward()
    gradients = {
        name: parameter.grad
        for name, parameter in recommender.named_parameters()
        if parameter.grad is not None
    }
    return loss.item(), gradients


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
