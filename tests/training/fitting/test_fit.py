import pytest
import torch
from torch import Tensor, nn

from model.errors import TrainingError
from model.recommender import Recommender
from tests import tiny
from training.config import (
    BCEConfig,
    BPRConfig,
    FitConfig,
    GBCEConfig,
    LossConfig,
    SoftmaxConfig,
)
from training.data.batches import TrainingWindows
from training.data.dataset import Dataset
from training.fitting.fit import FitState, fit, make_optimizer

FIT = FitConfig(epochs=4, tokens=300, learning_rate=3e-3, warmup_steps=3, seed=5)


def dataset() -> Dataset:
    return Dataset.of(tiny.gap_world(users=30, length=8))


def windows(data: Dataset) -> TrainingWindows:
    return TrainingWindows(
        data, data.offsets[1:], predict="next_event", max_history=tiny.ENCODER.max_history
    )


def fresh(data: Dataset, *, repeats: bool = False, learned: bool = True) -> Recommender:
    time_encoding = tiny.ENCODER.time_encoding.model_copy(update={"learn_periods": learned})
    encoder = tiny.ENCODER.model_copy(update={"repeats": repeats, "time_encoding": time_encoding})
    torch.manual_seed(0)
    return tiny.recommender_config(encoder, items=len(data.catalog)).build()


def run(config: FitConfig = FIT, **how: object) -> tuple[Recommender, FitState]:
    data = dataset()
    recommender = fresh(data)
    return recommender, fit(recommender, windows(data), config, evaluate=None, **how)  # type: ignore[arg-type]


def same_weights(one: Recommender, other: Recommender) -> bool:
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


# What a run does


def test_the_loss_falls() -> None:
    _, state = run(FIT.model_copy(update={"epochs": 15, "learning_rate": 1e-2}))
    losses = [report.loss for report in state.reports]
    assert len(losses) == state.epoch == 15
    assert losses[-1] < losses[0] - 0.2


def test_the_seed_alone_decides_the_weights() -> None:
    (one, _), (same, _), (other, _) = (
        run(FIT.model_copy(update={"seed": seed})) for seed in (5, 5, 6)
    )
    assert same_weights(one, same)
    assert not same_weights(one, other)


def test_a_resumed_run_ends_with_the_same_weights() -> None:
    data = dataset()
    whole, _ = run()
    parted = fresh(data)
    optimizer = make_optimizer(parted, FIT)
    state = fit(parted, windows(data), FIT, evaluate=None, stop_after=2, optimizer=optimizer)
    assert state.epoch == 2
    torch.manual_seed(99)
    fit(parted, windows(data), FIT, evaluate=None, state=state, optimizer=optimizer)
    assert same_weights(whole, parted)


def test_a_recommender_is_left_ready_to_answer() -> None:
    recommender, _ = run()
    assert not recommender.training


def test_progress_counts_every_batch() -> None:
    steps: list[tuple[int, int]] = []
    _, state = run(on_step=lambda done, of, _: steps.append((done, of)))
    per_epoch = steps[-1][1]
    assert per_epoch > 1
    assert state.step == len(steps) == 4 * per_epoch
    assert [done for done, _ in steps[:per_epoch]] == list(range(1, per_epoch + 1))


def test_a_nan_loss_stops_the_run_with_a_remedy() -> None:
    data = dataset()
    recommender = fresh(data)
    with torch.no_grad():
        recommender.items.weight[1] = torch.nan
    with pytest.raises(TrainingError, match="must stay finite, but is nan at step 1"):
        fit(recommender, windows(data), FIT, evaluate=None)


# Early stopping


def scripted(values: list[float], seen: list[Recommender]) -> object:
    """A validation that answers these values in turn, and keeps the weights it was shown."""

    def evaluate(recommender: Recommender) -> dict[str, float]:
        copy = fresh(dataset())
        copy.load_state_dict(recommender.state_dict())
        seen.append(copy)
        return {"ndcg@10": values[len(seen) - 1]}

    return evaluate


