"""DIN: attention to the history that depends on the candidate item, optionally modulated."""

from typing import Literal, NamedTuple, final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.config import Config
from model.interfaces import CandidateScores, EncoderOutput, SequenceEncoder
from model.layers.dropout import Dropout
from model.layers.item_groups import ItemGroups
from model.layers.local_activation import LocalActivation
from model.layers.running_scale import RunningScale
from model.layers.self_modulation import (
    LayerIntensities,
    ModulationConfig,
    ModulationInputs,
    ModulationOutput,
    SelfModulation,
)

MAX_CHUNK_ELEMENTS = 4_000_000
"""Elements held at a time of the widest layer per pair of a candidate and an event."""


class DINConfig(Config):
    """Candidate-dependent attention to the history, and a network that scores the pair."""

    kind: Literal["din"] = "din"
    dim: PositiveInt = 64
    """Width of item and user vectors."""
    hidden: tuple[PositiveInt, PositiveInt] = (80, 40)
    """Widths of the two hidden layers, of the activation unit and of the scoring network each."""
    weights: Literal["softmax", "free"] = "softmax"
    """softmax: a distribution over the events, as in the authors' code; free: the activations
    themselves, whose sum measures the strength of the interest, as in the paper.
    """
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout of the scoring network's input."""
    max_history: PositiveInt = 50
    """Events of a history in use, the most recent ones."""
    modulation: ModulationConfig | None = None
    """Scale the attention weight of an event by the intensity of its item's group."""

    def build(self, *, items: int = 0, actions: int = 0) -> "DIN":  # noqa: ARG002
        """Build the module for a catalog of `items`."""
        modulation = self.modulation
        return DIN(
            dim=self.dim,
            hidden=self.hidden,
            weights=self.weights,
            dropout=self.dropout,
            modulation=modulation.build(dim=self.dim, heads=1) if modulation else None,
            item_groups=(ItemGroups(items=items, groups=modulation.groups) if modulation else None),
        )


class QueryHistories(NamedTuple):
    """Projections of the histories that do not depend on the candidate, one row per query.

    Attributes:
        events: scaled item vectors, up to the longest history among the queries.
        activation: their term of the activation unit.
        visible: which events each query may attend to.
        modulation: their values for the intensities.
        inputs: their group membership, and the interval of each query.
    """

    events: Float[Tensor, "queries len dim"]
    activation: Float[Tensor, "queries len hidden"]
    visible: Bool[Tensor, "queries 1 len"]
    modulation: Float[Tensor, "queries 1 len dim"] | None
    inputs: ModulationInputs | None

    def select(self, positions: Int64[Tensor, " queries"]) -> "QueryHistories":
        """Select, from one row per history, the prefixes that end at flat positions."""
        length = self.events.shape[1]
        sample, last = positions // length, positions % length
        # A device would have to tell the host the longest of these.
        longest = int(last.max()) + 1 if last.device.type == "cpu" else length
        event_positions = torch.arange(longest, device=last.device)
        inputs = self.inputs
        if inputs is not None:
            inputs = ModulationInputs(
                inputs.membership[sample, :longest],
                inputs.intervals[sample, last].unsqueeze(1),
                inputs.given[sample, last].unsqueeze(1),
            )
        return QueryHistories(
            self.events[sample, :longest],
            self.activation[sample, :longest],
            (event_positions <= last.unsqueeze(1)).unsqueeze(1),
            None if self.modulation is None else self.modulation[sample, :, :longest],
            inputs,
        )


class ChunkOutput(NamedTuple):
    """The output for one chunk of queries and candidates.

    Attributes:
        scores: of the candidates.
        weights: of the events, up to the longest history among the queries.
        context: the context of the intensities per candidate; of width 0 without modulation.
    """

    scores: Float[Tensor, "queries candidates"]
    weights: Float[Tensor, "queries candidates len"]
    context: Float[Tensor, "queries 1 candidates width"]


