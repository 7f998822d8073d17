"""From flat arrays to batches: windows, batches of like length, and supervised positions."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from numpy.typing import NDArray
from torch import Tensor

from model.accelerators import copy_to, needs_fixed_shapes
from model.batch import SequenceBatch
from model.clock import MICROSECONDS_PER_DAY
from training.data.dataset import Dataset
from training.data.event_counts import assign_folds
from training.data.negatives import SeenItems
from training.data.split import Predict, expand_spans, find_basket_ends

CPU = torch.device("cpu")

_MULTIPLE = 8
"""What lengths are multiples of on an accelerator: fewer shapes, and those that it is fast with."""


class TrainingBatch(NamedTuple):
    """Windows, and the targets of their supervised positions.

    Attributes:
        sequences: the windows.
        positions: flat indices into batch x len, one per supervised position.
        targets: catalog rows.
        position_of: per target, which of `positions` it belongs to.
        weights: per target; the weights of one position's targets sum to one.
        users: per window, the index of its user.
        window_of: per target, its window; on the host, as `targets_on_host`, where negatives are
            drawn.
        targets_on_host: the same as `targets`.
        seen: the items that every user has seen in training; no others are negatives.
    """

    sequences: SequenceBatch
    positions: Int64[Tensor, " positions"]
    targets: Int64[Tensor, " targets"]
    position_of: Int64[Tensor, " targets"]
    weights: Float[Tensor, " targets"]
    users: Int64[np.ndarray, " batch"]
    window_of: Int64[np.ndarray, " targets"]
    targets_on_host: Int64[np.ndarray, " targets"]
    seen: SeenItems

    def to(self, device: torch.device) -> "TrainingBatch":
        """Copy the tensors to another device."""
        return self._replace(
            sequences=self.sequences.to(device),
            positions=copy_to(self.positions, device),
            targets=copy_to(self.targets, device),
            position_of=copy_to(self.position_of, device),
            weights=copy_to(self.weights, device),
        )


@dataclass(frozen=True)
class Windows:
    """Spans of the known events of a data set, each within one user.

    Attributes:
        starts: absolute index of the first event read.
        ends: absolute index after the last event read.
        query_times: query time of the last position, epoch microseconds.
    """

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    query_times: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts)

    def select(self, chosen: NDArray[np.int64]) -> "Windows":
        """Select the windows of some indices."""
        return Windows(self.starts[chosen], self.ends[chosen], self.query_times[chosen])


def collate(
    dataset: Dataset, windows: Windows, device: torch.device = CPU, *, width: int | None = None
) -> SequenceBatch:
    """Pad windows into a batch; the query time of an inner position is its next event's time.

    Args:
        device: where the events of the data set are, and the batch will be.
        width: the padded length; by default the length of the longest window.
    """
    events = dataset.on(device)
    spans = np.stack((windows.starts, windows.ends, windows.query_times))
    starts, ends, last_times = copy_to(torch.from_numpy(spans), device).unsqueeze(-1)
    width = width or int((windows.ends - windows.starts).max())
    index = starts + torch.arange(width, device=device)
    is_real, is_last = index < ends, index == ends - 1
    following = torch.where(index < ends - 1, index + 1, starts)
    index = torch.where(is_real, index, starts)
    origins, times = events.times[starts], events.times[index]
    query_times = torch.where(is_last, last_times, events.times[following])
    return SequenceBatch(
        rows=torch.where(is_real, events.rows[index].long(), 0),
        actions=torch.where(is_real, events.action_rows[index].long(), 0),
        times=_count_days(times - origins),
        query_times=_count_days(query_times - origins),
        query_given=torch.ones_like(is_real),
        lengths=(ends - starts).squeeze(-1),
        origins=origins.squeeze(-1),
        count_tables=torch.zeros_like(ends.squeeze(-1)),
    )


def _count_days(microseconds: Int64[Tensor, "*shape"]) -> Float64[Tensor, "*shape"]:
    # As integers until here, which are exact.
    return microseconds.double() / MICROSECONDS_PER_DAY


class TrainingWindows:
    """The windows of a training run: each target is supervised exactly once an epoch.

    Histories longer than `max_history` are read as windows that overlap by half; a later window
    supervises only what no earlier one did, so each of its targets reads at least half a window.

    Args:
        device: where the histories of the batches are; on an accelerator, so are all events.
    """

    def __init__(
        self,
        dataset: Dataset,
        train_ends: NDArray[np.int64],
        *,
        predict: Predict,
        max_history: int,
        device: torch.device = CPU,
    ) -> None:
        self._device, self._max_history = device, max_history
        self._dataset = dataset.known
        ends = dataset.known_before[train_ends]
        self._seen = SeenItems(self._dataset, ends)
        last_of_instant = find_basket_ends(self._dataset) if predict == "next_basket" else None
        starts = self._dataset.offsets[:-1]
        counts = np.maximum(ends - starts - 1, 0)
        positions = expand_spans(starts, counts)
        users = np.repeat(np.arange(len(starts)), counts)
        if last_of_instant is None:
            target_counts = np.ones(len(positions), dtype=np.int64)
        else:
            closing = last_of_instant[positions] == positions + 1
            positions, users = positions[closing], users[closing]
            target_counts = np.minimum(last_of_instant[positions + 1], ends[users]) - positions - 1
        self._positions = positions
        self._target_counts = target_counts
        begins, stops, self._first, self._last = _cut(starts, positions, users, max_history)
        # A window stops just before a target, whose time is the last position's query time.
        self.windows = Windows(begins, stops, self._dataset.times[stops])
        self.targets = int(target_counts.sum())

    def iter_epoch(self, rng: np.random.Generator, *, tokens: int) -> Iterator[TrainingBatch]:
        """Yield every window once, in batches of like length of at most `tokens` positions each."""
        return self.build_batches(self.plan(rng, tokens=tokens))

    def plan(self, rng: np.random.Generator, *, tokens: int) -> list[NDArray[np.int64]]:
        """Group windows of near-equal length into batches; the groups differ from call to call."""
        lengths = self.windows.ends - self.windows.starts
        order = np.argsort(lengths * rng.uniform(1.0, 1.05, len(lengths)), kind="stable")
        batches = [order[part] for part in _group_within_budget(lengths[order], tokens)]
        rng.shuffle(batches)
        return batches

    def build_batches(
        self, plan: list[NDArray[np.int64]], *, part: int = 0, parts: int = 1
    ) -> Iterator[TrainingBatch]:
        """Build the batches of a plan, one at a time, or of every batch one of equal parts."""
        for chosen in plan:
            yield self.build_part(chosen, part, parts)

    def build_part(self, chosen: NDArray[np.int64], part: int, parts: int) -> TrainingBatch:
        """Build one of the parts into which a batch is divided among processes.

        Where a batch has fewer windows than parts, a part without one has a window of another, with
        weights of zero: every process must take every step.
        """
        own = self.deal(chosen, parts)[part]
        if len(own):
            return self.build_batch(own)
        batch = self.build_batch(chosen[:1])
        return batch._replace(weights=torch.zeros_like(batch.weights))

    def deal(self, chosen: NDArray[np.int64], parts: int) -> list[NDArray[np.int64]]:
        """Divide windows into parts of about as many events.

        Windows are dealt out from the longest to the shortest, every other round in the opposite
        order, as the first of a round has the longest.
        """
        if parts == 1:
            return [chosen]
        lengths = self.windows.ends[chosen] - self.windows.starts[chosen]
        order = np.argsort(-lengths, kind="stable")
        turn = np.arange(len(chosen)) % (2 * parts)
        part_of = np.minimum(turn, 2 * parts - 1 - turn)
        return [chosen[order[part_of == part]] for part in range(parts)]

    def build_batch(self, chosen: NDArray[np.int64]) -> TrainingBatch:
        """Build the batch of some windows, with their supervised positions."""
        windows = self.windows.select(chosen)
        users = np.searchsorted(self._dataset.offsets, windows.starts, side="right") - 1
        width = self._choose_width(int((windows.ends - windows.starts).max()))
        sequences = collate(self._dataset, windows, self._device, width=width)._replace(
            count_tables=copy_to(torch.from_numpy(assign_folds(users)), self._device)
        )
        counts = self._last[chosen] - self._first[chosen]
        index = expand_spans(self._first[chosen], counts)
        sample = np.repeat(np.arange(len(chosen)), counts)
        positions = self._positions[index]
        target_counts = self._target_counts[index]
        targets = self._dataset.rows[expand_spans(positions + 1, target_counts)].astype(np.int64)
        flat = sample * sequences.rows.shape[1] + positions - windows.starts[sample]
        return TrainingBatch(
            sequences=sequences,
            positions=torch.from_numpy(flat),
            targets=torch.from_numpy(targets),
            position_of=torch.from_numpy(np.repeat(np.arange(len(index)), target_counts)),
            weights=torch.from_numpy(
                np.repeat(1 / target_counts, target_counts).astype(np.float32)
            ),
            users=users,
            window_of=np.repeat(sample, target_counts),
            targets_on_host=targets,
            seen=self._seen,
        )

    def _choose_width(self, longest: int) -> int:
        if not needs_fixed_shapes(self._device):
            return longest
        # Encoders may hold no more positions than a history may have.
        return min(-(-longest // _MULTIPLE) * _MULTIPLE, max(self._max_history, longest))


def _cut(
    starts: NDArray[np.int64],
    positions: NDArray[np.int64],
    users: NDArray[np.int64],
    max_history: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Cover the supervised positions of every user with windows.

    Returns where each window begins and stops, and the span of the positions it supervises.
    """
    step = max(max_history // 2, 1)
    # The first window supervises the first `max_history` events, every later one the next `step`.
    beyond = positions - starts[users] - max_history
    window = np.maximum(beyond // step + 1, 0)
    is_first = np.ones(len(positions), dtype=np.bool_)
    is_first[1:] = (np.diff(users) != 0) | (np.diff(window) != 0)
    firsts = np.flatnonzero(is_first)
    lasts = np.append(firsts[1:], len(positions))[: len(firsts)]
    begins = starts[users[firsts]] + window[firsts] * step
    return begins, positions[lasts - 1] + 1, firsts, lasts


def _group_within_budget(lengths: NDArray[np.int64], tokens: int) -> Iterator[slice]:
    """Split near-ascending lengths into runs whose padded size stays within `tokens`."""
    begin, longest = 0, 0
    for index, length in enumerate(lengths.tolist()):
        longest = max(longest, length)
        if (index + 1 - begin) * longest > tokens and index > begin:
            yield slice(begin, index)
            begin, longest = index, length
    if len(lengths):
        yield slice(begin, len(lengths))