def stop_early(
    values: list[float], **changed: object
) -> tuple[Recommender, FitState, list[Recommender]]:
    data = dataset()
    seen: list[Recommender] = []
    recommender = fresh(data)
    config = FIT.model_copy(update={"epochs": 9, "patience": 2} | changed)
    state = fit(recommender, windows(data), config, evaluate=scripted(values, seen))  # type: ignore[arg-type]
    return recommender, state, seen


def test_early_stopping_waits_its_patience_and_restores_the_best() -> None:
    recommender, state, seen = stop_early([0.1, 0.5, 0.2, 0.5, 0.9])
    assert state.epoch == 4
    assert (state.best_epoch, state.best_value) == (2, 0.5)
    assert same_weights(recommender, seen[1])
    assert not same_weights(recommender, seen[3])


def test_improvement_renews_patience() -> None:
    recommender, state, seen = stop_early([0.1, 0.0, 0.2, 0.1, 0.3, 0.3, 0.3, 0.9, 0.9])
    assert state.epoch == 7
    assert state.best_epoch == 5
    assert same_weights(recommender, seen[4])


def test_patience_counts_evaluations() -> None:
    _, state, seen = stop_early([0.5, 0.4, 0.3, 0.2, 0.1], evaluate_every=2)
    assert len(seen) == 3
    assert (state.epoch, state.best_epoch) == (6, 2)


def test_the_last_epoch_is_always_evaluated() -> None:
    _, state, seen = stop_early([0.1, 0.2, 0.3], evaluate_every=4, patience=9)
    assert (state.epoch, len(seen), state.best_epoch) == (9, 3, 9)


def test_averaged_weights_are_validated_and_kept() -> None:
    data, validated = dataset(), []

    def validate(recommender: Recommender) -> dict[str, float]:
        validated.append(recommender.items.weight.detach().clone())
        return {"ndcg@10": float(len(validated))}

    config = FIT.model_copy(update={"averaging": 0.9})
    recommender = fresh(data)
    ended: list[Tensor] = []
    state = fit(
        recommender,
        windows(data),
        config,
        evaluate=validate,
        on_epoch=lambda _, now, __: ended.append(now.items.weight.detach().clone()),
    )
    assert torch.equal(recommender.items.weight, validated[-1])
    assert torch.equal(state.averaged_weights["items.weight"], validated[-1])
    assert not torch.equal(ended[-1], validated[-1])
    # An average moves less than the weights from epoch to epoch.
    assert (validated[-1] - validated[-2]).norm() < (ended[1] - ended[0]).norm()


# The optimizer


@pytest.mark.parametrize("learned", [True, False])
def test_every_learned_parameter_has_exactly_one_group(learned: bool) -> None:
    recommender = fresh(dataset(), repeats=True, learned=learned)
    groups = make_optimizer(recommender, FIT).param_groups
    found = sorted(id(parameter) for group in groups for parameter in group["params"])
    expected = sorted(id(p) for p in recommender.parameters() if p.requires_grad)
    assert found == expected
    assert len(groups) == (4 if learned else 3)


def test_frequencies_have_their_own_rate_and_clip() -> None:
    config = FIT.model_copy(
        update={"frequency_learning_rate": 7e-5, "frequency_clip": 0.03, "weight_decay": 0.4}
    )
    recommender = fresh(dataset())
    matrices, others, coefficients, frequencies = make_optimizer(recommender, config).param_groups
    (periods,) = frequencies["params"]
    assert (
        periods
        is dict(recommender.named_parameters())["encoder.time_encoding.base_periods.log_periods"]
    )
    assert (frequencies["rate"], frequencies["clip"]) == (7e-5, 0.03)
    undecayed = (others, coefficients, frequencies)
    assert [group["weight_decay"] for group in (matrices, *undecayed)] == [0.4, 0, 0, 0]
    assert [
        name for name, one in recommender.named_parameters() if one is coefficients["params"][0]
    ] == ["encoder.time_encoding.raw_coefficients"]