@final
class DIN(SequenceEncoder):
    """Weights past events by their relevance to the candidate, then scores both by a perceptron.

        u(q) = W s(sum_i a(q, k_i) k_i) + b,  score(q) = MLP([u(q), q])

    where all item vectors, and the sums of them, are divided by a running root mean square (`s`).

    The user vector differs by candidate, so no index can be searched by it. `forward` retrieves
    candidates by the mean of the history's item vectors, without attention, and `score_candidates`
    reranks them. With modulation, each event's weight is scaled by the intensity of its item's
    group at the query time, given the history as the candidate weights it (for retrieval, as the
    mean weights it).

    Shape: candidates (queries, candidates, dim) -> scores (queries, candidates)

    Paper: Zhou et al. 2018, "Deep Interest Network for Click-Through Rate Prediction", eq. 3, with
        PReLU between layers. With modulation, the general form of Chen et al. 2021, who compare
        with it but do not define the layer; this form is ours.
    DIFFERS(code): instead of batch normalisation, division by one running root mean square, and
        dropout before the scoring network, so that an output does not depend on the rest of the
        batch. Without either the sum of a long history is so short beside the candidate that the
        network learns how popular the candidate is, and nothing of the user.
    DIFFERS(code): PReLU, the paper's, instead of sigmoids, whose small slopes do the same.
    DIFFERS(code): items are their vectors, without their categories' vectors beside them.
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
        self.history_scale = RunningScale()
        self.item_scale = RunningScale()
        self.interest_proj = nn.Linear(dim, dim)
        self.scoring = nn.Sequential(
            Dropout(dropout),
            nn.Linear(2 * dim, hidden[0]),
            nn.PReLU(),
            nn.Linear(*hidden),
            nn.PReLU(),
            nn.Linear(hidden[1], 1),
        )
        self.width = max(dim, *hidden)
        self.item_groups = item_groups

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> EncoderOutput:
        """Compute the vector for retrieval: the mean item vector, modulated if configured."""
        uniform = (batch.rows > 0) / batch.lengths.unsqueeze(-1)
        weights = uniform[:, None, None]
        if self.modulation is None or self.item_groups is None:
            return EncoderOutput((weights.squeeze(1) @ items).squeeze(1))
        inputs = ModulationInputs.from_batch(batch, self.item_groups).select(batch.lengths - 1)
        values = self.modulation.project_values(items)
        modulated: ModulationOutput = self.modulation(weights, values, inputs)
        return EncoderOutput(
            (modulated.weights.squeeze(1) @ items).squeeze(1),
            intensity=modulated.intensity[:, 0, 0],
        )

    def score_candidates(
        self,
        batch: SequenceBatch,
        items: Float[Tensor, "batch len dim"],
        positions: Int64[Tensor, " queries"],
        candidates: Float[Tensor, "queries candidates dim"],
    ) -> CandidateScores:
        """Score candidates at some positions; also return the weight of each event for each."""
        candidates = self.item_scale(candidates)
        histories, length = self._project_histories(batch, items), items.shape[1]
        # Chunks hold prefixes of similar length, which limits padding, and few enough queries and
        # candidates to bound the memory.
        order = (positions % length).argsort()
        count = max(MAX_CHUNK_ELEMENTS // (length * self.width), 1)
        queries = max(count // candidates.shape[1], 1)
        scores: list[Tensor] = []
        attention: list[Tensor] = []
        contexts: list[Tensor] = []
        for chosen in torch.split(order, queries):
            prefixes = histories.select(positions[chosen])
            chunks = [
                self._score_chunk(prefixes, part)
                for part in torch.split(candidates[chosen], count, dim=1)
            ]
            weights = torch.cat([chunk.weights for chunk in chunks], dim=1)
            scores.append(torch.cat([chunk.scores for chunk in chunks], dim=1))
            attention.append(F.pad(weights, (0, length - weights.shape[-1])))
            contexts.append(torch.cat([chunk.context for chunk in chunks], dim=2))
        original = order.argsort()
        intensities = None
        if self.modulation is not None:
            intensities = LayerIntensities(self.modulation, torch.cat(contexts)[original])
        return CandidateScores(
            torch.cat(scores)[original], torch.cat(attention)[original], intensities
        )

    def _project_histories(self, batch: SequenceBatch, items: Tensor) -> QueryHistories:
        events = self.item_scale.divide(items)
        return QueryHistories(
            events,
            self.activation.project_events(events),
            (batch.rows > 0).unsqueeze(1),
            None if self.modulation is None else self.modulation.project_values(items),
            None
            if self.item_groups is None
            else ModulationInputs.from_batch(batch, self.item_groups),
        )

    def _score_chunk(self, prefixes: QueryHistories, candidates: Tensor) -> ChunkOutput:
        context = candidates.new_zeros(len(candidates), 1, candidates.shape[1], 0)
        weights: Tensor = self.activation(candidates, prefixes.events, prefixes.activation)
        if self.is_distribution:
            weights = weights * self.dim**-0.5
            weights = weights.masked_fill(~prefixes.visible, float("-inf")).softmax(-1)
        else:
            weights = weights.masked_fill(~prefixes.visible, 0.0)
        if self.modulation is not None and prefixes.inputs is not None:
            shape = candidates.shape[:2]
            inputs = prefixes.inputs._replace(
                intervals=prefixes.inputs.intervals.expand(shape),
                given=prefixes.inputs.given.expand(shape),
            )
            modulated: ModulationOutput = self.modulation(
                weights.unsqueeze(1), prefixes.modulation, inputs
            )
            weights, context = modulated.weights.squeeze(1), modulated.intensities.context
        interest = self.interest_proj(self.history_scale(weights @ prefixes.events))
        scores: Tensor = self.scoring(torch.cat((interest, candidates), dim=-1))
        return ChunkOutput(scores.squeeze(-1), weights, context)
