"""The time-aware self-attention encoder: the system's own."""

from collections.abc import Sequence
from typing import Literal, cast, final

import torch
from jaxtyping import Float, Float64
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.config import Config
from model.interfaces import (
    Encoded,
    Intensities,
    SequenceEncoder,
    States,
    TimeEncoding,
    TimeKernel,
)
from model.layers.fourier_basis import ReadOut, basis, phasors, rotate, scaled_basis
from model.layers.item_groups import ItemGroups
from model.layers.repeat_pointer import RepeatPointer
from model.layers.self_modulating import ModulationConfig, ModulationView, SelfModulation
from model.layers.time_aware_attention import TimeProjection
from model.layers.time_aware_block import (
    BlockRead,
    BlockView,
    TimeAwareBlock,
    TimeView,
    at_positions,
)
from model.time_encodings import TimeEncodingConfig
from model.time_encodings.mercer import MercerConfig


class SelfAttentionConfig(Config):
    """Blocks of causal self-attention over events and the intervals to the query time."""

    kind: Literal["self_attention"] = "self_attention"
    dim: PositiveInt = 64
    heads: PositiveInt = 2
    layers: PositiveInt = 2
    feed_forward: PositiveInt = 128
    """Hidden width of the position-wise half of a block."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    max_history: PositiveInt = 200
    """Events read of a history, the most recent ones."""
    position_table: bool = True
    """Add a learned vector per position, counted from the oldest event read."""
    repeats: bool = False
    """Let the history's own items be pointed at, for data where people come back to them."""
    query: Literal["sum", "mlp"] = "sum"
    """What a block looks for: linear in the state, of which the interval since the last event is a
    summand, or a perceptron of the state and that interval side by side."""
    time_encoding: TimeEncodingConfig = MercerConfig()
    """Features of intervals, or a kernel of two instants that is added to how events match."""
    modulation: ModulationConfig | None = None
    """Let the intensity of an event's group scale the attention it gets."""

    def build(self, *, items: int = 0, actions: int = 0) -> "SelfAttention":
        """The module this describes, for a catalogue of `items` and so many known `actions`."""
        modulation = self.modulation
        return SelfAttention(
            **self.model_dump(exclude={"kind", "layers", "time_encoding", "modulation"}),
            actions=actions,
            time_encoding=self.time_encoding.build(),
            modulations=[
                modulation.build(dim=self.dim, heads=self.heads) if modulation else None
                for _ in range(self.layers)
            ],
            item_groups=(ItemGroups(items=items, groups=modulation.groups) if modulation else None),
        )


