"""From flat arrays to batches: windows, batches of like length, and supervised positions."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int64
from numpy.typing import NDArray
from torch import Tensor

from model.batch import SequenceBatch
from model.clock import days_between
from training.data.dataset import Dataset
from training.data.event_counts import assign_folds
from training.data.negatives import SeenItems
from training.data.split import Predict, expand_spans, find_basket_ends


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
            positions=self.positions.to(device, non_blocking=True),
            targets=self.targets.to(device, non_blocking=True),
            position_of=self.position_of.to(device, non_blocking=True),
            weights=self.weights.to(device, non_blocking=True),
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


def collate(dataset: Dataset, windows: Windows) -> SequenceBatch:
    """Pad windows into a batch; the query time of an inner position is its next event's time."""
    lengths = windows.ends - windows.starts
    positions = np.arange(lengths.max())
    is_real = positions < lengths[:, None]
    index = np.where(is_real, windows.starts[:, None] + positions, windows.starts[:, None])
    origin = dataset.times[windows.starts][:, None]
    times = dataset.times[index]
    query_times = np.where(
        positions == lengths[:, None] - 1,
        windows.query_times[:, None],
        dataset.times[np.where(positions < lengths[:, None] - 1, index + 1, index)],
    )
    return SequenceBatch(
        rows=torch.from_numpy(np.where(is_real, dataset.rows[index], 0).astype(np.int64)),
        actions=torch.from_numpy(np.where(is_real, dataset.action_rows[index], 0).astype(np.int64)),
        times=torch.from_numpy(days_between(0, times - origin)),
        query_times=torch.from_numpy(days_between(0, query_times - origin)),
        query_given=torch.ones(index.shape, dtype=torch.bool),
        lengths=torch.from_numpy(lengths),
        origins=torch.from_numpy(dataset.times[windows.starts]),
        count_tables=torch.zeros(len(windows), dtype=torch.int64),
    )


class TrainingWindows:
    """The windows of a training run: each target is supervised exactly once an epoch.

    Histories longer than `max_history` are read as windows that overlap by half; a later window
    supervises only what no earlier one did, so each of its targets reads at least half a window.
    """

    def __init__(
        self,
        dataset: Dataset,
        train_ends: NDArray[np.int64],
        *,
        predict: Predict,
        max_history: int,
    ) -> None:
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
        sequences = collate(self._dataset, windows)._replace(
            count_tables=torch.from_numpy(assign_folds(users))
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
