"""What a training run is, in one frozen object that reads from one TOML file."""

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
)

from model.config import Config
from model.encoders import EncoderConfig
from model.encoders.self_attention import SelfAttentionConfig
from model.errors import TrainingError
from training.data.split import ByTimeConfig, Predict, SplitConfig

RECIPES = Path(__file__).parent / "recipes"


class DataConfig(Config):
    """Which events count, and what is to be predicted from them."""

    min_item_events: PositiveInt = 1
    min_user_events: PositiveInt = 1
    predict: Predict = "next_event"
    ignored_actions: tuple[str, ...] = ()
    """Actions whose events are neither learned from nor read, such as cancellations."""
    read_actions: bool = False
    """Whether the model reads what was done with an item, beside which item it was."""
    exclude_seen: bool = False
    """Whether evaluation leaves out what the user has already met."""
    sampled_metrics: bool = False
    """Whether targets are also ranked among a hundred random items, as the older papers do."""
    groups: Literal["categories", "clusters"] = "clusters"
    """Where the groups of items come from, for encoders that want them."""


class SoftmaxConfig(Config):
    """Cross-entropy over the whole catalogue, or over shared negatives where it is too large."""

    kind: Literal["softmax"] = "softmax"
    sample_above: NonNegativeInt = 100_000
    """Catalogue size above which the softmax is sampled; 0 always samples."""
    negatives: PositiveInt = 4_096
    """Shared negatives per batch where the softmax is sampled."""


class BCEConfig(Config):
    """Binary cross-entropy of the target against items the user has not met in training."""

    kind: Literal["bce"] = "bce"
    negatives: PositiveInt = 1
    """Per target."""


class GBCEConfig(Config):
    """Generalised binary cross-entropy: the target's probability is raised to a power below one,
    which undoes the overconfidence that sampling negatives brings (Petrov and Macdonald 2023).
    """

    kind: Literal["gbce"] = "gbce"
    negatives: PositiveInt = 256
    """Per window of a history, shared by its targets."""
    calibration: float = Field(default=0.75, ge=0, le=1)
    """0 is plain binary cross-entropy, 1 corrects for sampling in full."""


class BPRConfig(Config):
    """Bayesian personalised ranking: the target above items the user has not met in training."""

    kind: Literal["bpr"] = "bpr"
    negatives: PositiveInt = 1
    """Per target."""


LossConfig = Annotated[
    SoftmaxConfig | BCEConfig | GBCEConfig | BPRConfig, Field(discriminator="kind")
]


class ContinuousTimeConfig(Config):
    """The point-process likelihood that regularises self-modulating attention (CTReg)."""

    weight: NonNegativeFloat = 0.0
    """What it counts beside the loss of the items; 0 leaves it out."""
    integral: Literal["monte_carlo", "right_end"] = "monte_carlo"
    """One uniform draw per interval, unbiased; or half the right end, as the authors code it."""


class FitConfig(Config):
    """How weights are found."""

    epochs: PositiveInt = 30
    """At most; early stopping may end sooner."""
    patience: PositiveInt = 5
    """Evaluations without improvement before stopping."""
    evaluate_every: PositiveInt = 1
    """Epochs between evaluations on the validation questions."""
    monitor: Literal["ndcg@10", "hit_rate@10", "mrr", "accuracy"] = "ndcg@10"
    tokens: PositiveInt = 6_400
    """Places per batch: histories times their padded length."""
    learning_rate: PositiveFloat = 1e-3
    warmup_steps: NonNegativeInt = 100
    decay: Literal["constant", "cosine"] = "cosine"
    """What the learning rate does after the warm-up, towards the last epoch."""
    weight_decay: NonNegativeFloat = 0.01
    clip: PositiveFloat = 1.0
    """Bound on the norm of the weights' gradient."""
    frequency_learning_rate: PositiveFloat = 1e-3
    frequency_clip: PositiveFloat = 0.1
    """Frequencies have a rate and a bound of their own: their gradient grows with the interval."""
    query_time_dropout: float = Field(default=0.1, ge=0, lt=1)
    """Share of training positions whose query time is withheld, so the model can do without."""
    loss: LossConfig = SoftmaxConfig()
    """What is minimised over the items."""
    next_time_weight: NonNegativeFloat = 1.0
    """What the likelihood of the next event's time counts, for encoders that give one."""
    continuous_time: ContinuousTimeConfig = ContinuousTimeConfig()
    """For encoders with self-modulating attention."""
    refit: bool = False
    """Once measured, train again on all events, for as many epochs as were best."""
    seed: int = 0


