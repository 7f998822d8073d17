"""SASRec, SASRec+ and SASRec with self-modulating attention."""

from collections.abc import Sequence
from typing import Literal, cast, final

import torch
from jaxtyping import Float
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.config import Config
from model.interfaces import Encoded, Intensities, SequenceEncoder, States, TimeEncoding
from model.layers.fourier_basis import basis, phasors, rotate
from model.layers.item_groups import ItemGroups
from model.layers.sasrec_block import SASRecBlock, SASRecView
from model.layers.self_modulating import ModulationConfig, ModulationView
from model.layers.time_aware_block import TimeView, at_positions
from model.time_encodings import TimeEncodingConfig
from model.time_encodings.positional import PositionalConfig


class SASRecConfig(Config):
    """Self-attention over items and positions; over time and groups of items where asked."""

    kind: Literal["sasrec"] = "sasrec"
    dim: PositiveInt = 64
    heads: PositiveInt = 1
    layers: PositiveInt = 2
    dropout: float = Field(default=0.2, ge=0, lt=1)
    max_history: PositiveInt = 200
    """Events read of a history, the most recent ones."""
    time_encoding: TimeEncodingConfig | None = None
    """Features of the intervals to the query time beside the content; `mercer` makes SASRec+."""
    modulation: ModulationConfig | None = None
    """Let the intensity of an event's group scale the attention it gets."""

    def build(self, *, items: int = 0, actions: int = 0) -> "SASRec":  # noqa: ARG002
        """The module this describes, for a catalogue of `items`.

        Raises:
            ValueError: if the time encoding has no features.
        """
        encoding = (self.time_encoding or PositionalConfig(frequencies=0)).build()
        if not isinstance(encoding, TimeEncoding):
            raise ValueError(
                f"sasrec reads features of intervals, but {type(encoding).__name__} is a kernel "
                "without any; choose another time_encoding, or the encoder self_attention"
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
    """Reads which items came in which order, by causal self-attention.

    With a time encoding, attention also reads how long before each position's own query time every
    event happened; with Mercer's this is SASRec+. With modulation, every block is an SMLayer.

    Shape: items (batch, len, dim) -> user (batch, dim)

    Paper: Kang and McAuley 2018; SASRec+ and SASRec with SMLayer as compared in Chen et al. 2021.
    DIFFERS(code): positions are counted from the oldest event read; the code counts from the most
        recent place of a window padded on the left.
    DIFFERS(code): time features (Xu et al. 2019) stand beside the content in every block's query,
        keys and values, exact for each position's own query time; the code widens the states by
        them once, and its last block narrows the states without a residual.
    DIFFERS(paper): with modulation, too, positions are added; the SMLayer's authors concatenate.
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
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(dim, eps=1e-8)
        nn.init.normal_(self.positions.weight, std=dim**-0.5)
        self.item_groups = item_groups

    def states(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> States:
        """User vectors at every position; what follows a position never reaches it."""
        view = self._view(batch)
        states = self._content(items)
        intensities: list[Intensities] = []
        for block in self._stack:
            states, _, modulated = block.read_all(states, view)
            if modulated is not None:
                intensities.append(modulated.intensities)
        return States(self.norm(states), intensities=tuple(intensities))

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> Encoded:
        """User vectors at the last event of each history, with the last block's weights there."""
        view = self._view(batch)
        states = self._content(items)
        *earlier, final_block = self._stack
        for block in earlier:
            states = block.read_all(states, view).states
        last = batch.lengths - 1
        read = final_block.read(
            at_positions(states, last),
            final_block.remember(states, view),
            view.at(last),
            visible=(batch.rows > 0).unsqueeze(1),
            weights_wanted=True,
        )
        users: Tensor = self.norm(read.states)
        return Encoded(
            user=users.squeeze(1),
            attention=None if read.weights is None else read.weights.squeeze(2),
            intensity=None if read.modulated is None else read.modulated.intensity.mean(1)[:, 0],
        )

    def _content(self, items: Tensor) -> Tensor:
        placed = items * self.dim**0.5 + self.positions.weight[: items.shape[1]]
        content: Tensor = self.dropout(placed)
        return content

    def _view(self, batch: SequenceBatch) -> SASRecView:
        frequencies, read_out = self.time_encoding.frequencies(), self.time_encoding.read_out()
        if self.time_encoding.reads == "time":
            times, query_times = batch.times, batch.query_times
        else:
            # A clock that ticks once per event.
            ticks = torch.arange(batch.rows.shape[1], device=batch.rows.device).double()
            times = ticks.expand(batch.rows.shape)
            query_times = times + 1
        events, asked = phasors(times, frequencies), phasors(query_times, frequencies)
        told = rotate(basis(events), asked) @ read_out.weight.T + read_out.offset
        return SASRecView(
            TimeView(events, asked, read_out),
            torch.where(batch.query_given.unsqueeze(-1), told, self.withheld),
            None if self.item_groups is None else ModulationView.of(batch, self.item_groups),
        )

    @property
    def _stack(self) -> list[SASRecBlock]:
        return [cast("SASRecBlock", block) for block in self.blocks]
