"""SASRec, SASRec+ and SASRec with self-modulating attention."""

from collections.abc import Sequence
from typing import Literal, cast, final

import torch
from jaxtyping import Float
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from model.batch import SequenceBatch, select_positions
from model.config import Config
from model.interfaces import (
    EncoderOutput,
    Intensities,
    PositionOutputs,
    SequenceEncoder,
    TimeEncoding,
    TimeKernel,
)
from model.layers.dropout import Dropout
from model.layers.fourier_basis import basis, rotate
from model.layers.item_groups import ItemGroups
from model.layers.sasrec_block import SASRecBlock, SASRecInputs
from model.layers.self_modulation import ModulationConfig, ModulationInputs
from model.layers.time_aware_block import TimeInputs
from model.time_encodings import TimeEncodingConfig
from model.time_encodings.positional import PositionalConfig


class SASRecConfig(Config):
    """Self-attention over items and positions, optionally with time and item groups."""

    kind: Literal["sasrec"] = "sasrec"
    dim: PositiveInt = 64
    """Width of item and user vectors."""
    heads: PositiveInt = 1
    """Attention heads; their number must divide `dim`."""
    layers: PositiveInt = 2
    """Blocks of attention and a feed-forward network."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout of the embedded events and within blocks."""
    max_history: PositiveInt = 200
    """Events of a history in use, the most recent ones."""
    time_encoding: TimeEncodingConfig | None = None
    """Features of the intervals to the query time beside the content; `mercer` makes SASRec+."""
    modulation: ModulationConfig | None = None
    """Scale the attention weight of an event by the intensity of its item's group."""

    def build(self, *, items: int = 0, actions: int = 0) -> "SASRec":  # noqa: ARG002
        """Build the module for a catalog of `items`.

        Raises:
            ValueError: if the time encoding has no features, or damped ones.
        """
        encoding = (self.time_encoding or PositionalConfig(frequencies=0)).build()
        if not isinstance(encoding, TimeEncoding):
            form = "a kernel" if isinstance(encoding, TimeKernel) else "a rotation of content"
            raise ValueError(
                f"sasrec needs a time encoding with features, but {type(encoding).__name__} is "
                f"{form} without any; choose another time_encoding, or the encoder self_attention"
            )
        if encoding.rates() is not None:
            raise ValueError(
                "sasrec needs a time encoding whose features a rotation shifts, but those of "
                f"{type(encoding).__name__} decay; choose another time_encoding, or the encoder "
                "self_attention"
            )
        modulation = self.modulation
        return SASRec(
            dim=self.dim,
            dropout=self.dropout,
            max_history=self.max_history,
            time_encoding=encoding,
            blocks=[
                SASRecBlock(
                    dim=self.dim,
                    heads=self.heads,
                    dropout=self.dropout,
                    time_dim=encoding.dim,
                    modulation=modulation.build(dim=self.dim, heads=self.heads)
                    if modulation
                    else None,
                )
                for _ in range(self.layers)
            ],
            item_groups=(ItemGroups(items=items, groups=modulation.groups) if modulation else None),
        )


@final
class SASRec(SequenceEncoder):
    """Encodes items in their order by causal self-attention.

    With a time encoding, attention also depends on the interval from every event to the position's
    own query time; with Mercer's this is SASRec+. With modulation, every block is an SMLayer.

    Shape: items (batch, len, dim) -> user (batch, dim)

    Paper: Kang and McAuley 2018; SASRec+ and SASRec with SMLayer as compared in Chen et al. 2021.
    DIFFERS(code): positions count from the oldest event in use; the code counts from the most
        recent position of a window padded on the left.
    DIFFERS(code): time features (Xu et al. 2019) enter every block's queries, keys and values
        beside the content, exact for each position's own query time; the code concatenates them to
        the input once, and its last block narrows the states without a residual connection.
    DIFFERS(paper): positions are added with modulation too; the SMLayer's authors concatenate them.
    """

    def __init__(
        self,
        *,
        dim: int,
        dropout: float,
        max_history: int,
        time_encoding: TimeEncoding,
        blocks: Sequence[SASRecBlock],
        item_groups: ItemGroups | None,
    ) -> None:
        super().__init__()
        self.dim = dim
        self.max_history = max_history
        self.is_normalised = item_groups is None
        self.time_encoding = time_encoding
        self.withheld = nn.Parameter(torch.zeros(time_encoding.dim))
        self.positions = nn.Embedding(max_history, dim)
        self.dropout = Dropout(dropout)
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(dim, eps=1e-8)
        nn.init.normal_(self.positions.weight, std=dim**-0.5)
        self.item_groups = item_groups

    def encode_positions(
        self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]
    ) -> PositionOutputs:
        """Compute the user vector at every position, from the events up to it."""
        inputs = self._build_block_inputs(batch)
        states = self._embed(items)
        intensities: list[Intensities] = []
        for block in self._blocks:
            states, _, modulation = block.attend_causally(states, inputs)
            if modulation is not None:
                intensities.append(modulation.intensities)
        return PositionOutputs(self.norm(states), intensities=tuple(intensities))

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> EncoderOutput:
        """Compute the user vector and the last block's weights at each history's last event."""
        inputs = self._build_block_inputs(batch)
        states = self._embed(items)
        *earlier, final_block = self._blocks
        for block in earlier:
            states = block.attend_causally(states, inputs).states
        last = batch.lengths - 1
        output = final_block.attend(
            select_positions(states, last),
            final_block.project_kv(states, inputs),
            inputs.select(last),
            visible=(batch.rows > 0).unsqueeze(1),
            need_weights=True,
        )
        users: Tensor = self.norm(output.states)
        modulation = output.modulation
        return EncoderOutput(
            user=users.squeeze(1),
            attention=None if output.weights is None else output.weights.squeeze(2),
            intensity=None if modulation is None else modulation.intensity.mean(1)[:, 0],
        )

    def _embed(self, items: Tensor) -> Tensor:
        scaled = items * self.dim**0.5 + self.positions.weight[: items.shape[1]]
        embedded: Tensor = self.dropout(scaled)
        return embedded

    def _build_block_inputs(self, batch: SequenceBatch) -> SASRecInputs:
        encoding = self.time_encoding
        frequencies, projection = encoding.frequencies(), encoding.basis_projection()
        if encoding.domain == "time":
            times, query_times = batch.times, batch.query_times
        else:
            counts = torch.arange(batch.rows.shape[1], device=batch.rows.device).double()
            times = counts.expand(batch.rows.shape)
            query_times = times + 1
        events, queries = basis(times, frequencies), basis(query_times, frequencies)
        event_interval = rotate(events, queries) @ projection.weight.T + projection.bias
        return SASRecInputs(
            TimeInputs(events, queries, projection),
            torch.where(batch.query_given.unsqueeze(-1), event_interval, self.withheld),
            None
            if self.item_groups is None
            else ModulationInputs.from_batch(batch, self.item_groups),
        )

    @property
    def _blocks(self) -> list[SASRecBlock]:
        return [cast("SASRecBlock", block) for block in self.blocks]
