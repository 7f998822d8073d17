import numpy as np
import pytest

from model.encoders.popularity import PopularityConfig
from model.errors import TrainingError
from model.wide import WideConfig
from tests import tiny
from training.data.dataset import Dataset
from training.fitting.building import count_events


def test_counting_fits_no_wide_part() -> None:
    data = Dataset.of(tiny.gap_world(users=12, length=6))
    config = tiny.recommender_config(
        PopularityConfig(), items=len(data.catalog), wide=WideConfig(), item_bias=True
    )
    with pytest.raises(TrainingError, match="leave the wide part out"):
        count_events(config.build(), data, np.ones(len(data), dtype=np.bool_))