GateMetric = Literal["ndcg@10", "hit_rate@10", "mrr", "accuracy"]


class GateConfig(Config):
    """The `[gate]` table of a recipe: thresholds, all in the units of the metric they speak of."""

    metric: GateMetric = "ndcg@10"
    """What challenger, champion and references are compared by, as a mean over questions."""
    questions: PositiveInt = 100
    """At least so many questions, or a comparison says nothing."""
    floor: float = Field(default=0.0, ge=0, le=1)
    """The least the metric may be."""
    may_lose: float = Field(default=0.01, ge=0, le=1)
    """How far behind the champion the challenger may be: the lower end of the 95 % interval of its
    lead (paired bootstrap over the questions) must be above minus this."""
    popularity_lead: float = Field(default=0.0, ge=-1, le=1)
    """The lower end of the interval of its lead over popularity must be above this; popularity is
    that of all time or of the last week, whichever is harder to beat."""
    index_recall: float = Field(default=0.99, ge=0, le=1)
    """Share of the exact ten best items that the index must find."""
    p95_seconds: PositiveFloat = 0.1
    """The 95th percentile of the time an answer takes, on one thread of the machine that trains."""


class RunConfig(Config):
    """Everything that decides the outcome of a run, besides the events."""

    data: DataConfig = DataConfig()
    split: SplitConfig = ByTimeConfig()
    encoder: EncoderConfig = SelfAttentionConfig()
    item_bias: bool = True
    fit: FitConfig = FitConfig()
    profile_histories: NonNegativeInt = 1_000
    """Histories whose attention is averaged for the bundle's attention profile; 0 for none."""
    gate: GateConfig = GateConfig()
    """What a retrained model must show before it is served."""

    @classmethod
    def read(cls, recipe: str | Path) -> "RunConfig":
        """Read a recipe: a TOML file, or the name of one that ships with Kairos.

        Raises:
            TrainingError: if there is no such recipe, or it names unknown or unfit settings.
        """
        path = RECIPES / f"{recipe}.toml" if str(recipe) in shipped_recipes() else Path(recipe)
        try:
            return cls.model_validate(tomllib.loads(path.read_text("utf-8")))
        except FileNotFoundError as error:
            raise TrainingError(
                f"a recipe must be a TOML file or one of {shipped_recipes()}, but got {recipe!s}; "
                "check the path"
            ) from error
        except ValidationError as error:
            raise TrainingError(
                f"a recipe names known settings with values that fit, but {path.name} does not: "
                f"{_told(error)}; correct it"
            ) from error
        except ValueError as error:
            raise TrainingError(
                f"a recipe must be TOML, but {path.name} is not: {error}; correct it"
            ) from error


def _told(error: ValidationError) -> str:
    """Every broken rule on one line, each with its setting."""
    return ", ".join(
        f"{'.'.join(map(str, broken['loc']))}: {broken['msg'][:1].lower()}{broken['msg'][1:]} "
        f"(got {broken['input']!r})"
        for broken in error.errors()
    )


def shipped_recipes() -> list[str]:
    """The names of the recipes that ship with Kairos."""
    return sorted(path.stem for path in RECIPES.glob("*.toml"))
