"""The training loop."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, final

import numpy as np
import torch
from torch import Tensor, nn

from model.errors import DivergedError, TrainingError
from model.interfaces import RandomFeatures
from model.recommender import Recommender
from training.config import FitConfig
from training.data.batches import TrainingBatch, TrainingWindows
from training.distributed import ALONE, ProcessGroup
from training.fitting.objective import Objective

_STEPS_PER_READ = 50
"""Steps between two reads of the losses, where a read waits for the device or for processes."""

_COEFFICIENTS = "coefficients"
"""The end of the names of a time encoding's coefficients."""


class EpochReport(NamedTuple):
    """The figures of one epoch; `validation` is empty where it was not evaluated."""

    epoch: int
    loss: float
    validation: dict[str, float]
    seconds: float


@dataclass
class FitState:
    """The state of a run between two epochs, beside the weights and the optimizer.

    Random generators are seeded anew from (seed, epoch) at every epoch, so none is kept.
    """

    epoch: int = 0
    step: int = 0
    best_epoch: int = 0
    best_value: float = float("-inf")
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    averaged_weights: dict[str, Tensor] = field(default_factory=dict)
    reports: list[EpochReport] = field(default_factory=list)


Evaluate = Callable[[Recommender], dict[str, float]]
OnStep = Callable[[int, int, float], None]
OnEpoch = Callable[[FitState, Recommender, torch.optim.Optimizer], None]


def fit(
    recommender: Recommender,
    windows: TrainingWindows,
    config: FitConfig,
    *,
    evaluate: Evaluate | None,
    stop_after: int | None = None,
    state: FitState | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    group: ProcessGroup = ALONE,
    on_step: OnStep | None = None,
    on_epoch: OnEpoch | None = None,
) -> FitState:
    """Fit a recommender; it ends with the weights of its best validated epoch.

    Pass the `state` and `optimizer` of a checkpoint to resume: the result is then the same as
    without the interruption.

    Args:
        evaluate: metrics on the validation questions; `config.monitor` selects the one that
            counts. None to keep the last epoch's weights.
        group: the processes that fit together, each with a part of every batch. All of them call
            this with the same arguments, and end with the same weights.
        stop_after: epochs to run of the schedule of `config.epochs`; all of it by default.
        on_step: called with (batches done, batches in this epoch, smoothed loss).
        on_epoch: called after every epoch, for checkpoints and progress.

    Raises:
        DivergedError: if the loss is NaN or infinite.
        TrainingError: if the encoder cannot be trained with the configured loss, or there are no
            targets.
    """
    if windows.targets == 0:
        raise TrainingError(
            "a fit needs targets, training events that follow others of their user (baskets: at a "
            "later instant), but there are none; bring more events, or lower the shares of "
            "validation and test"
        )
    state = state or FitState()
    optimizer = optimizer or make_optimizer(recommender, config)
    steps_per_epoch = len(windows.plan(np.random.default_rng(config.seed), tokens=config.tokens))
    total_steps = steps_per_epoch * config.epochs
    last_epoch = min(stop_after or config.epochs, config.epochs)
    resampled = [module for module in recommender.modules() if isinstance(module, RandomFeatures)]
    step = _Step(recommender, config, optimizer, group)
    while state.epoch < last_epoch and not _is_out_of_patience(state, config):
        began = time.monotonic()
        rng = np.random.default_rng([config.seed, state.epoch])
        torch.manual_seed(int(rng.integers(2**62)))
        recommender.train()
        losses = EpochLosses(config, group, recommender.device)
        plan = windows.plan(rng, tokens=config.tokens)
        if not group.is_alone:
            # The plan is the same in every process; what is drawn from here on is not.
            rng = np.random.default_rng([config.seed, state.epoch, group.rank])
            torch.manual_seed(int(rng.integers(2**62)))
        batches = windows.build_batches(plan, part=group.rank, parts=group.size)
        for done, batch in enumerate(batches, start=1):
            _set_learning_rate(optimizer, config, state.step, total_steps)
            for module in resampled:
                module.resample()
            loss = step.take(batch, rng)
            state.step += 1
            if config.averaging:
                _average_weights(recommender, state, config.averaging)
            losses.add(loss, state.step, is_last=done == len(plan))
            if on_step is not None:
                on_step(done, len(plan), losses.smoothed)
        state.epoch += 1
        seconds = time.monotonic() - began
        validation: dict[str, float] = {}
        is_due = state.epoch % config.evaluate_every == 0 or state.epoch == last_epoch
        if evaluate is not None and is_due:
            with _use_averaged_weights(recommender, state):
                validation = evaluate(recommender)
                if validation[config.monitor] > state.best_value:
                    state.best_value, state.best_epoch = validation[config.monitor], state.epoch
                    state.best_weights = _copy_weights(recommender)
        state.reports.append(EpochReport(state.epoch, losses.mean, validation, seconds))
        if on_epoch is not None:
            on_epoch(state, recommender, optimizer)
    kept = state.best_weights or state.averaged_weights
    if kept:
        recommender.load_state_dict(kept, strict=False)
    recommender.eval()
    return state


