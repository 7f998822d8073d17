"""The time-aware self-attention encoder, Kairos' own."""

from collections.abc import Sequence
from typing import Literal, cast, final

import torch
from jaxtyping import Bool, Float, Float64, Int64
from pydantic import Field, PositiveInt, model_validator
from torch import Tensor, nn

from model.batch import SequenceBatch, gather_positions, number_within_samples
from model.config import Config
from model.interfaces import (
    ContentRotation,
    EncoderOutput,
    Intensities,
    PositionOutputs,
    SequenceEncoder,
    TimeEncoding,
    TimeKernel,
)
from model.layers.baskets import Baskets, average_baskets, number_baskets, share_query_times
from model.layers.composed_maps import TimeProjection
from model.layers.damped_basis import DampedBasis, damp
from model.layers.derived import DerivingModule
from model.layers.dropout import Dropout
from model.layers.fourier_basis import (
    BasisProjection,
    basis,
    compute_phasors,
    rotate,
    scaled_basis,
)
from model.layers.item_groups import ItemGroups
from model.layers.repeat_pointer import RepeatPointer
from model.layers.self_modulation import ModulationConfig, ModulationInputs, SelfModulation
from model.layers.time_aware_attention import HeadPhasors
from model.layers.time_aware_block import BlockInputs, BlockOutput, TimeAwareBlock, TimeInputs
from model.time_encodings import TimeEncodingConfig
from model.time_encodings.calendar import CalendarEncoding
from model.time_encodings.mercer import MercerConfig

_LEAST_TURNED_WIDTH = 4
"""Of a head that turns: a plane of order and one of time, each of two coordinates."""


class SelfAttentionConfig(Config):
    """Blocks of causal self-attention over events and the intervals to the query time."""

    kind: Literal["self_attention"] = "self_attention"
    dim: PositiveInt = 64
    """Width of item and user vectors."""
    heads: PositiveInt = 2
    """Attention heads; their number must divide `dim`."""
    layers: PositiveInt = 2
    """Blocks of attention and a feed-forward network."""
    feed_forward: PositiveInt = 128
    """Hidden width of a block's feed-forward network."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout of the embedded events and within blocks."""
    max_history: PositiveInt = 200
    """Events of a history in use, the most recent ones."""
    position_table: bool = True
    """Add a learned vector per position, counted from the oldest event in use."""
    baskets: bool = False
    """Read the events of one instant as a set, whose order means nothing, where baskets are
    predicted. They share a position, and the next basket is predicted from the mean of the last
    one. Not with modulation."""
    repeats: bool = False
    """Add a pointer to the history's own items, for data where users return to them. `wide.repeats`
    scores the same items from counted features."""
    query: Literal["sum", "mlp"] = "sum"
    """Query projection: linear in the state, to which the features of the position's own interval
    are added, or a perceptron of the state and those features side by side."""
    time_encoding: TimeEncodingConfig = MercerConfig()
    """Features of intervals, a kernel of two instants that is added to the logits, or a rotation of
    content by order and time."""
    calendar: bool = False
    """Also encode intervals at the exact periods of the calendar: an hour, a day, a week, a year
    and their harmonics. Without effect with a kernel, a rotation of content or positions."""
    damping: bool = False
    """Let attention forget: weights also fall exponentially with the age of an event, at learned
    rates; with positions, with the number of events since."""
    modulation: ModulationConfig | None = None
    """Scale the attention weight of an event by the intensity of its item's group."""

    @model_validator(mode="after")
    def _require_one_reading(self) -> "SelfAttentionConfig":
        if self.baskets and self.modulation is not None:
            raise ValueError(
                "an encoder reads baskets as sets or modulates attention, but both are set; "
                "leave out modulation, or set baskets to false"
            )
        return self

    @model_validator(mode="after")
    def _require_planes(self) -> "SelfAttentionConfig":
        width = self.dim // self.heads
        if self.time_encoding.kind == "rotary" and width < _LEAST_TURNED_WIDTH:
            raise ValueError(
                "a head that turns by order and time needs a plane for each, a width of at least "
                f"{_LEAST_TURNED_WIDTH}, but {self.dim} dimensions in {self.heads} heads are "
                f"{width} wide; set fewer heads, or more dimensions"
            )
        return self

    def build(self, *, items: int = 0, actions: int = 0) -> "SelfAttention":
        """Build the module for a catalog of `items` and `actions` known actions."""
        modulation = self.modulation
        encoding: TimeEncoding | TimeKernel | ContentRotation = self.time_encoding.build()
        if self.calendar and isinstance(encoding, TimeEncoding) and encoding.domain == "time":
            encoding = CalendarEncoding(encoding)
        return SelfAttention(
            **self.model_dump(
                exclude={"kind", "layers", "time_encoding", "calendar", "modulation"}
            ),
            actions=actions,
            time_encoding=encoding,
            modulations=[
                modulation.build(dim=self.dim, heads=self.heads) if modulation else None
                for _ in range(self.layers)
            ],
            item_groups=(ItemGroups(items=items, groups=modulation.groups) if modulation else None),
        )


