import numpy as np
import pytest
import torch

from model.catalog import Catalog
from model.encoders.popularity import PopularityConfig
from model.encoders.slrc import SLRC, SLRCConfig
from model.errors import TrainingError
from model.wide import WideConfig
from tests import tiny
from tests.training.recipes import RUN
from training.data.dataset import Dataset
from training.fitting.building import build_recommender, count_events
from training.fitting.weights import LearnedWeights


def test_counting_fits_no_wide_part() -> None:
    data = Dataset.of(tiny.gap_world(users=12, length=6))
    config = tiny.recommender_config(
        PopularityConfig(), items=len(data.catalog), wide=WideConfig(), item_bias=True
    )
    with pytest.raises(TrainingError, match="leave the wide part out"):
        count_events(config.build(), data, np.ones(len(data), dtype=np.bool_))


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
