"""The time-aware self-attention encoder: the system's own."""

from typing import Literal, cast, final

import torch
from jaxtyping import Float, Float64
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.config import Config
from model.interfaces import Encoded, SequenceEncoder, States, TimeEncoding
from model.layers.fourier_basis import basis, phasors, rotate
from model.layers.repeat_pointer import RepeatPointer
from model.layers.time_aware_attention import KeyValues, TimeProjection
from model.layers.time_aware_block import TimeAwareBlock, TimeView, at_positions
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
    time_encoding: TimeEncodingConfig = MercerConfig()

    def build(self, *, items: int = 0, actions: int = 0) -> "SelfAttention":  # noqa: ARG002
        """The module this describes, for a catalogue of `items` and so many known `actions`."""
        return SelfAttention(
            **self.model_dump(exclude={"kind", "time_encoding"}),
            actions=actions,
            time_encoding=self.time_encoding.build(),
        )


@final
class SelfAttention(SequenceEncoder):
    """Reads events and how long before the query time each happened; attends over both.

    Every position is asked about its own query time, so training supervises all of them in one
    causal pass, and reading position i equals encoding the first i events. The state of a position
    also holds the interval from its event to its query time.

    Shape: items (batch, len, dim) -> user (batch, dim)

    Paper: Xu et al. 2019, section 6, stacked as SASRec (Kang & McAuley 2018).
    DIFFERS(paper): blocks normalise before attending; the query reads the interval since the last
        event as a sum rather than through an MLP; attention weights are not dropped out.
    DIFFERS(code): lags are to each position's own target time, where the code trains on prefixes.
    """

    def __init__(
        self,
        *,
        dim: int,
        heads: int,
        layers: int,
        feed_forward: int,
        dropout: float,
        max_history: int,
        position_table: bool,
        repeats: bool,
        actions: int,
        time_encoding: TimeEncoding,
    ) -> None:
        super().__init__()
        self.dim = dim
        self.max_history = max_history
        self.time_encoding = time_encoding
        self.actions = nn.Embedding(actions + 1, dim, padding_idx=0) if actions else None
        self.positions = nn.Embedding(max_history, dim) if position_table else None
        self.since_last = TimeProjection(time_dim=time_encoding.dim, dim=dim)
        self.withheld = nn.Parameter(torch.zeros(dim))
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            TimeAwareBlock(
                dim=dim,
                heads=heads,
                feed_forward=feed_forward,
                dropout=dropout,
                time_dim=time_encoding.dim,
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(dim)
        self.pointer = RepeatPointer(dim=dim, time_dim=time_encoding.dim) if repeats else None
        for table in (self.actions, self.positions):
            if table is not None:
                nn.init.normal_(table.weight, std=dim**-0.5)

    def states(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> States:
        """User vectors at every position; what follows a position never reaches it."""
        view = self._view(batch)
        content = self._content(batch, items)
        states = content + self._since_last(view, batch.query_given)
        for block in self._stack:
            states = block.read_all(states, view)
        users: Tensor = self.norm(states)
        return States(users, self._point(users, content, view))

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> Encoded:
        """User vectors at the last event of each history, with the last block's weights there."""
        view = self._view(batch)
        content = self._content(batch, items)
        states = content + self._since_last(view, batch.query_given)
        *earlier, final_block = self._stack
        for block in earlier:
            states = block.read_all(states, view)
        memory = final_block.remember(states, view)
        last = batch.lengths - 1
        asked = view.at(last)
        state, weights = final_block.read(
            at_positions(states, last), memory, asked, visible=_real(batch), weights_wanted=True
        )
        return self._encoded(state, weights, content, asked)

    def sweep(
        self,
        batch: SequenceBatch,
        items: Float[Tensor, "1 len dim"],
        query_times: Float64[Tensor, " query_times"],
    ) -> Encoded:
        """One history asked about many instants: only its last position is worked out for each."""
        count = len(query_times)
        content = self._content(batch, items)
        whole = self._view(batch)
        prefix_view = TimeView(whole.events[:, :-1], whole.asked[:, :-1], whole.read_out)
        view = TimeView(
            whole.events[:, -1:].expand(count, -1, -1),
            self._asked_at(query_times, len(batch.rows[0])),
            whole.read_out,
        )
        given = batch.query_given
        prefix = content[:, :-1] + self._since_last(prefix_view, given[:, :-1])
        state = content[:, -1:] + self._since_last(view, given[:, -1:])
        weights: Tensor | None = None
        for block in self._stack:
            before = block.remember(prefix, prefix_view)
            own = block.remember(state, view)
            memory = KeyValues(
                torch.cat((before.keys.expand(count, -1, -1, -1), own.keys), dim=2),
                torch.cat((before.values.expand(count, -1, -1, -1), own.values), dim=2),
            )
            if prefix.shape[1]:
                prefix, _ = block.read(prefix, before, prefix_view, is_causal=True)
            state, weights = block.read(state, memory, view, weights_wanted=True)
        pointable = whole._replace(events=whole.events.expand(count, -1, -1), asked=view.asked)
        return self._encoded(state, weights, content.expand(count, -1, -1), pointable)

    def _encoded(
        self, state: Tensor, weights: Tensor | None, content: Tensor, view: TimeView
    ) -> Encoded:
        users: Tensor = self.norm(state)
        repeats = self._point(users, content, view)
        return Encoded(
            user=users.squeeze(1),
            attention=None if weights is None else weights.squeeze(2),
            repeats=None if repeats is None else repeats.squeeze(1),
        )

    def _content(self, batch: SequenceBatch, items: Tensor) -> Tensor:
        content = items
        if self.actions is not None:
            content = content + self.actions(batch.actions)
        if self.positions is not None:
            content = content + self.positions.weight[: items.shape[1]]
        dropped: Tensor = self.dropout(content)
        return dropped

    def _since_last(self, view: TimeView, given: Tensor) -> Tensor:
        """What a position knows of the interval from its own event to its query time."""
        interval = rotate(basis(view.events), view.asked)
        told = interval @ self.since_last.on_basis(view.read_out).T + self.since_last(
            view.read_out.offset
        )
        return torch.where(given.unsqueeze(-1), told, self.withheld)

    def _view(self, batch: SequenceBatch) -> TimeView:
        if self.time_encoding.reads == "time":
            times, asked = batch.times, batch.query_times
        else:
            times = _ticks(batch)
            asked = times + 1
        return TimeView(self._phasors(times), self._phasors(asked), self.time_encoding.read_out())

    def _asked_at(self, query_times: Tensor, length: int) -> Tensor:
        """One query position per instant: query_times, 1, frequencies."""
        if self.time_encoding.reads == "position":
            query_times = torch.full_like(query_times, length)
        return self._phasors(query_times.unsqueeze(-1))

    @property
    def _stack(self) -> list[TimeAwareBlock]:
        return [cast("TimeAwareBlock", block) for block in self.blocks]

    def _phasors(self, times: Tensor) -> Tensor:
        return phasors(times, self.time_encoding.frequencies())

    def _point(self, users: Tensor, content: Tensor, view: TimeView) -> Tensor | None:
        if self.pointer is None:
            return None
        keys = self.pointer.remember(content, view.events, view.read_out)
        pointed: Tensor = self.pointer(users, keys, view.asked, view.read_out)
        return pointed


def _real(batch: SequenceBatch) -> Tensor | None:
    """Which positions hold events, as batch, 1, len; None where all do."""
    length = batch.rows.shape[1]
    if bool((batch.lengths == length).all()):
        return None
    places = torch.arange(length, device=batch.rows.device)
    return (places < batch.lengths[:, None]).unsqueeze(1)


def _ticks(batch: SequenceBatch) -> Tensor:
    """A clock that ticks once per event."""
    return torch.arange(
        batch.rows.shape[1], dtype=torch.float64, device=batch.rows.device
    ).unsqueeze(0)