def test_vectors_may_have_a_rate_of_their_own() -> None:
    config = FIT.model_copy(update={"scalar_learning_rate": 0.05})
    matrices, vectors, *_ = make_optimizer(fresh(dataset()), config).param_groups
    assert (matrices["rate"], vectors["rate"]) == (FIT.learning_rate, 0.05)
    assert all(parameter.ndim <= 1 for parameter in vectors["params"])


def test_the_rate_warms_up_and_then_decays_to_zero() -> None:
    data = dataset()
    rates: list[float] = []
    recommender = fresh(data)
    optimizer = make_optimizer(recommender, FIT)
    fit(
        recommender,
        windows(data),
        FIT,
        evaluate=None,
        optimizer=optimizer,
        on_step=lambda *_: rates.append(optimizer.param_groups[0]["lr"]),
    )
    assert rates[:3] == pytest.approx([FIT.learning_rate * share for share in (0.25, 0.5, 0.75)])
    assert rates[3] == pytest.approx(FIT.learning_rate)
    assert rates[3:] == sorted(rates[3:], reverse=True)
    assert rates[-1] < 0.1 * FIT.learning_rate


# Draws


class Ticket(nn.Module):
    """Counts how often it is resampled."""

    def __init__(self) -> None:
        super().__init__()
        self.number: Tensor
        self.register_buffer("number", torch.zeros(()))
        self.draws = 0

    def resample(self) -> None:
        self.draws += 1
        self.number.fill_(self.draws)


def test_random_features_are_resampled_before_every_step() -> None:
    data = dataset()
    recommender = fresh(data)
    ticket = Ticket()
    recommender.encoder.add_module("ticket", ticket)
    seen: list[float] = []
    state = fit(
        recommender,
        windows(data),
        FIT,
        evaluate=None,
        on_step=lambda *_: seen.append(ticket.number.item()),
    )
    assert seen == [*range(1, state.step + 1)]
    assert ticket.draws == state.step


def test_the_best_epoch_is_restored_with_its_random_features() -> None:
    data = dataset()
    recommender = fresh(data)
    recommender.encoder.add_module("ticket", Ticket())
    values = iter([0.1, 0.9, 0.2, 0.3])
    state = fit(recommender, windows(data), FIT, evaluate=lambda _: {"ndcg@10": next(values)})
    drawn = recommender.state_dict()["encoder.ticket.number"].item()
    assert (state.best_epoch, drawn) == (2, state.step / 2)


# Every kind of loss


@pytest.mark.parametrize("repeats", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "loss",
    [
        SoftmaxConfig(sample_above=1, negatives=50),
        BCEConfig(),
        BCEConfig(negatives=4),
        GBCEConfig(negatives=10),
        BPRConfig(),
    ],
    ids=lambda loss: f"{loss.kind}-{loss.negatives}",
)
def test_the_loss_falls_whatever_its_kind(loss: LossConfig, repeats: bool) -> None:
    data = dataset()
    config = FIT.model_copy(update={"epochs": 10, "learning_rate": 1e-2, "loss": loss})
    state = fit(fresh(data, repeats=repeats), windows(data), config, evaluate=None)
    losses = [report.loss for report in state.reports]
    assert losses[-1] < 0.97 * losses[0]


def test_events_without_a_target_are_refused() -> None:
    data = Dataset.of(tiny.gap_world(users=30, length=1))
    with pytest.raises(TrainingError, match="a fit needs targets"):
        fit(fresh(data), windows(data), FIT, evaluate=None)


def test_a_step_passes_over_each_parameter_once() -> None:
    assert make_optimizer(fresh(dataset()), FIT).defaults["fused"] is True
