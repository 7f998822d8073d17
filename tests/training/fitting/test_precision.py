"""Training in bfloat16: products of the encoder lose digits, phases of times do not."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from model.errors import TrainingError
from model.layers import repeat_scores
from model.wide import WideConfig
from tests import tiny, zoo
from training.config import FitConfig, RunConfig
from training.data.batches import TrainingWindows
from training.data.dataset import Dataset
from training.fitting.building import build_recommender
from training.fitting.fit import fit
from training.fitting.objective import Objective

ENCODINGS = (
    "bochner_nonparametric",
    "mercer_concat",
    "mercer_sum",
    "nonstationary",
    "sasrec_plus",
    "time2vec",
)


class Phases(TorchDispatchMode):
    """Keeps the arguments of all sines and cosines."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Tensor] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func in {torch.ops.aten.sin.default, torch.ops.aten.cos.default}:
            self.found.append(args[0].detach().clone())
        return func(*args, **(kwargs or {}))


def compute_phases(method: str, precision: torch.dtype) -> tuple[float, list[Tensor]]:
    config = zoo.recipe(method)
    data = Dataset.of(tiny.gap_world(users=30, length=8))
    _, recommender = build_recommender(config, data, np.ones(len(data), dtype=np.bool_))
    windows = TrainingWindows(
        data, data.offsets[1:], predict=config.data.predict, max_history=config.encoder.max_history
    )
    batch = windows.build_batch(np.arange(30))
    objective = Objective(recommender.eval(), FitConfig(query_time_dropout=0.0))
    with (
        Phases() as phases,
        torch.autocast("cpu", torch.bfloat16, enabled=precision == torch.bfloat16),
    ):
        loss = objective.compute_loss(batch, np.random.default_rng(0))
    return loss.item(), phases.found


@pytest.mark.parametrize("method", ENCODINGS)
def test_phases_are_the_same_in_either_precision(method: str) -> None:
    loss, phases = compute_phases(method, torch.float32)
    lower_loss, lower_phases = compute_phases(method, torch.bfloat16)
    assert phases
    assert all(torch.equal(one, other) for one, other in zip(phases, lower_phases, strict=True))
    assert lower_loss != loss
    assert lower_loss == pytest.approx(loss, rel=0.02)


def test_an_encoder_that_mixes_precisions_is_refused() -> None:
    config = zoo.recipe("shan")
    data = Dataset.of(tiny.gap_world(users=30, length=8))
    _, recommender = build_recommender(config, data, np.ones(len(data), dtype=np.bool_))
    with pytest.raises(TrainingError, match="SHAN has some that do not"):
        Objective(recommender, config.fit.model_copy(update={"precision": "bfloat16"}))


@pytest.mark.parametrize("wide", [None, WideConfig()], ids=["encoder", "encoder and wide part"])
def test_a_fit_in_bfloat16_learns_as_well(wide: WideConfig | None) -> None:
    losses = []
    for precision in ("float32", "bfloat16"):
        data = Dataset.of(tiny.gap_world(users=30, length=8))
        config = RunConfig(
            encoder=tiny.ENCODER,
            wide=wide,
            fit=FitConfig(epochs=5, tokens=300, learning_rate=1e-2, precision=precision),  # type: ignore[arg-type]
        )
        _, recommender = build_recommender(config, data, np.ones(len(data), dtype=np.bool_))
        windows = TrainingWindows(
            data, data.offsets[1:], predict="next_event", max_history=tiny.ENCODER.max_history
        )
        state = fit(recommender, windows, config.fit, evaluate=None)
        assert recommender.items.weight.dtype == torch.float32
        losses.append(state.reports[-1].loss)
    assert losses[1] != losses[0]
    assert losses[1] == pytest.approx(losses[0], rel=0.02)


def test_features_of_repeats_are_the_same_in_either_precision() -> None:
    data = Dataset.of(tiny.gap_world(users=30, length=8))
    _, recommender = build_recommender(
        RunConfig.read("demo"), data, np.ones(len(data), dtype=np.bool_)
    )
    windows = TrainingWindows(data, data.offsets[1:], predict="next_event", max_history=8)
    batch = windows.build_batch(np.arange(30)).sequences
    found = []
    describe = repeat_scores.describe_items

    def keep(*arguments: Any) -> repeat_scores.DescribedItems:
        found.append(describe(*arguments))
        return found[-1]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(repeat_scores, "describe_items", keep)
        for is_lower in (False, True):
            with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=is_lower):
                recommender.eval()(batch)
    assert torch.equal(found[0].features, found[1].features)
