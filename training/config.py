"""The settings of a training run: one frozen object, read from one TOML file."""

import tomllib
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    model_validator,
)

from model.config import Config
from model.encoders import EncoderConfig
from model.encoders.self_attention import SelfAttentionConfig
from model.errors import TrainingError
from model.inference.item_map import MOST_ITEMS
from model.time_zone import TimeZoneName
from model.wide import WideConfig
from training.data.split import ByTimeConfig, Predict, SplitConfig
from training.problems import format_with_remedy

RECIPES = Path(__file__).parent / "recipes"


class DataConfig(Config):
    """Filters of the events, and the prediction task."""

    min_item_events: PositiveInt = 1
    """Leave out items with fewer training events: no model recommends them, and as a target of the
    test they are cold. Which they are does not depend on the test."""
    min_user_events: PositiveInt = 1
    """Leave out the events of users with fewer events, those of the test included: it chooses whom
    the model is for, not what it could know."""
    predict: Predict = "next_event"
    """The target: the next event, or all events of the user's next instant that has any."""
    ignored_actions: tuple[str, ...] = ()
    """Actions whose events are left out of histories and targets, such as cancellations."""
    read_actions: bool = False
    """Whether the model reads the action of an event beside its item."""
    exclude_seen: bool = False
    """Whether evaluation leaves out the items of the user's history."""
    sampled_metrics: bool = False
    """Whether targets are also ranked among a hundred random items, as in older papers."""
    time_zone: TimeZoneName = "UTC"
    """Where the users live: the zone of the hours, weekdays and seasons that the model reads."""
    groups: Literal["categories", "clusters"] = "clusters"
    """Source of the item groups, for encoders that use them."""


class SoftmaxConfig(Config):
    """Cross-entropy over the whole catalog, or over shared negatives if it is too large."""

    kind: Literal["softmax"] = "softmax"
    sample_above: NonNegativeInt = 100_000
    """Catalog size above which the softmax is sampled; 0 always samples."""
    negatives: PositiveInt = 4_096
    """Shared negatives per batch, if the softmax is sampled."""


class BCEConfig(Config):
    """Binary cross-entropy of the target against items the user has not seen in training."""

    kind: Literal["bce"] = "bce"
    negatives: PositiveInt = 1
    """Random items per target."""


class GBCEConfig(Config):
    """Generalised binary cross-entropy: the target's probability is raised to a power below one,
    which corrects the overconfidence caused by negative sampling (Petrov and Macdonald 2023).
    """

    kind: Literal["gbce"] = "gbce"
    negatives: PositiveInt = 256
    """Random items per window of a history, shared by its targets."""
    calibration: float = Field(default=0.75, ge=0, le=1)
    """0 is plain binary cross-entropy, 1 corrects for sampling in full."""


class BPRConfig(Config):
    """Bayesian personalised ranking: the target above items the user has not seen in training."""

    kind: Literal["bpr"] = "bpr"
    negatives: PositiveInt = 1
    """Random items per target."""


LossConfig = Annotated[
    SoftmaxConfig | BCEConfig | GBCEConfig | BPRConfig, Field(discriminator="kind")
]


class ContinuousTimeConfig(Config):
    """The point-process likelihood that regularises self-modulating attention (CTReg)."""

    weight: NonNegativeFloat = 0.0
    """Its weight beside the loss of the items; 0 leaves it out."""
    integral: Literal["monte_carlo", "right_end"] = "monte_carlo"
    """One uniform draw per interval, unbiased; or half the right end, as in the authors' code."""


SESSION_SECONDS = 3_600
"""Events that are closer to the user's event before are of one session with it."""


