from pathlib import Path

import pytest
import torch

from model.encoders import EncoderConfig
from model.encoders.gru4rec import GRU4RecConfig
from model.errors import ForeignCheckpointError, TrainingError
from model.recommender import Recommender, RecommenderConfig
from tests import tiny
from training.config import FitConfig
from training.data.batches import TrainingWindows
from training.data.dataset import Dataset
from training.fitting.checkpoint import CHECKPOINT, load_checkpoint, save_checkpoint
from training.fitting.fit import FitState, fit, make_optimizer

FIT = FitConfig(epochs=4, tokens=200, warmup_steps=2)


def windows() -> TrainingWindows:
    data = Dataset.of(tiny.gap_world(users=12, length=6))
    return TrainingWindows(data, data.offsets[1:], predict="next_event", max_history=6)


def fresh() -> Recommender:
    torch.manual_seed(0)
    return tiny.recommender_config().build()


def begin(directory: Path, epochs: int) -> None:
    """Run some epochs, saving after each, as `training.run` does."""
    recommender, values = fresh(), iter([0.2, 0.3, 0.1, 0.0])

    def save(state: FitState, current: Recommender, optimizer: torch.optim.Optimizer) -> None:
        save_checkpoint(directory, "recipe", state, current, optimizer)

    fit(
        recommender,
        windows(),
        FIT,
        evaluate=lambda _: {"ndcg@10": next(values)},
        stop_after=epochs,
        on_epoch=save,
    )


def test_a_run_resumed_from_disk_ends_with_the_same_weights(tmp_path: Path) -> None:
    whole = fresh()
    fit(whole, windows(), FIT, evaluate=None)
    begin(tmp_path, epochs=2)
    resumed = fresh()
    optimizer = make_optimizer(resumed, FIT)
    state = load_checkpoint(tmp_path, "recipe", resumed, optimizer)
    assert state is not None
    state.best_weights, state.best_epoch = {}, 0
    fit(resumed, windows(), FIT, evaluate=None, state=state, optimizer=optimizer)
    for found, expected in zip(
        resumed.state_dict().values(), whole.state_dict().values(), strict=True
    ):
        assert torch.equal(found, expected)


def test_the_state_of_a_run_survives_a_round_trip(tmp_path: Path) -> None:
    begin(tmp_path, epochs=3)
    recommender = fresh()
    state = load_checkpoint(tmp_path, "recipe", recommender, make_optimizer(recommender, FIT))
    assert state is not None
    assert (state.epoch, state.best_epoch, state.best_value) == (3, 2, 0.3)
    assert [report.validation for report in state.reports] == [
        {"ndcg@10": value} for value in (0.2, 0.3, 0.1)
    ]
    assert state.best_weights.keys() == recommender.state_dict().keys()
    assert not torch.equal(
        state.best_weights["items.weight"], recommender.state_dict()["items.weight"]
    )


@pytest.mark.filterwarnings("ignore:for .* copying from a non-meta parameter")
def test_averaged_weights_are_loaded_to_the_device_of_the_rest(tmp_path: Path) -> None:
    recommender = fresh()
    averaged = {name: one.detach().clone() for name, one in recommender.named_parameters()}
    state = FitState(averaged_weights=averaged)
    save_checkpoint(tmp_path, "recipe", state, recommender, make_optimizer(recommender, FIT))
    # The one device beside the CPU that every machine has.
    elsewhere = fresh().to("meta")
    loaded = load_checkpoint(tmp_path, "recipe", elsewhere, make_optimizer(elsewhere, FIT))
    assert loaded is not None
    assert {one.device for one in loaded.averaged_weights.values()} == {elsewhere.device}


def test_without_a_checkpoint_there_is_nothing_to_resume(tmp_path: Path) -> None:
    recommender = fresh()
    optimizer = make_optimizer(recommender, FIT)
    assert load_checkpoint(tmp_path, "recipe", recommender, optimizer) is None


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    begin(tmp_path, epochs=1)
    recommender = fresh()
    with pytest.raises(TrainingError, match="belongs to others; choose another output"):
        load_checkpoint(tmp_path, "other", recommender, make_optimizer(recommender, FIT))


def test_only_the_finished_checkpoint_stands_in_the_directory(tmp_path: Path) -> None:
    begin(tmp_path, epochs=2)
    assert [path.name for path in tmp_path.iterdir()] == [CHECKPOINT]


@pytest.mark.parametrize(
    "encoder", [GRU4RecConfig(dim=8), tiny.ENCODER.model_copy(update={"feed_forward": 16})]
)
def test_a_checkpoint_with_other_weights_is_refused(tmp_path: Path, encoder: EncoderConfig) -> None:
    recommender = fresh()
    optimizer = make_optimizer(recommender, FIT)
    save_checkpoint(tmp_path, "recipe", FitState(), recommender, optimizer)
    other = RecommenderConfig(items=tiny.ITEMS, encoder=encoder).build()
    with pytest.raises(ForeignCheckpointError, match=r"differs in '.*'; delete it to start again"):
        load_checkpoint(tmp_path, "recipe", other, make_optimizer(other, FIT))
