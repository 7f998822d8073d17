"""The settings of the peers: one config a model, with its library's names where they differ."""

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from model.config import Config

Library = Literal["rectools", "replay"]


class _PeerBase(Config):
    """The settings that all peers have."""

    max_history: PositiveInt = 200
    """Events that the model reads, the latest of a history."""
    windows: Literal["latest", "all"] = "latest"
    """Training targets of a longer history: the latest `max_history`, as the libraries choose them,
    or all, in windows."""
    shuffle_instants: bool = False
    """Whether events of one instant are in random order, drawn once a seed, not by item. Sorted
    baskets teach a next-item model their order."""
    epochs: PositiveInt = 200
    """Most epochs."""
    patience: PositiveInt = 5
    """Evaluations without improvement before stopping."""
    evaluate_every: PositiveInt = 1
    """Epochs between evaluations."""
    validation_questions: PositiveInt = 5_000
    """Questions of early stopping, a fixed sample if there are more."""
    refit: Literal[True] = True
    """Fixed: the test is of a second fit, on training and validation events for the best number of
    epochs."""


class _TransformerBase(_PeerBase):
    """The settings of all transformers."""

    dim: PositiveInt = 64
    """Width of the model."""
    blocks: PositiveInt = 2
    """Transformer blocks."""
    heads: PositiveInt = 2
    """Attention heads."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout rate."""
    learning_rate: PositiveFloat = 1e-3
    """Of Adam, constant, with the library's betas of 0.9 and 0.98."""
    batch_size: PositiveInt = 128
    """Sequences per batch."""


class RecToolsEASEConfig(_PeerBase):
    """EASE of RecTools (`EASEModel`; Steck 2019): a linear map of the items of a history.

    It reads neither their order nor their times, and is computed at once, in one epoch.
    """

    kind: Literal["rectools_ease"] = "rectools_ease"
    max_history: PositiveInt = 1_000
    """Events that the model reads, the latest of a history."""
    epochs: Literal[1] = 1
    """Fixed: the weights have a closed form."""
    regularization: PositiveFloat = 500.0
    """Added to the diagonal of the items' co-occurrences (lambda)."""


class RecToolsLoss(_TransformerBase):
    """The losses of RecTools."""

    loss: Literal["softmax", "sampled_softmax", "BCE", "gBCE"] = "softmax"
    """Over the whole catalog, or with negatives for each position."""
    negatives: PositiveInt = 256
    """Items per position, drawn uniformly, for every loss but softmax (`n_negatives`)."""
    calibration: float = Field(default=0.75, ge=0, le=1)
    """Of gBCE (`gbce_t`)."""
    session_weight: float = Field(default=1.0, gt=0, le=1)
    """Weight of targets within a session with the event before, as `FitConfig.session_weight`: the
    library multiplies the loss of a target by its weight. RePlay has no weights."""


class RecToolsSASRecConfig(RecToolsLoss):
    """SASRec of RecTools (`SASRecModel`)."""

    kind: Literal["rectools_sasrec"] = "rectools_sasrec"


class RecToolsLiGRConfig(RecToolsLoss):
    """SASRec with LiGR layers, padding masked: with a sampled softmax this is eSASRec."""

    kind: Literal["rectools_ligr"] = "rectools_ligr"
    loss: Literal["softmax", "sampled_softmax", "BCE", "gBCE"] = "sampled_softmax"
    """As of the other models of RecTools."""
    feed_forward_factor: PositiveInt = 4
    """Width of the SwiGLU, in widths of the model (`ff_factors_multiplier`)."""


class RecToolsHSTUConfig(RecToolsLoss):
    """HSTU of RecTools (`HSTUModel`), with cosine similarity."""

    kind: Literal["rectools_hstu"] = "rectools_hstu"
    loss: Literal["softmax", "sampled_softmax", "BCE", "gBCE"] = "sampled_softmax"
    """As of the other models of RecTools."""
    negatives: PositiveInt = 128
    """As of the other models of RecTools."""
    temperature: PositiveFloat = 0.05
    """The logits are divided by it (`logits_t`)."""
    relative_time: bool = True
    """Attention bias of the interval to the time of the target, which is the query time in the test
    (`relative_time_attention`). With it, the test is also ranked with the query time withheld."""
    relative_positions: bool = True
    """Attention bias of the distance in positions (`relative_pos_attention`)."""


class _RePlayLoss(_TransformerBase):
    """The losses of RePlay."""

    loss: Literal["CE", "BCE"] = "CE"
    """Over the whole catalog, or with negatives."""
    negatives: PositiveInt | None = None
    """Items per position, drawn uniformly (`loss_sample_count`); by default all."""


class RePlaySASRecConfig(_RePlayLoss):
    """SASRec of RePlay."""

    kind: Literal["replay_sasrec"] = "replay_sasrec"


class RePlayTiSASRecConfig(_RePlayLoss):
    """SASRec of RePlay with intervals (`ti_modification`).

    RePlay clips intervals in the unit of its timestamps at a number of units; TiSASRec's unit is
    the user's shortest interval.
    """

    kind: Literal["replay_tisasrec"] = "replay_tisasrec"
    time_span: PositiveInt = 256
    """Most units of an interval."""
    time_unit: PositiveFloat = 86_400
    """Seconds of a unit. It has one vector a unit, up to `time_span`."""


PeerConfig = Annotated[
    RecToolsEASEConfig
    | RecToolsSASRecConfig
    | RecToolsLiGRConfig
    | RecToolsHSTUConfig
    | RePlaySASRecConfig
    | RePlayTiSASRecConfig,
    Field(discriminator="kind"),
]


CLOSED_FORMS = frozenset({"rectools_ease"})
"""Kinds whose weights are computed at once: nothing is random, and they have no transformer."""


def find_library(config: PeerConfig) -> Library:
    """Find the library of a peer: the first word of its kind."""
    return "rectools" if config.kind.startswith("rectools") else "replay"
