"""DIN: a view of the history for every candidate, which may read time by self-modulation."""

from typing import Literal, NamedTuple, final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.config import Config
from model.interfaces import Encoded, Judged, SequenceEncoder
from model.layers.item_groups import ItemGroups
from model.layers.local_activation import LocalActivation
from model.layers.self_modulating import (
    LayerIntensities,
    Modulated,
    ModulationConfig,
    ModulationView,
    SelfModulation,
)

CHUNK = 4_000_000
"""Numbers held at a time of the widest layer there is per pair of a candidate and an event."""


class DINConfig(Config):
    """Attention to the history that depends on the candidate, and a network that judges both."""

    kind: Literal["din"] = "din"
    dim: PositiveInt = 64
    hidden: tuple[PositiveInt, PositiveInt] = (80, 40)
    """Widths of the two hidden layers, of the activation unit and of the judging network each."""
    weights: Literal["softmax", "free"] = "softmax"
    """softmax: a distribution over the events, as coded by the authors; free: as the activation
    unit gives them, so that their sum tells how strong the interest is, as the paper has it.
    """
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Of what the judging network reads."""
    max_history: PositiveInt = 50
    """Events read of a history, the most recent ones."""
    modulation: ModulationConfig | None = None
    """Let the intensity of an event's group scale the attention it gets."""

    def build(self, *, items: int = 0, actions: int = 0) -> "DIN":  # noqa: ARG002
        """The module this describes, for a catalogue of `items`."""
        modulation = self.modulation
        return DIN(
            dim=self.dim,
            hidden=self.hidden,
            weights=self.weights,
            dropout=self.dropout,
            modulation=modulation.build(dim=self.dim, heads=1) if modulation else None,
            item_groups=(ItemGroups(items=items, groups=modulation.groups) if modulation else None),
        )


class Prefixes(NamedTuple):
    """What some questions know of their histories, whatever the candidate.

    Attributes:
        events: item vectors, up to the longest history there is among the questions.
        activation: what the activation unit remembers of them.
        visible: which of them each question may see.
        modulation: what the modulation remembers of them.
        view: their groups, and the interval of each question.
    """

    events: Float[Tensor, "questions len dim"]
    activation: Float[Tensor, "questions len hidden"]
    visible: Bool[Tensor, "questions 1 len"]
    modulation: Float[Tensor, "questions 1 len dim"] | None
    view: ModulationView | None

    def at(self, positions: Int64[Tensor, " questions"]) -> "Prefixes":
        """Of histories that are whole: what questions at these flat positions may see."""
        length = self.events.shape[1]
        sample, place = positions // length, positions % length
        longest = int(place.max()) + 1
        places = torch.arange(longest, device=place.device)
        view = self.view
        if view is not None:
            view = ModulationView(
                view.marks[sample, :longest],
                view.intervals[sample, place].unsqueeze(1),
                view.given[sample, place].unsqueeze(1),
            )
        return Prefixes(
            self.events[sample, :longest],
            self.activation[sample, :longest],
            (places <= place.unsqueeze(1)).unsqueeze(1),
            None if self.modulation is None else self.modulation[sample, :, :longest],
            view,
        )


class Part(NamedTuple):
    """What was worked out of some candidates of some questions.

    Attributes:
        scores: of the candidates.
        weights: of the events up to the longest history among the questions.
        seen: what intensities know of the history, as each candidate sees it; nothing without
            modulation.
    """

    scores: Float[Tensor, "questions candidates"]
    weights: Float[Tensor, "questions candidates len"]
    seen: Float[Tensor, "questions 1 candidates width"]