class FitConfig(Config):
    """The settings of the training loop."""

    epochs: PositiveInt = 30
    """Most epochs; early stopping may end the fit sooner."""
    patience: PositiveInt = 5
    """Evaluations without improvement before stopping."""
    evaluate_every: PositiveInt = 1
    """Epochs between evaluations on the validation questions."""
    monitor: Literal["ndcg@10", "hit_rate@10", "mrr", "accuracy"] = "ndcg@10"
    """The validation metric of early stopping; the weights of its best epoch are kept."""
    tokens: PositiveInt = 6_400
    """Positions per batch: histories times their padded length."""
    learning_rate: PositiveFloat = 1e-3
    """Learning rate of the weights after the warm-up."""
    scalar_learning_rate: PositiveFloat | None = None
    """Learning rate of vectors and scalars, such as biases and gates; by default that of the
    matrices. They often have farther to go."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Of the products of the encoder in training. bfloat16 is for GPUs, and less exact; the phases
    of times, the softmax and all weights keep 32 bits or more."""
    warmup_steps: NonNegativeInt = 100
    """Batches over which the learning rates grow from zero."""
    decay: Literal["constant", "cosine"] = "cosine"
    """The schedule of the learning rate after the warm-up, to the last epoch."""
    weight_decay: NonNegativeFloat = 0.01
    """Of matrices; vectors and frequencies are not decayed."""
    averaging: float = Field(default=0.0, ge=0, lt=1)
    """Decay per step of a running average of the weights, which is validated and kept in their
    place; 0 for none."""
    clip: PositiveFloat = 1.0
    """Bound on the norm of the weights' gradient."""
    frequency_learning_rate: PositiveFloat = 1e-3
    """Learning rate of the frequencies of a time encoding."""
    frequency_clip: PositiveFloat = 0.1
    """Bound on the norm of the frequencies' gradient, which grows with the interval."""
    query_time_dropout: float = Field(default=0.1, ge=0, lt=1)
    """Share of training positions whose query time is withheld, so that it is optional."""
    session_weight: float = Field(default=1.0, ge=1e-3, le=1)
    """Weight, in the loss of items, of a target within an hour of the user's event before; others
    weigh 1. Below 1 the model learns more from users who return, and is worse within a session."""
    loss: LossConfig = SoftmaxConfig()
    """The loss of the items."""
    item_vectors: Literal["random", "co_occurrence"] = "random"
    """Initial item vectors: random, or from how often items follow each other. Items that users
    choose together then start close to each other, which saves the first epochs."""
    next_time_weight: NonNegativeFloat = 1.0
    """Weight of the likelihood of the next event's time, for encoders that model it."""
    continuous_time: ContinuousTimeConfig = ContinuousTimeConfig()
    """The likelihood of the event times, for encoders with self-modulating attention."""
    refit_before_test: bool = False
    """Before the test, train again on training and validation events: the test is then as soon
    after the model's last event as a request is in deployment."""
    refit_from: Literal["random", "fitted"] = "random"
    """Weights that a refit begins from: random ones, for the best number of epochs; or the fitted
    ones, for half as many at half the learning rates, which takes half the time."""
    refit: bool = False
    """After evaluation, train again on all events."""
    seed: int = 0
    """Seed of the initial weights, the order of batches, negatives and dropout."""


GateMetric = Literal["ndcg@10", "hit_rate@10", "mrr", "accuracy"]


class GateConfig(Config):
    """The `[gate]` table of a recipe: the thresholds, in the units of their metric."""

    metric: GateMetric = "ndcg@10"
    """The metric that rankers are compared by, as a mean over questions."""
    questions: PositiveInt = 100
    """The least number of questions for a comparison."""
    floor: float = Field(default=0.0, ge=0, le=1)
    """The least value of the metric."""
    may_lose: float = Field(default=0.01, ge=0, le=1)
    """How far behind the champion the challenger may be: the lower end of the 95 % interval of its
    lead (paired bootstrap over the users) must be at least minus this."""
    popularity_lead: float = Field(default=0.0, ge=-1, le=1)
    """The lower end of the interval of its lead over popularity must be above this; popularity is
    that of all time or of the last week, the better of the two."""
    index_recall: float = Field(default=0.99, ge=0, le=1)
    """The least share of the exact ten best items that the index must find."""
    p95_seconds: PositiveFloat = 0.1
    """Bound on the 95th percentile of the latency, on one thread of the training machine."""
    user_share: float = Field(default=0.2, gt=0, le=1)
    """Bound on the share of the events that one user has: a crawler, or a shared account."""
    item_share: float = Field(default=0.2, gt=0, le=1)
    """Bound on the share of the events that are one item's, of users four fifths of whose events
    are of it: accounts that promote it. Not checked with fewer than 20 items."""