@final
class _Step:
    """One step of the optimizer."""

    def __init__(
        self,
        recommender: Recommender,
        config: FitConfig,
        optimizer: torch.optim.Optimizer,
        group: ProcessGroup,
    ) -> None:
        loss = _Loss(recommender, Objective(recommender, config, group), config)
        self._compute_loss = group.share_gradients(loss)
        self._optimizer = optimizer

    def take(self, batch: TrainingBatch, rng: np.random.Generator) -> Tensor:
        """Move the weights, and return the loss before that; of a divided batch its own part."""
        loss: Tensor = self._compute_loss(batch, rng)
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        for group in self._optimizer.param_groups:
            nn.utils.clip_grad_norm_(group["params"], group["clip"])
        self._optimizer.step()
        return loss.detach()


@final
class _Loss(nn.Module):
    """The loss of a batch as a module, whose parameters are those of the recommender."""

    def __init__(self, recommender: Recommender, objective: Objective, config: FitConfig) -> None:
        super().__init__()
        self.recommender = recommender
        self._objective = objective
        self._is_lower = config.precision == "bfloat16"

    def forward(self, batch: TrainingBatch, rng: np.random.Generator) -> Tensor:
        if not self._is_lower:
            return self._objective.compute_loss(batch, rng)
        # Products only: PyTorch leaves values of 64 bits, and everything element-wise, as they are.
        with torch.autocast(self.recommender.device.type, torch.bfloat16):
            return self._objective.compute_loss(batch, rng)


@final
class EpochLosses:
    """The losses of an epoch's steps, read from the device a few at a time.

    To read one waits until the device has computed it, and until all processes have. A process
    alone on a CPU waits for nobody, and reads each.
    """

    def __init__(self, config: FitConfig, group: ProcessGroup, device: torch.device) -> None:
        self._config, self._group = config, group
        waits = device.type != "cpu" or not group.is_alone
        self._most = _STEPS_PER_READ if waits else 1
        self._unread: list[Tensor] = []
        self._read: list[float] = []

    def add(self, loss: Tensor, step: int, *, is_last: bool) -> None:
        """Add the loss of a step.

        Raises:
            DivergedError: if a loss that is read is NaN or infinite.
        """
        self._unread.append(loss)
        # The first is read at once, to show.
        if self._read and len(self._unread) < self._most and not is_last:
            return
        means = self._group.add_up(torch.stack(self._unread)) / self._group.size
        for number, value in enumerate(means.tolist(), start=step + 1 - len(self._unread)):
            if not np.isfinite(value):
                raise DivergedError(
                    f"the loss must stay finite, but is {value} at step {number}; lower the "
                    f"learning rate (now {self._config.learning_rate}) or check the timestamps"
                )
            self._read.append(value)
        self._unread.clear()

    @property
    def smoothed(self) -> float:
        """The mean of the latest losses that were read."""
        return float(np.mean(self._read[-50:]))

    @property
    def mean(self) -> float:
        """The mean of the epoch."""
        return float(np.mean(self._read))


