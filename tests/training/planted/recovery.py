"""Fits the production recommender to planted events, and measures how much of a pattern it finds.

The production recommender is that of the demo's recipe, smaller: a wide part with all of its
features, and exact periods of the calendar beside learned ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float

from model.encoders.self_attention import SelfAttentionConfig
from model.time_encodings.mercer import MercerConfig
from model.wide import WideConfig
from tests.training.planted.generators import PlantedEvents
from tests.training.progress import SilentProgress
from training.config import FitConfig, RunConfig
from training.data.split import ByTimeConfig
from training.evaluation.live_counts import use_counts
from training.evaluation.scoring import score_questions
from training.run import Fitted, Run, begin_run, fit_recommender

ENCODER = SelfAttentionConfig(
    dim=32,
    heads=2,
    layers=1,
    feed_forward=64,
    dropout=0.1,
    max_history=100,
    time_encoding=MercerConfig(periods=8),
    calendar=True,
)
WIDE = WideConfig()
FIT = FitConfig(
    epochs=10,
    patience=10,
    tokens=400,
    learning_rate=5e-3,
    scalar_learning_rate=1e-2,
    warmup_steps=20,
)

Probabilities = Float[np.ndarray, "questions items"]


@dataclass(frozen=True)
class Predictions:
    """The probability of every item at the test questions, by each of three predictors."""

    model: Probabilities
    oracle: Probabilities
    blind: Probabilities

    @property
    def accuracy(self) -> float:
        """How near the model's accuracy is to the oracle's: 1 is as good, 0 as the blind one's."""
        return self._place(_expect_accuracy)

    @property
    def information(self) -> float:
        """How near the model's log likelihood is to the oracle's, as `accuracy`."""
        return self._place(_expect_log_likelihood)

    def _place(self, expect: Callable[[Probabilities, Probabilities], float]) -> float:
        least, most = expect(self.oracle, self.blind), expect(self.oracle, self.oracle)
        return (expect(self.oracle, self.model) - least) / (most - least)

    @property
    def ndcg(self) -> float:
        """The model's expected NDCG@10, as a share of the oracle's."""
        return _expect_ndcg(self.oracle, self.model) / _expect_ndcg(self.oracle, self.oracle)


def build_config(
    *,
    encoder: SelfAttentionConfig = ENCODER,
    wide: WideConfig | None = WIDE,
    seed: int = 0,
    **fit: object,
) -> RunConfig:
    """Build the recipe of the production recommender, or of one without some of its parts."""
    return RunConfig(
        split=ByTimeConfig(test=0.15, validation=0.1),
        encoder=encoder,
        wide=wide,
        fit=FIT.model_copy(update={"seed": seed, **fit}),
        profile_histories=0,
        export_encoder=False,
    )


def fit_planted(config: RunConfig, planted: PlantedEvents, output: Path) -> Fitted:
    """Fit a recommender to planted events, as a training run does."""
    return fit_recommender(begin_planted(config, output), planted.to_frame(), None)


def begin_planted(config: RunConfig, output: Path) -> Run:
    """Begin a training run in an empty directory."""
    return begin_run(config, output, progress=SilentProgress())


@torch.no_grad()
def predict_test(fitted: Fitted, planted: PlantedEvents, *, live: bool = False) -> Predictions:
    """Predict the items of the test questions.

    Args:
        live: count popularity up to each query time, instead of up to the end of the training.
    """
    recommender, split = fitted.model.recommender, fitted.split
    dataset, questions = split.dataset, split.test
    columns = [int(item_id[1:]) for item_id in dataset.catalog.item_ids]
    model = np.zeros((len(questions), planted.oracle.shape[1]))
    with use_counts(recommender, fitted.live if live else recommender.counts):
        for block in score_questions(
            recommender, dataset, questions, max_history=fitted.model.config.encoder.max_history
        ):
            probabilities = torch.softmax(block.scores[:, 1:].double(), -1).numpy()
            model[np.ix_(block.questions, columns)] = probabilities
    # Events of the data set have the order of the planted ones.
    return Predictions(model, planted.oracle[questions.ends], planted.blind[questions.ends])


def _expect_accuracy(oracle: Probabilities, model: Probabilities) -> float:
    """Compute the expected share of hits of the best item; ties are broken evenly."""
    best = model >= model.max(-1, keepdims=True) - 1e-12
    return float(((oracle * best).sum(-1) / best.sum(-1)).mean())


def _expect_log_likelihood(oracle: Probabilities, model: Probabilities) -> float:
    return float((oracle * np.log(np.maximum(model, 1e-12))).sum(-1).mean())


def _expect_ndcg(oracle: Probabilities, model: Probabilities) -> float:
    order = np.argsort(-model, axis=-1, kind="stable")[:, :10]
    gains = 1 / np.log2(np.arange(2, order.shape[1] + 2))
    return float((np.take_along_axis(oracle, order, -1) * gains).sum(-1).mean())