class IndexConfig(Config):
    """The `[index]` table of a recipe: how a bundle finds the best items for a user vector."""

    exact_up_to: NonNegativeInt = 50_000
    """Items up to which a search scores all; of more it scores the candidates that an inverted file
    finds, if that is faster."""
    recall: float = Field(default=0.995, gt=0, le=1)
    """The least mean share of the exact hundred best items that a search must find. It decides how
    much of the inverted file is read."""


NOT_FITTED = frozenset({"gate", "export_encoder", "index"})
"""Settings that change nothing of a fit: with others of them an interrupted run resumes."""


class RunConfig(Config):
    """All settings of a run; with the events and the seed they determine its outcome."""

    data: DataConfig = DataConfig()
    split: SplitConfig = ByTimeConfig()
    encoder: EncoderConfig = SelfAttentionConfig()
    item_bias: bool = True
    """Give every item a learned bias beside its similarity with the user vector."""
    wide: WideConfig | None = None
    """Counted features of the score beside the encoder."""
    fit: FitConfig = FitConfig()
    profile_histories: NonNegativeInt = 1_000
    """Histories averaged in the bundle's attention profile; 0 for no profile."""
    map_items: Annotated[int, Field(ge=0, le=MOST_ITEMS)] = MOST_ITEMS
    """Items on the bundle's map, those with the most events; fewer than 50 are not mapped."""
    export_encoder: bool = True
    """Export the encoder as a program of ONNX Runtime, which takes ten seconds and more. A model
    without one answers alike, but more slowly."""
    index: IndexConfig = IndexConfig()
    """How the items of the bundle are searched."""
    gate: GateConfig = GateConfig()
    """The conditions for a retrained model to be served."""

    @model_validator(mode="after")
    def _require_baskets_to_be_predicted(self) -> "RunConfig":
        reads_baskets = isinstance(self.encoder, SelfAttentionConfig) and self.encoder.baskets
        if reads_baskets and self.data.predict != "next_basket":
            # Events of a basket attend to each other: one would read the next one, its target.
            raise ValueError(
                "an encoder that reads baskets predicts the next one, but data.predict is "
                f"{self.data.predict}; set it to next_basket, or encoder.baskets to false"
            )
        return self

    def replace_fit(self, changes: dict[str, int]) -> "RunConfig":
        """Copy the recipe with other settings of its `[fit]` table.

        Raises:
            TrainingError: if a value is invalid.
        """
        settings = self.fit.model_dump() | changes
        try:
            # Validated: a copy would take any value.
            return RunConfig.model_validate({**self.model_dump(), "fit": settings})
        except ValidationError as error:
            raise TrainingError(
                f"a setting has a value that fits, but these have not: {format_with_remedy(error)}"
            ) from error

    @classmethod
    def read(cls, recipe: str | Path) -> "RunConfig":
        """Read a recipe: a TOML file, or the name of one that ships with Kairos.

        Raises:
            TrainingError: if there is no such recipe, or a setting is unknown or invalid.
        """
        path = RECIPES / f"{recipe}.toml" if str(recipe) in list_shipped_recipes() else Path(recipe)
        try:
            return cls.model_validate(tomllib.loads(path.read_text("utf-8")))
        except FileNotFoundError as error:
            raise TrainingError(
                f"a recipe must be a TOML file or one of {list_shipped_recipes()}, but got "
                f"{recipe!s}; check the path"
            ) from error
        except ValidationError as error:
            raise TrainingError(
                f"a recipe names known settings with values that fit, but {path.name} does not: "
                f"{format_with_remedy(error)}"
            ) from error
        except ValueError as error:
            raise TrainingError(
                f"a recipe must be TOML, but {path.name} is not: {error}; correct it"
            ) from error


def list_shipped_recipes() -> list[str]:
    """List the names of the recipes that ship with Kairos."""
    return sorted(path.stem for path in RECIPES.glob("*.toml"))
