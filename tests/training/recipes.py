"""Recipes that train in a moment on `tiny.gap_world`."""

from tests import tiny
from training.config import DataConfig, FitConfig, RunConfig
from training.data.split import ByTimeConfig

RUN = RunConfig(
    data=DataConfig(read_actions=True),
    split=ByTimeConfig(test=0.15, validation=0.15),
    encoder=tiny.ENCODER,
    fit=FitConfig(epochs=3, tokens=300, warmup_steps=2),
    export_encoder=False,
)
REFIT = RUN.model_copy(update={"fit": RUN.fit.model_copy(update={"refit": True})})
