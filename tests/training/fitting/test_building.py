import numpy as np
import pytest
import torch
from torch import Tensor, nn

from model.batch import SequenceBatch, collate, look_up_history
from model.catalog import Catalog
from model.clock import MICROSECONDS_PER_DAY
from model.encoders.popularity import PopularityConfig
from model.encoders.slrc import SLRC, SLRCConfig
from model.errors import TrainingError
from model.history import Query
from model.recommender import Recommender
from model.time_encodings.damped_rotation import DampedRotationConfig
from model.time_encodings.nonstationary import NonstationaryConfig
from model.wide import WideConfig
from tests import tiny
from tests.training.recipes import RUN
from training.config import BCEConfig, FitConfig, GBCEConfig, LossConfig, RunConfig
from training.data.batches import TrainingWindows
from training.data.dataset import Dataset
from training.fitting.building import build_recommender, count_events
from training.fitting.objective import Objective
from training.fitting.weights import LearnedWeights

KERNEL = RunConfig(
    encoder=tiny.ENCODER.model_copy(
        update={"time_encoding": NonstationaryConfig(components=3), "max_history": 4}
    )
)


def build(data: Dataset, learned: LearnedWeights | None = None) -> Recommender:
    everything = np.ones(len(data), dtype=np.bool_)
    return build_recommender(KERNEL, data, everything, learned=learned)[1].eval()


def log_of_one_user(first_at: int) -> Dataset:
    days = (0, 3, 4, 90, 91, 200, 230, 231, 400, 700)
    log = [("u", f"i{n}", first_at + day * tiny.DAY) for n, day in enumerate(days)]
    return Dataset.of(tiny.event_log(log))


def record_kernels(recommender: Recommender, batch: SequenceBatch) -> dict[str, float]:
    """Encode a batch, and return every K of a query and an event by the two instants."""
    found: dict[str, float] = {}

    def record(_: nn.Module, __: object, kernel: Tensor) -> None:
        for sample, length in enumerate(batch.lengths.tolist()):
            at = batch.origins[sample].item()
            for query in range(length):
                for event in range(query + 1):
                    pair = (batch.query_times[sample, query], batch.times[sample, event])
                    key = str([round(float(one) * MICROSECONDS_PER_DAY) + at for one in pair])
                    found[key] = float(kernel[sample, query, event])

    encoding = recommender.get_submodule("encoder.time_encoding")
    handle = encoding.register_forward_hook(record)
    with torch.no_grad():
        recommender.encode_positions(batch)
    handle.remove()
    return found


def test_a_kernel_of_two_instants_is_the_same_in_every_window() -> None:
    """Training windows begin at several events, and serving cuts a history at another one."""
    data = log_of_one_user(tiny.FIRST_AT)
    recommender = build(data)
    windows = TrainingWindows(data, data.offsets[1:], predict="next_event", max_history=4)
    plan = windows.plan(np.random.default_rng(0), tokens=1_000)
    query = Query(data.history(0)[:-1], int(data.times[-1]))
    served = collate([look_up_history(query, data.catalog, {}, max_history=4)], [query.query_time])
    assert served.origins.item() != data.times[0]
    seen: dict[str, list[float]] = {}
    for batch in [*(windows.build_batch(part).sequences for part in plan), served]:
        for pair, value in record_kernels(recommender, batch).items():
            seen.setdefault(pair, []).append(value)
    shared = [values for values in seen.values() if len(values) > 1]
    assert shared
    for values in shared:
        assert values == pytest.approx([values[0]] * len(values), abs=1e-5)


def test_the_origin_of_a_kernel_is_the_first_event_of_the_data() -> None:
    data = log_of_one_user(tiny.FIRST_AT + 12_345)
    weights = build(data).state_dict()
    assert weights["encoder.time_encoding.origin"].item() == tiny.FIRST_AT + 12_345


def test_weights_that_are_continued_keep_their_origin() -> None:
    first, later = log_of_one_user(tiny.FIRST_AT), log_of_one_user(tiny.FIRST_AT + tiny.DAY)
    continued = build(later, LearnedWeights(build(first), first.catalog))
    assert continued.state_dict()["encoder.time_encoding.origin"].item() == tiny.FIRST_AT


