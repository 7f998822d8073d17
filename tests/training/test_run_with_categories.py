"""Categories change the weights only if groups of items come from them."""

from pathlib import Path

import polars as pl
import pytest
import torch

from model.encoders import EncoderConfig
from model.inference.predictor import Predictor
from model.layers.self_modulation import ModulationConfig
from model.store.opening import open_predictor
from tests import tiny
from tests.training.progress import RecordingProgress
from training.config import DataConfig, FitConfig, RunConfig
from training.data.split import ByTimeConfig
from training.run import train

MODULATED = tiny.ENCODER.model_copy(update={"modulation": ModulationConfig(groups=3)})


def trained(
    events: pl.DataFrame, categories: list[str], encoder: EncoderConfig, output: Path
) -> Predictor:
    ids = events["item_id"].unique().sort()
    items = pl.DataFrame(
        {"item_id": ids, "title": ids, "categories": [categories] * len(ids)},
        schema_overrides={"categories": pl.List(pl.String)},
    )
    run = RunConfig(
        data=DataConfig(groups="clusters"),
        split=ByTimeConfig(test=0.15, validation=0.15),
        encoder=encoder,
        fit=FitConfig(epochs=1, tokens=300, warmup_steps=2),
        export_encoder=False,
    )
    return open_predictor(train(run, events, items, output, progress=RecordingProgress()).bundle)


@pytest.mark.slow
@pytest.mark.parametrize("encoder", [tiny.ENCODER, MODULATED], ids=["plain", "modulated"])
def test_categories_do_not_change_the_weights(encoder: EncoderConfig, tmp_path: Path) -> None:
    events = tiny.gap_world(users=15, length=8)
    without = trained(events, [], encoder, tmp_path / "without")
    having = trained(events, ["a", "b"], encoder, tmp_path / "with")
    assert (without.catalog.categories[0], having.catalog.categories[0]) == ((), ("a", "b"))
    one, other = (predictor.bundle.recommender.state_dict() for predictor in (without, having))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
