"""The purchases of many users, as vectors of items whose weights depend on the time."""

from typing import ClassVar, NamedTuple, final

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from model.clock import MICROSECONDS_PER_DAY
from model.layers.repurchase_kernel import (
    STARTING_SHAPE,
    UNIT_DAYS,
    KernelCoefficients,
    KernelShapes,
    compute_log_kernel,
)
from model.layers.sized_by_state import SizedByState, are_offsets

_LEAST_LENGTH = 1e-20


class _Vectors(NamedTuple):
    """What every purchase adds to the vectors of the users, and where.

    Attributes:
        times: per purchase, in units of `UNIT_DAYS` before the latest one.
        latest: time of the latest purchase, epoch microseconds.
        kernels: per purchase, that of its item.
        entry_of: per purchase, its entry: a user and an item.
        entry_rows: per entry, the item.
        entry_users: per entry, the user.
    """

    times: Float[Tensor, " purchases"]
    latest: int
    kernels: KernelCoefficients
    entry_of: Int64[Tensor, " purchases"]
    entry_rows: Int64[Tensor, " entries"]
    entry_users: Int64[Tensor, " entries"]


@final
class TimedPurchases(SizedByState):
    """Purchases of users, empty until `store`, and the users nearest to a vector at an instant.

    A user's vector at an instant has, per item, the sum of the item's kernel over the purchases
    before that instant. Loading a state takes the number of users and purchases from the state.

    Attributes:
        shapes: of the items' kernels, `KernelShapes` per catalog row.
        offsets: user `u` owns the purchases `offsets[u]` up to `offsets[u + 1]`.
        rows: of the purchases, ascending within a user.
        times: epoch microseconds.
    """

    stored: ClassVar[dict[str, torch.dtype]] = {
        "offsets": torch.int64,
        "rows": torch.int32,
        "times": torch.int64,
    }

    shapes: Tensor
    offsets: Tensor
    rows: Tensor
    times: Tensor

    def __init__(self, *, items: int) -> None:
        super().__init__()
        self.register_buffer("shapes", torch.tensor(STARTING_SHAPE).repeat(items + 1, 1))
        self._vectors: _Vectors | None = None

    def store(
        self,
        rows: Int64[Tensor, " events"],
        times: Int64[Tensor, " events"],
        users: Int64[Tensor, " events"],
    ) -> None:
        """Replace the purchases by events that are sorted by user, then time."""
        _, counts = torch.unique(users, return_counts=True)
        order = rows.argsort(stable=True)
        order = order[users[order].argsort(stable=True)]
        device = self.shapes.device
        self.offsets = nn.functional.pad(counts.cumsum(0), (1, 0)).to(device)
        self.rows, self.times = rows[order].int().to(device), times[order].to(device)
        self.forget_derived()

    def compute_log_weights(
        self, rows: Int64[Tensor, "*purchases"], days: Tensor
    ) -> Float[Tensor, "*purchases"]:
        """Compute the logarithms of the kernels of items, some days after their purchases."""
        shapes = KernelShapes(*self.shapes[rows].unbind(-1))
        return compute_log_kernel((days / UNIT_DAYS).clamp(min=0).float(), shapes)

    def average_nearest(
        self, vector: Float[Tensor, " rows"], instant: int, count: int
    ) -> Float[Tensor, " rows"]:
        """Average the vectors of the `count` users nearest to a vector, by their cosine.

        Users without a purchase before the instant are none of them.

        Args:
            instant: of the users' vectors, epoch microseconds.
        """
        average = torch.zeros_like(vector)
        count = min(count, len(self.offsets) - 1)
        if not count:
            return average
        vectors = self._index()
        since_latest = (instant - vectors.latest) / MICROSECONDS_PER_DAY / UNIT_DAYS
        weights = vectors.kernels.compute(vectors.times + since_latest)
        entries = weights.new_zeros(len(vectors.entry_rows)).index_add_(
            0, vectors.entry_of, weights
        )
        users = weights.new_zeros(len(self.offsets) - 1)
        products = users.index_add(0, vectors.entry_users, entries * vector[vectors.entry_rows])
        lengths = users.index_add(0, vectors.entry_users, entries.square()).sqrt()
        cosines = products / lengths.clamp(min=_LEAST_LENGTH)
        nearest = cosines.topk(count).indices
        is_near = torch.zeros_like(cosines, dtype=torch.bool)
        is_near[nearest] = True
        chosen = is_near[vectors.entry_users].nonzero().squeeze(1)
        return average.index_add_(0, vectors.entry_rows[chosen], entries[chosen]).div_(count)

    def _index(self) -> _Vectors:
        if self._vectors is None or self._vectors.times.device != self.rows.device:
            rows = self.rows.long()
            users = torch.arange(len(self.offsets) - 1, device=rows.device)
            pairs = users.repeat_interleave(self.offsets.diff()) * len(self.shapes) + rows
            begins = torch.ones_like(pairs, dtype=torch.bool)
            begins[1:] = pairs[1:] != pairs[:-1]
            latest = self.times.amax()
            self._vectors = _Vectors(
                times=((latest - self.times).double() / MICROSECONDS_PER_DAY / UNIT_DAYS).float(),
                latest=int(latest),
                kernels=KernelCoefficients.of_shapes(KernelShapes(*self.shapes[rows].unbind(-1))),
                entry_of=begins.cumsum(0) - 1,
                entry_rows=rows[begins],
                entry_users=pairs[begins] // len(self.shapes),
            )
        return self._vectors

    def forget_derived(self) -> None:
        """Forget the vectors of the users."""
        self._vectors = None

    def describe_misfit(self, arrays: dict[str, Tensor]) -> str | None:
        """Describe what an index would read beyond the ends of the arrays; None if nothing."""
        offsets, rows, times = (arrays[name] for name in self.stored)
        if not are_offsets(offsets, len(rows)):
            return f"its offsets must lead from 0 to its {len(rows):,} purchases"
        if len(rows) != len(times):
            return f"it must have as many times as rows, {len(rows):,}, not {len(times):,}"
        if not bool(((rows >= 0) & (rows < len(self.shapes))).all()):
            return f"its rows must be from 0 to {len(self.shapes) - 1:,}"
        return None