def _copy_weights(recommender: Recommender) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in recommender.state_dict().items()}


@torch.no_grad()
def _average_weights(recommender: Recommender, state: FitState, decay: float) -> None:
    """Move the average towards the weights.

    Until the decay bounds it, the share of the newest weights is 9 / (10 + steps): the average
    reaches over about the last ninth of the steps.
    """
    weights = dict(recommender.named_parameters())
    if not state.averaged_weights:
        state.averaged_weights = {name: one.detach().clone() for name, one in weights.items()}
    share = 1 - min(decay, (1 + state.step) / (10 + state.step))
    for name, average in state.averaged_weights.items():
        average.lerp_(weights[name], share)


@contextmanager
def _use_averaged_weights(recommender: Recommender, state: FitState) -> Iterator[None]:
    """Give a recommender the averaged weights for a while, if there are any."""
    if not state.averaged_weights:
        yield
        return
    own = _copy_weights(recommender)
    recommender.load_state_dict(state.averaged_weights, strict=False)
    try:
        yield
    finally:
        recommender.load_state_dict(own)


def make_optimizer(recommender: Recommender, config: FitConfig) -> torch.optim.AdamW:
    """Build AdamW over groups: decayed matrices, undecayed vectors, coefficients, and frequencies.

    Coefficients of a time encoding are not decayed: that would move them towards an arbitrary
    value, such as softplus(0), not towards none.

    The gradient of a frequency grows with the interval, up to years; under a shared norm clip it
    would dominate the weights' gradient. So frequencies have their own clip and learning rate.
    """
    periods = [
        parameter
        for name, parameter in recommender.named_parameters()
        if any(part.endswith("log_periods") for part in name.split(".")) and parameter.requires_grad
    ]
    known = {id(parameter) for parameter in periods}
    weights = [
        parameter
        for parameter in recommender.parameters()
        if parameter.requires_grad and id(parameter) not in known
    ]
    coefficients = {
        id(parameter)
        for name, parameter in recommender.named_parameters()
        if name.endswith(_COEFFICIENTS)
    }
    matrices = [one for one in weights if one.ndim > 1 and id(one) not in coefficients]
    undecayed = [one for one in weights if id(one) in coefficients]
    vectors = [one for one in weights if one.ndim <= 1 and id(one) not in coefficients]
    rate, decay = config.learning_rate, config.weight_decay
    groups = [
        {
            "params": matrices,
            "weight_decay": decay,
            "clip": config.clip,
            "rate": rate,
        },
        {
            "params": vectors,
            "weight_decay": 0.0,
            "clip": config.clip,
            "rate": config.scalar_learning_rate or rate,
        },
    ]
    if undecayed:
        groups.append({"params": undecayed, "weight_decay": 0.0, "clip": config.clip, "rate": rate})
    if periods:
        groups.append(
            {
                "params": periods,
                "weight_decay": 0.0,
                "clip": config.frequency_clip,
                "rate": config.frequency_learning_rate,
            }
        )
    # Fused: one pass over each parameter instead of a dozen.
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98), fused=True)


def _set_learning_rate(
    optimizer: torch.optim.Optimizer, config: FitConfig, step: int, total_steps: int
) -> None:
    """Set each group's rate: linear warm-up, then constant or cosine decay."""
    share = min((step + 1) / (config.warmup_steps + 1), 1.0)
    if config.decay == "cosine" and step >= config.warmup_steps:
        progress = (step - config.warmup_steps) / max(total_steps - config.warmup_steps, 1)
        share *= 0.5 * (1 + np.cos(np.pi * min(progress, 1.0)))
    for group in optimizer.param_groups:
        group["lr"] = group["rate"] * share


def _is_out_of_patience(state: FitState, config: FitConfig) -> bool:
    return (
        state.best_epoch > 0
        and (state.epoch - state.best_epoch) // config.evaluate_every >= config.patience
    )