@final
class SelfAttention(SequenceEncoder):
    """Reads events and how long before the query time each happened; attends over both.

    Every position is asked about its own query time, so training supervises all of them in one
    causal pass, and reading position i equals encoding the first i events. The state of a position
    also holds the interval from its event to its query time.

    A kernel of two instants, which has no features, tells time pairwise instead: every block adds
    it to the logits, and states hold no interval. A single event is then read alike at all
    instants. With modulation, every block is an SMLayer, whose weights do not sum to one.

    Shape: items (batch, len, dim) -> user (batch, dim)

    Paper: Xu et al. 2019, section 6, stacked as SASRec (Kang & McAuley 2018); with a kernel, NTKA
        2022; with modulation, Chen et al. 2021.
    DIFFERS(paper): blocks normalise before attending; the query reads the interval since the last
        event as a sum unless `query` is "mlp"; attention weights are not dropped out.
    DIFFERS(paper): with `query` "mlp", the perceptron of every block reads the features through the
        one linear map that also adds them to the state.
    DIFFERS(code): lags are to each position's own target time, where the code trains on prefixes.
    """

    def __init__(
        self,
        *,
        dim: int,
        heads: int,
        feed_forward: int,
        dropout: float,
        max_history: int,
        position_table: bool,
        repeats: bool,
        query: Literal["sum", "mlp"],
        actions: int,
        time_encoding: TimeEncoding | TimeKernel,
        modulations: Sequence[SelfModulation | None],
        item_groups: ItemGroups | None,
    ) -> None:
        super().__init__()
        reads_kernel = isinstance(time_encoding, TimeKernel)
        time_dim = 0 if isinstance(time_encoding, TimeKernel) else time_encoding.dim
        self.dim = dim
        self.max_history = max_history
        self.is_normalised = item_groups is None
        self.time_encoding = time_encoding
        self.actions = nn.Embedding(actions + 1, dim, padding_idx=0) if actions else None
        self.positions = nn.Embedding(max_history, dim) if position_table else None
        self.since_last = TimeProjection(time_dim=time_dim, dim=dim)
        self.withheld = nn.Parameter(torch.zeros(dim))
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            TimeAwareBlock(
                dim=dim,
                heads=heads,
                feed_forward=feed_forward,
                dropout=dropout,
                time_dim=time_dim,
                query=query,
                reads_kernel=reads_kernel,
                modulation=modulation,
            )
            for modulation in modulations
        )
        self.norm = nn.LayerNorm(dim)
        self.pointer = (
            RepeatPointer(dim=dim, time_dim=time_dim, reads_kernel=reads_kernel)
            if repeats
            else None
        )
        for table in (self.actions, self.positions):
            if table is not None:
                nn.init.normal_(table.weight, std=dim**-0.5)
        self.item_groups = item_groups

    def states(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> States:
        """User vectors at every position; what follows a position never reaches it."""
        view = self._view(batch)
        content = self._content(batch, items)
        states = content + view.told
        intensities: list[Intensities] = []
        for block in self._stack:
            states, _, modulated = block.read_all(states, view)
            if modulated is not None:
                intensities.append(modulated.intensities)
        users: Tensor = self.norm(states)
        return States(users, self._point(users, content, view), tuple(intensities))

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> Encoded:
        """User vectors at the last event of each history, with the last block's weights there."""
        view = self._view(batch)
        content = self._content(batch, items)
        states = content + view.told
        *earlier, final_block = self._stack
        for block in earlier:
            states = block.read_all(states, view).states
        memory = final_block.remember(states, view.time)
        last, real = batch.lengths - 1, (batch.rows > 0).unsqueeze(1)
        asked = view.at(last)
        read = final_block.read(
            at_positions(states, last), memory, asked, visible=real, weights_wanted=True
        )
        return self._encoded(read, content, asked)

    def sweep(
        self,
        batch: SequenceBatch,
        items: Float[Tensor, "1 len dim"],
        query_times: Float64[Tensor, " query_times"],
    ) -> Encoded:
        """One history asked about many instants: only its last position is worked out for each."""
        content = self._content(batch, items)
        whole = self._view(batch)
        before, asked = whole.before_last(), self._swept(batch, query_times, whole.time)
        own = asked.time.of_last()
        prefix, state = content[:, :-1] + before.told, content[:, -1:] + asked.told
        read: BlockRead | None = None
        for block in self._stack:
            shared = block.remember(prefix, before.time)
            memory = shared.followed_by(block.remember(state, own))
            if prefix.shape[1]:
                prefix = block.read(prefix, shared, before, is_causal=True).states
            read = block.read(state, memory, asked, weights_wanted=True)
            state = read.states
        assert read is not None
        return self._encoded(read, content.expand(len(query_times), -1, -1), asked)

    def _encoded(self, read: BlockRead, content: Tensor, asked: BlockView) -> Encoded:
        users: Tensor = self.norm(read.states)
        repeats = self._point(users, content, asked)
        modulated = read.modulated
        return Encoded(
            user=users.squeeze(1),
            attention=None if read.weights is None else read.weights.squeeze(2),
            repeats=None if repeats is None else repeats.squeeze(1),
            intensity=None if modulated is None else modulated.intensity.mean(1).squeeze(1),
        )

    def _content(self, batch: SequenceBatch, items: Tensor) -> Tensor:
        content = items
        if self.actions is not None:
            content = content + self.actions(batch.actions)
        if self.positions is not None:
            content = content + self.positions.weight[: items.shape[1]]
        dropped: Tensor = self.dropout(content)
        return dropped

    def _view(self, batch: SequenceBatch) -> BlockView:
        """Every position of a batch, asked about its own query time."""
        times, asked = batch.times, batch.query_times
        if self._reads_position:
            times = _ticks(batch)
            asked = times + 1
        time = TimeView(self._phasors(times), self._phasors(asked), self._read_out())
        return BlockView(
            time,
            self._told(time, batch.query_given),
            self._kernel(batch.query_times, batch.times),
            None if self.item_groups is None else ModulationView.of(batch, self.item_groups),
        )

    def _swept(self, batch: SequenceBatch, query_times: Tensor, whole: TimeView) -> BlockView:
        """The last position of the one history of a batch, asked about each of some instants."""
        instants = query_times.unsqueeze(-1)
        ticks = torch.full_like(instants, batch.rows.shape[1])
        time = TimeView(
            whole.events.expand(len(instants), -1, -1),
            self._phasors(ticks if self._reads_position else instants),
            whole.read_out,
        )
        modulation: ModulationView | None = None
        if self.item_groups is not None:
            modulation = ModulationView(
                self.item_groups(batch.rows).expand(len(instants), -1, -1),
                instants - batch.times[:, -1:],
                batch.query_given[:, -1:].expand_as(instants),
            )
        return BlockView(
            time,
            self._told(time.of_last(), batch.query_given[:, -1:]),
            self._kernel(instants, batch.times),
            modulation,
        )

    def _phasors(self, times: Tensor) -> Tensor:
        if isinstance(self.time_encoding, TimeKernel):
            return phasors(times, times.new_empty(0))
        return phasors(times, self.time_encoding.frequencies())

    def _read_out(self) -> ReadOut:
        if isinstance(self.time_encoding, TimeKernel):
            # No features of no frequencies.
            return scaled_basis(self.withheld.new_empty(0, dtype=torch.float64))
        return self.time_encoding.read_out()

    def _told(self, time: TimeView, given: Tensor) -> Tensor:
        """What a position knows of the interval from its own event to its query time."""
        interval = rotate(basis(time.events), time.asked)
        told = interval @ self.since_last.on_basis(time.read_out).T + self.since_last(
            time.read_out.offset
        )
        return torch.where(given.unsqueeze(-1), told, self.withheld)

    def _kernel(self, asked: Tensor, times: Tensor) -> Tensor | None:
        """K(T_q, t_i): batch, queries, len."""
        if not isinstance(self.time_encoding, TimeKernel):
            return None
        return self.time_encoding(asked.unsqueeze(2), times.unsqueeze(1))

    def _point(self, users: Tensor, content: Tensor, view: BlockView) -> Tensor | None:
        if self.pointer is None:
            return None
        events, asked, read_out = view.time
        keys = self.pointer.remember(content, events, read_out)
        pointed: Tensor = self.pointer(users, keys, asked, read_out, view.kernel)
        return pointed

    @property
    def _reads_position(self) -> bool:
        encoding = self.time_encoding
        return isinstance(encoding, TimeEncoding) and encoding.reads == "position"

    @property
    def _stack(self) -> list[TimeAwareBlock]:
        return [cast("TimeAwareBlock", block) for block in self.blocks]


def _ticks(batch: SequenceBatch) -> Tensor:
    """A clock that ticks once per event."""
    return torch.arange(
        batch.rows.shape[1], dtype=torch.float64, device=batch.rows.device
    ).unsqueeze(0)