@final
class DIN(SequenceEncoder):
    """Weighs past events by how much they matter to the candidate, then judges the two together.

        u(q) = W sum_i a(q, k_i) k_i + b,  score(q) = MLP([u(q), q])

    Such a user vector differs from candidate to candidate, so no index can be searched by it: the
    index proposes by the mean of the history's item vectors, which attends to nothing in
    particular, and `judge` decides. With modulation, each event's weight is scaled by the intensity
    of its item's group at the query time, given the history as the candidate sees it (for the
    proposal, as the mean does).

    Shape: candidates (questions, candidates, dim) -> scores (questions, candidates)

    Paper: Zhou et al. 2018, "Deep Interest Network for Click-Through Rate Prediction", eq. 3, with
        sigmoids between layers. With modulation, the general form of Chen et al. 2021, who compare
        with it but leave the layer to the reader: our reading.
    DIFFERS(code): no batch normalisation, as neighbours in a batch must not change an answer.
    DIFFERS(code): items are their vectors, without their categories' beside them.
    DIFFERS(paper): the loss is the trainer's; no mini-batch aware regularisation, no Dice.
    """

    def __init__(
        self,
        *,
        dim: int,
        hidden: tuple[int, int],
        weights: Literal["softmax", "free"],
        dropout: float,
        modulation: SelfModulation | None,
        item_groups: ItemGroups | None,
    ) -> None:
        super().__init__()
        self.dim = dim
        self.is_distribution = weights == "softmax"
        self.is_normalised = self.is_distribution and modulation is None
        self.activation = LocalActivation(dim=dim, hidden=hidden, bias=weights == "free")
        self.modulation = modulation
        self.interest = nn.Linear(dim, dim)
        self.judgement = nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(2 * dim, hidden[0]),
            nn.Sigmoid(),
            nn.Linear(*hidden),
            nn.Sigmoid(),
            nn.Linear(hidden[1], 1),
        )
        self.width = max(dim, *hidden)
        self.item_groups = item_groups

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> Encoded:
        """What to propose candidates by: the mean of the items, modulated where the weights are."""
        share = (batch.rows > 0) / batch.lengths.unsqueeze(-1)
        weights = share[:, None, None]
        if self.modulation is None or self.item_groups is None:
            return Encoded((weights.squeeze(1) @ items).squeeze(1))
        view = ModulationView.of(batch, self.item_groups).at(batch.lengths - 1)
        modulated: Modulated = self.modulation(weights, self.modulation.remember(items), view)
        return Encoded(
            (modulated.weights.squeeze(1) @ items).squeeze(1),
            intensity=modulated.intensity[:, 0, 0],
        )

    def judge(
        self,
        batch: SequenceBatch,
        items: Float[Tensor, "batch len dim"],
        positions: Int64[Tensor, " questions"],
        candidates: Float[Tensor, "questions candidates dim"],
    ) -> Judged:
        """Score candidates at some positions, with how much each event counted for each."""
        histories, length = self._histories(batch, items), items.shape[1]
        # Prefixes of like length go together, so that little is worked out in vain; and few enough
        # of them, and of their candidates, that memory stays small.
        order = (positions % length).argsort()
        count = max(CHUNK // (length * self.width), 1)
        questions = max(count // candidates.shape[1], 1)
        scores: list[Tensor] = []
        attention: list[Tensor] = []
        seen: list[Tensor] = []
        for chosen in torch.split(order, questions):
            prefixes = histories.at(positions[chosen])
            parts = [
                self._judge(prefixes, part)
                for part in torch.split(candidates[chosen], count, dim=1)
            ]
            weights = torch.cat([part.weights for part in parts], dim=1)
            scores.append(torch.cat([part.scores for part in parts], dim=1))
            attention.append(F.pad(weights, (0, length - weights.shape[-1])))
            seen.append(torch.cat([part.seen for part in parts], dim=2))
        as_asked = order.argsort()
        intensities = None
        if self.modulation is not None:
            intensities = LayerIntensities(self.modulation, torch.cat(seen)[as_asked])
        return Judged(torch.cat(scores)[as_asked], torch.cat(attention)[as_asked], intensities)

    def _histories(self, batch: SequenceBatch, items: Tensor) -> Prefixes:
        return Prefixes(
            items,
            self.activation.remember(items),
            (batch.rows > 0).unsqueeze(1),
            None if self.modulation is None else self.modulation.remember(items),
            None if self.item_groups is None else ModulationView.of(batch, self.item_groups),
        )

    def _judge(self, prefixes: Prefixes, candidates: Tensor) -> Part:
        """Some candidates, all at once."""
        seen = candidates.new_zeros(len(candidates), 1, candidates.shape[1], 0)
        weights: Tensor = self.activation(candidates, prefixes.events, prefixes.activation)
        if self.is_distribution:
            weights = weights * self.dim**-0.5
            weights = weights.masked_fill(~prefixes.visible, float("-inf")).softmax(-1)
        else:
            weights = weights.masked_fill(~prefixes.visible, 0.0)
        if self.modulation is not None and prefixes.view is not None:
            shape = candidates.shape[:2]
            view = prefixes.view._replace(
                intervals=prefixes.view.intervals.expand(shape),
                given=prefixes.view.given.expand(shape),
            )
            modulated: Modulated = self.modulation(weights.unsqueeze(1), prefixes.modulation, view)
            weights, seen = modulated.weights.squeeze(1), modulated.intensities.history
        interest = self.interest(weights @ prefixes.events)
        scores: Tensor = self.judgement(torch.cat((interest, candidates), dim=-1))
        return Part(scores.squeeze(-1), weights, seen)
