"""A cadence per item is found by the methods that read repeats and the query time."""

from pathlib import Path

import pytest

from model.encoders.slrc import SLRCConfig
from model.encoders.taiw import TAIWConfig
from tests.training.planted.generators import plant_cadences
from tests.training.planted.recovery import build_config, fit_planted, predict_test

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

# Personal frequency: accuracy below -.1, NDCG .76 to .82 of the oracle's (`test_cadences.py`).


def test_slrc_finds_the_cadence_of_each_item(tmp_path: Path) -> None:
    planted = plant_cadences(seed=0)
    config = build_config(
        encoder=SLRCConfig(dim=16, max_history=100, dropout=0.1),
        wide=None,
        epochs=12,
        learning_rate=3e-2,
        scalar_learning_rate=3e-2,
    )
    found = predict_test(fit_planted(config, planted, tmp_path), planted)
    # Seeds 0 to 5: accuracy .65 to .72, information .58 to .62, NDCG .94 to .96 of the oracle's.
    assert found.accuracy > 0.4
    assert found.information > 0.4
    assert found.ndcg > 0.9


@pytest.mark.parametrize("neighbours", [0, 5])
def test_taiw_finds_much_of_the_cadence(tmp_path: Path, neighbours: int) -> None:
    planted = plant_cadences(seed=0)
    config = build_config(
        encoder=TAIWConfig(neighbours=neighbours, own_weight=0.9, start="own", steps=0), wide=None
    )
    found = predict_test(fit_planted(config, planted, tmp_path), planted)
    # Seeds 0 to 6: accuracy .31 to .50, NDCG .88 to .91 of the oracle's.
    assert found.accuracy > 0.25
    assert found.ndcg > 0.88