@final
class SelfAttention(DerivingModule, SequenceEncoder):
    """Encodes events by causal self-attention over content and intervals to the query time.

    Every position has its own query time, so training supervises all of them in one causal pass,
    and the output at position i equals that of encoding the first i events. The state of a position
    also contains features of the interval from its event to its query time.

    A time kernel, which has no features, encodes time pairwise instead: every block adds it to the
    logits, and states contain no interval; the output for a single event is then the same at every
    query time. A rotation of content has no features either: the queries and keys of every block
    turn by order and time. A damped encoding has features, computed once for every pair of an event
    and a query.

    With modulation, every block is an SMLayer, whose weights do not sum to one.

    With `baskets`, the events of an instant have one position and one interval, attend to each
    other, and the state that encodes a history begins as the mean of its last basket: the output
    does not depend on the order within baskets.

    Shape: items (batch, len, dim) -> user (batch, dim)

    Paper: Xu et al. 2019, section 6, stacked as SASRec (Kang & McAuley 2018); with a kernel, NTKA
        2022; with a rotation of content, Wei et al. 2025; with modulation, Chen et al. 2021.
    DIFFERS(paper): the query is linear in the state plus its interval's features unless `query` is
        "mlp"; then every block's perceptron takes the features through the one linear map that
        also adds them to the state. Attention weights have no dropout.
    DIFFERS(code): intervals run to each position's own query time, where the code trains on
        prefixes.
    DIFFERS(code): blocks normalise queries, keys and values and add the raw input, where the code
        normalises the queries only and adds them; GELU instead of ReLU; features are not
        concatenated to the input, so that the last block needs no narrowing; item vectors are not
        scaled by sqrt(dim).
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
        baskets: bool,
        repeats: bool,
        query: Literal["sum", "mlp"],
        damping: bool,
        actions: int,
        time_encoding: TimeEncoding | TimeKernel | ContentRotation,
        modulations: Sequence[SelfModulation | None],
        item_groups: ItemGroups | None,
    ) -> None:
        super().__init__()
        uses_kernel = isinstance(time_encoding, TimeKernel)
        time_dim = time_encoding.dim if isinstance(time_encoding, TimeEncoding) else 0
        self.dim = dim
        self.heads = heads
        self.max_history = max_history
        self.reads_baskets = baskets
        self.sweeps_share_history = item_groups is None
        self.is_normalised = item_groups is None
        self.is_exportable = item_groups is None and not uses_kernel
        self.time_encoding = time_encoding
        self.actions = nn.Embedding(actions + 1, dim, padding_idx=0) if actions else None
        self.positions = nn.Embedding(max_history, dim) if position_table else None
        self.interval_proj = TimeProjection(time_dim=time_dim, dim=dim)
        self.withheld = nn.Parameter(torch.zeros(dim))
        self.dropout = Dropout(dropout)
        self.blocks = nn.ModuleList(
            TimeAwareBlock(
                dim=dim,
                heads=heads,
                feed_forward=feed_forward,
                dropout=dropout,
                time_dim=time_dim,
                query=query,
                damping=damping,
                uses_kernel=uses_kernel,
                modulation=modulation,
            )
            for modulation in modulations
        )
        self.norm = nn.LayerNorm(dim)
        self.pointer = (
            RepeatPointer(dim=dim, time_dim=time_dim, uses_kernel=uses_kernel) if repeats else None
        )
        for table in (self.actions, self.positions):
            if table is not None:
                nn.init.normal_(table.weight, std=dim**-0.5)
        self.item_groups = item_groups

    def encode_positions(
        self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]
    ) -> PositionOutputs:
        """Compute the user vector at every position, from the events up to it."""
        if self.reads_baskets:
            every = torch.arange(batch.rows.shape[1], device=batch.rows.device)
            output, content, inputs = self._encode_at(batch, items, every.expand_as(batch.rows))
            users: Tensor = self.norm(output.states)
            return PositionOutputs(users, self._compute_repeat_scores(users, content, inputs))
        inputs = self._build_block_inputs(batch)
        content = self._embed(batch, items)
        states = content + inputs.event_interval
        intensities: list[Intensities] = []
        for block in self._blocks:
            states, _, modulation = block.attend_causally(states, inputs)
            if modulation is not None:
                intensities.append(modulation.intensities)
        users = self.norm(states)
        repeat_scores = self._compute_repeat_scores(users, content, inputs)
        return PositionOutputs(users, repeat_scores, tuple(intensities))

    def encode_selected(
        self,
        batch: SequenceBatch,
        items: Float[Tensor, "batch len dim"],
        positions: Int64[Tensor, " positions"],
    ) -> Float[Tensor, "positions dim"] | None:
        """Compute the user vectors of some positions; the last block runs at no others.

        None with modulation or a pointer, whose outputs are of every position.
        """
        if self.item_groups is not None or self.pointer is not None:
            return None
        length = batch.rows.shape[1]
        sample, index = torch.div(positions, length, rounding_mode="floor"), positions % length
        slots, most = number_within_samples(sample, len(batch.rows))
        chosen = index.new_zeros(len(batch.rows), most)
        chosen[sample, slots] = index
        output, _, _ = self._encode_at(batch, items, chosen)
        users: Tensor = self.norm(output.states[sample, slots])
        return users

    def _encode_at(
        self,
        batch: SequenceBatch,
        items: Float[Tensor, "batch len dim"],
        chosen: Int64[Tensor, "batch chosen"] | None,
        *,
        need_weights: bool = False,
    ) -> tuple[BlockOutput, Float[Tensor, "batch len dim"], BlockInputs]:
        """Encode the events up to each chosen position of a history.

        The last block is computed at the chosen positions only.

        Args:
            chosen: None for the last position of a single history, without baskets, which needs
                neither a selection nor a mask.

        Returns:
            The output of the last block, the embedded events, and the inputs of the blocks at the
            chosen positions.
        """
        *earlier, final_block = self._blocks
        baskets = number_baskets(batch.times) if self.reads_baskets else None
        if baskets is not None:
            batch = share_query_times(batch, baskets)
        inputs = self._build_block_inputs(batch, baskets)
        at_chosen = inputs.take_last() if chosen is None else inputs.gather(chosen)
        content = self._embed(batch, items, baskets)
        states = content + inputs.event_interval
        visible: Tensor | None = None
        if chosen is not None:
            positions = torch.arange(batch.rows.shape[1], device=batch.rows.device)
            visible = positions <= chosen.unsqueeze(-1)
        if baskets is None or chosen is None:
            for block in earlier:
                states = block.attend_causally(states, inputs).states
            queries = states[:, -1:] if chosen is None else gather_positions(states, chosen)
        else:
            # The events of a basket attend to all of it.
            within = baskets.unsqueeze(1) <= baskets.unsqueeze(2)
            within = within & (batch.rows > 0).unsqueeze(1)
            pooled = gather_positions(average_baskets(content, baskets), chosen)
            queries = pooled + at_chosen.event_interval
            for block in earlier:
                cache = block.project_kv(states, inputs.time)
                queries = block.attend(queries, cache, at_chosen, visible=visible).states
                states = block.attend(states, cache, inputs, visible=within).states
        cache = final_block.project_kv(states, inputs.time)
        output = final_block.attend(
            queries, cache, at_chosen, visible=visible, need_weights=need_weights
        )
        return output, content, at_chosen

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> EncoderOutput:
        """Compute the user vector and the last block's weights at each history's last event."""
        is_single = len(batch.rows) == 1 and not self.reads_baskets
        last = None if is_single else (batch.lengths - 1).unsqueeze(1)
        output, content, inputs = self._encode_at(batch, items, last, need_weights=True)
        return self._build_encoder_output(output, content, inputs)

    def sweep(
        self,
        batch: SequenceBatch,
        items: Float[Tensor, "1 len dim"],
        query_times: Float64[Tensor, " query_times"],
    ) -> EncoderOutput:
        """Encode one history at many query times (days since its first event)."""
        if self.item_groups is not None:
            repeated = batch.repeat_at(query_times)
            return self(repeated, items.expand(len(query_times), -1, -1))
        ends = batch.lengths.expand(len(query_times))
        return self.sweep_prefixes(batch, items, query_times, ends)

    def sweep_prefixes(
        self,
        batch: SequenceBatch,
        items: Float[Tensor, "1 len dim"],
        query_times: Float64[Tensor, " query_times"],
        ends: Int64[Tensor, " query_times"],
    ) -> EncoderOutput:
        """Encode the first events of one history at many query times, in one causal pass.

        Of the events before `ends`, only the last one depends on the query time, or with `baskets`
        those of the last basket: each query computes these, and attends to all others as the pass
        has them. Not with modulation.
        """
        baskets = number_baskets(batch.times) if self.reads_baskets else None
        if baskets is not None:
            batch = share_query_times(batch, baskets)
        inputs = self._build_block_inputs(batch, baskets)
        content = self._embed(batch, items, baskets)
        own, is_own = _find_own_events(ends, baskets)
        queries = self._build_sweep_inputs(batch, query_times, own, inputs.time, baskets)
        own_time = queries.time.gather_events(own)
        positions = torch.arange(batch.rows.shape[1], device=ends.device)
        visible = torch.cat((positions < own[:, :1], is_own), dim=1).unsqueeze(1)
        within: Tensor | None = None
        if baskets is not None:
            within = baskets.unsqueeze(1) <= baskets.unsqueeze(2)

        states = content + inputs.event_interval
        own_states = content[0, own] + queries.event_interval
        query = own_states
        if baskets is not None:
            mean = (own_states * is_own.unsqueeze(-1)).sum(1) / is_own.sum(1, keepdim=True)
            query = mean.unsqueeze(1)
        *earlier, final_block = self._blocks
        for block in earlier:
            shared = block.project_kv(states, inputs.time)
            of_own = block.project_kv(own_states, own_time)
            states = block.attend(
                states, shared, inputs, is_causal=within is None, visible=within
            ).states
            at = own_states if baskets is None else torch.cat((query, own_states), dim=1)
            at = block.attend_shared(at, shared, of_own, queries, visible).states
            query, own_states = at[:, :1], at if baskets is None else at[:, 1:]
        at_last = queries.take_first()
        output = final_block.attend_shared(
            query,
            final_block.project_kv(states, inputs.time),
            final_block.project_kv(own_states, own_time),
            at_last,
            visible,
        )
        assert output.weights is not None
        of_events, of_own_events = output.weights.tensor_split((len(positions),), dim=-1)
        aligned = own[:, None, None].expand_as(of_own_events)
        weights = of_events.scatter_add(-1, aligned, of_own_events)
        at_last = at_last.take_events(len(positions))
        encoded = self._build_encoder_output(
            output._replace(weights=weights), content.expand(len(ends), -1, -1), at_last
        )
        if encoded.repeat_scores is None:
            return encoded
        is_later = positions >= ends.unsqueeze(1)
        return encoded._replace(
            repeat_scores=encoded.repeat_scores.masked_fill(is_later, float("-inf"))
        )

    def _build_encoder_output(
        self, output: BlockOutput, content: Tensor, inputs: BlockInputs
    ) -> EncoderOutput:
        users: Tensor = self.norm(output.states)
        repeat_scores = self._compute_repeat_scores(users, content, inputs)
        modulation = output.modulation
        return EncoderOutput(
            user=users.squeeze(1),
            attention=None if output.weights is None else output.weights.squeeze(2),
            repeat_scores=None if repeat_scores is None else repeat_scores.squeeze(1),
            intensity=None if modulation is None else modulation.intensity.mean(1).squeeze(1),
        )

    def _embed(self, batch: SequenceBatch, items: Tensor, baskets: Baskets | None = None) -> Tensor:
        content = items
        if self.actions is not None:
            content = content + self.actions(batch.actions)
        if self.positions is not None:
            if baskets is None:
                content = content + self.positions.weight[: items.shape[1]]
            else:
                content = content + self.positions(baskets)
        dropped: Tensor = self.dropout(content)
        return dropped

    def _build_block_inputs(
        self, batch: SequenceBatch, baskets: Baskets | None = None
    ) -> BlockInputs:
        """Compute the inputs of the blocks with every position as a query."""
        times, query_times = batch.times, batch.query_times
        if self._uses_positions:
            times = _count_events(batch)
            query_times = times + 1
        events, queries = self._compute_basis(torch.stack((times, query_times))).unbind()
        time = TimeInputs(
            events,
            queries,
            self._compute_basis_projection(),
            times,
            damped=self._compute_damped(query_times, times),
        )
        if isinstance(self.time_encoding, ContentRotation):
            orders = _count_events(batch) if baskets is None else baskets.double()
            time = time._replace(
                event_phasors=self._compute_phasors(self.time_encoding, orders, times),
                query_phasors=self._compute_phasors(self.time_encoding, orders, query_times),
            )
        return BlockInputs(
            time,
            self._project_event_interval(time, times, query_times, batch.query_given),
            self._compute_kernel(batch, batch.query_times),
            None
            if self.item_groups is None
            else ModulationInputs.from_batch(batch, self.item_groups),
        )

    def _build_sweep_inputs(
        self,
        batch: SequenceBatch,
        query_times: Tensor,
        own: Tensor,
        time: TimeInputs,
        baskets: Baskets | None,
    ) -> BlockInputs:
        """Compute the inputs of the blocks at the query times; those of `sweep_prefixes`.

        Args:
            own: the positions of the events that depend on the query time, the last one at the end.
            time: of the history.
        """
        instants, last = query_times.unsqueeze(-1), own[:, -1:]
        if self._uses_positions:
            # Each event is its own query then; the mean of a basket is that of its last event.
            counts = torch.cat((last, own), dim=1) if self.reads_baskets else last
            instants = (counts + 1).to(instants.dtype)
        queries = self._compute_basis(instants)
        of_last = time._replace(events=time.events[0, last], queries=queries[:, :1])
        kernel = self._compute_kernel(batch, query_times.unsqueeze(-1))
        damped = self._compute_damped(query_times.unsqueeze(-1), batch.times)
        if kernel is not None:
            kernel = torch.cat((kernel, kernel.gather(2, own.unsqueeze(1))), dim=2)
        if damped is not None:
            rows = torch.arange(len(own), device=own.device).unsqueeze(1)
            damped = damped.map(
                lambda pairs: torch.cat((pairs, pairs[rows, 0, own].unsqueeze(1)), dim=2)
            )
        phasors: HeadPhasors | None = None
        if isinstance(self.time_encoding, ContentRotation):
            orders = last if baskets is None else baskets[0, last]
            phasors = self._compute_phasors(self.time_encoding, orders.double(), instants)
        return BlockInputs(
            time._replace(
                events=time.events.expand(len(last), -1, -1),
                queries=queries,
                query_phasors=phasors,
                damped=damped,
            ),
            # The same for all events of a basket.
            self._project_event_interval(
                of_last, batch.times[0, last], query_times.unsqueeze(-1), batch.query_given[:, -1:]
            ),
            kernel,
        )

    def _compute_basis(self, times: Tensor) -> Tensor:
        """Compute the basis that attention rotates."""
        if self._is_damped or not isinstance(self.time_encoding, TimeEncoding):
            return basis(times, times.new_empty(0))
        return basis(times, self._derive_frequencies())

    def _compute_basis_projection(self) -> BasisProjection:
        if not isinstance(self.time_encoding, TimeEncoding):
            # Without frequencies and features.
            return scaled_basis(self.withheld.new_empty(0, dtype=torch.float64))
        return self.derive("projection", self.time_encoding.basis_projection)

    def _compute_damped(self, query_times: Tensor, times: Tensor) -> DampedBasis | None:
        """Compute the damped basis of all intervals, if it decays."""
        rates = self._derive_rates()
        if rates is None:
            return None
        return DampedBasis.build(times, query_times, self._derive_frequencies(), rates)

    def _compute_phasors(
        self, encoding: ContentRotation, orders: Tensor, times: Tensor
    ) -> HeadPhasors:
        """Compute by how much the content of heads turns at some orders and times."""
        planes = self.dim // self.heads // 2
        order, time = self.derive(
            "planes",
            lambda: encoding.frequencies(heads=self.heads, planes=planes, device=orders.device),
        )
        return compute_phasors(orders[..., None, None] * order + times[..., None, None] * time)

    def _project_event_interval(
        self, time: TimeInputs, times: Tensor, query_times: Tensor, given: Tensor
    ) -> Tensor:
        """Project the features of the interval from each event to its position's query time."""
        project = self.derive(
            "intervals", lambda: self.interval_proj.compose_affine(time.projection)
        )
        rates = self._derive_rates()
        if rates is None:
            at_intervals = rotate(time.events, time.queries)
        else:
            intervals = query_times - times
            at_intervals = damp(basis(intervals, self._derive_frequencies()), intervals, rates)
        return torch.where(given.unsqueeze(-1), project(at_intervals), self.withheld)

    def _compute_kernel(self, batch: SequenceBatch, query_times: Tensor) -> Tensor | None:
        """Compute K(T_q, t_i), if a kernel encodes time: batch, queries, len."""
        kernel = self.time_encoding
        if not isinstance(kernel, TimeKernel):
            return None
        queries = kernel.count_days(query_times, batch.origins)
        events = kernel.count_days(batch.times, batch.origins)
        return kernel(queries.unsqueeze(2), events.unsqueeze(1))

    def _derive_frequencies(self) -> Float64[Tensor, " frequencies"]:
        assert isinstance(self.time_encoding, TimeEncoding)
        return self.derive("frequencies", self.time_encoding.frequencies)

    def _derive_rates(self) -> Float64[Tensor, " frequencies"] | None:
        if not isinstance(self.time_encoding, TimeEncoding):
            return None
        return self.derive("rates", self.time_encoding.rates)

    def _compute_repeat_scores(
        self, users: Tensor, content: Tensor, inputs: BlockInputs
    ) -> Tensor | None:
        if self.pointer is None:
            return None
        time = inputs.time
        keys = self.pointer.project_keys(content, time.events, time.projection, time.event_phasors)
        scores: Tensor = self.pointer(
            users,
            keys,
            time.queries,
            time.projection,
            inputs.kernel,
            phasors=time.query_phasors,
            damped=time.damped,
        )
        return scores

    @property
    def _is_damped(self) -> bool:
        return self._derive_rates() is not None

    @property
    def _uses_positions(self) -> bool:
        encoding = self.time_encoding
        return isinstance(encoding, TimeEncoding) and encoding.domain == "position"

    @property
    def _blocks(self) -> list[TimeAwareBlock]:
        return [cast("TimeAwareBlock", block) for block in self.blocks]


def _find_own_events(
    ends: Int64[Tensor, " queries"], baskets: Baskets | None
) -> tuple[Int64[Tensor, "queries own"], Bool[Tensor, "queries own"]]:
    """Find the events of each query that depend on its query time, side by side.

    Returns:
        Their positions, and which of these are: queries with fewer have others at their ends.
    """
    last = ends - 1
    firsts = last if baskets is None else torch.searchsorted(baskets[0], baskets[0, last])
    own = firsts.unsqueeze(1) + torch.arange(int((ends - firsts).max()), device=ends.device)
    return own.minimum(last.unsqueeze(1)), own < ends.unsqueeze(1)


def _count_events(batch: SequenceBatch) -> Tensor:
    """Count the events before each position, for use in place of its time."""
    return torch.arange(
        batch.rows.shape[1], dtype=torch.float64, device=batch.rows.device
    ).unsqueeze(0)