def test_contradicting_settings_are_an_error_of_the_recipe() -> None:
    periods = DampedRotationConfig(shortest_period=10.0, longest_period=1.0)
    config = RUN.model_copy(
        update={"encoder": tiny.ENCODER.model_copy(update={"time_encoding": periods})}
    )
    data = log_of_one_user(tiny.FIRST_AT)
    with pytest.raises(TrainingError, match="contradict each other: periods must be positive"):
        build_recommender(config, data, np.ones(len(data), dtype=np.bool_))


def test_counting_fits_no_wide_part() -> None:
    data = Dataset.of(tiny.gap_world(users=12, length=6))
    config = tiny.recommender_config(
        PopularityConfig(), items=len(data.catalog), wide=WideConfig(), item_bias=True
    )
    with pytest.raises(TrainingError, match="leave the wide part out"):
        count_events(config.build(), data, np.ones(len(data), dtype=np.bool_))


@pytest.mark.parametrize(
    "loss",
    [
        BCEConfig(),
        BCEConfig(negatives=7),
        GBCEConfig(negatives=7),
        GBCEConfig(negatives=7, calibration=0.0),
        GBCEConfig(negatives=500, calibration=1.0),
    ],
)
def test_a_loss_with_negatives_starts_in_balance(loss: LossConfig) -> None:
    """To raise or to lower the scores of all items alike then gains nothing."""
    data = Dataset.of(tiny.gap_world(users=12, length=6))
    config = RunConfig(encoder=tiny.ENCODER, fit=FitConfig(loss=loss))
    everything = np.ones(len(data), dtype=np.bool_)
    recommender = build_recommender(config, data, everything)[1].eval()
    assert recommender.item_bias is not None
    with torch.no_grad():
        recommender.items.weight.zero_()
    windows = TrainingWindows(data, data.offsets[1:], predict="next_event", max_history=6)
    (chosen,) = windows.plan(np.random.default_rng(0), tokens=10_000)
    objective = Objective(recommender, config.fit)
    batch = windows.build_batch(chosen)
    objective.compute_loss(batch, np.random.default_rng(0)).backward()  # type: ignore[no-untyped-call]
    gradient = recommender.item_bias.grad
    assert gradient is not None
    assert gradient.abs().max() > 1e-4
    assert gradient.sum().item() == pytest.approx(0, abs=1e-6)


def test_slrc_starts_at_the_intervals_of_the_training_part() -> None:
    config = RUN.model_copy(update={"encoder": SLRCConfig(dim=8)})
    day = tiny.DAY
    data = Dataset.of(
        tiny.event_log(
            [("u", "a", tiny.FIRST_AT + 10 * day * n) for n in range(40)]
            + [("u", "a", tiny.FIRST_AT + 2000 * day)]
        )
    )
    is_training = np.arange(len(data)) < len(data) - 1
    _, recommender = build_recommender(config, data, is_training)
    assert isinstance(recommender.encoder, SLRC)
    centre = recommender.encoder.state_dict()["kernel.shared"][3] * 70
    torch.testing.assert_close(centre, torch.tensor(10.0))


def test_items_keep_their_kernels_when_the_catalog_changes() -> None:
    config = RUN.model_copy(update={"encoder": SLRCConfig(dim=8)})
    data = Dataset.of(tiny.event_log([("u", item, tiny.FIRST_AT) for item in ("a", "b", "c")]))
    everything = np.ones(len(data), dtype=np.bool_)
    described, _ = build_recommender(config, data, everything)
    learned = described.model_copy(update={"items": 2}).build()
    assert isinstance(learned.encoder, SLRC)
    offsets = learned.encoder.kernel.offsets
    with torch.no_grad():
        offsets.copy_(torch.arange(3.0)[:, None].expand_as(offsets))
    weights = LearnedWeights(learned, Catalog.from_ids(["c", "b"]))
    _, recommender = build_recommender(config, data, everything, learned=weights)
    assert isinstance(recommender.encoder, SLRC)
    # Rows a, b, c; a is new.
    assert recommender.encoder.state_dict()["kernel.offsets"][1:, 0].tolist() == [0, 2, 1]
