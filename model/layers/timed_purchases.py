"""The purchases of many users, as vectors of items whose weights depend on the time."""

from typing import ClassVar, NamedTuple, final

import torch
from jaxtyping import Float, Float64, Int, Int64
from torch import Tensor, nn

from model.clock import MICROSECONDS_PER_DAY
from model.layers.nearest_users import select_largest
from model.layers.repurchase_kernel import (
    STARTING_SHAPE,
    UNIT_DAYS,
    KernelCoefficients,
    KernelShapes,
    compute_log_kernel,
)
from model.layers.sized_by_state import SizedByState, are_offsets

_LEAST_LENGTH = 1e-100
_DECIMALS = 9
"""Of a cosine: equal ones differ by less, as their terms are rounded."""


class _Vectors(NamedTuple):
    """What every purchase adds to the vectors of the users, and where.

    Attributes:
        kernels: per purchase, that of its item.
        entry_of: per purchase, its entry: a user and an item.
        entry_rows: per entry, the item.
        entry_users: per entry, the user.
    """

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
        self, rows: Int64[Tensor, "*purchases"], days: Float64[Tensor, "*purchases"]
    ) -> Float[Tensor, "*purchases"]:
        """Compute the logarithms of the kernels of items, some days after their purchases."""
        shapes = KernelShapes(*self.shapes[rows].unbind(-1))
        return compute_log_kernel((days / UNIT_DAYS).clamp(min=0).float(), shapes)

    def average_nearest(
        self, vector: Float[Tensor, " rows"], instant: int, count: int
    ) -> Float[Tensor, " rows"]:
        """Average the vectors of up to `count` users nearest to a vector, by their cosine.

        Users who share no item with the vector at the instant are none of them. Of equal cosines
        those of the first users count.

        Args:
            instant: of the users' vectors, epoch microseconds.
        """
        if not len(self.rows) or not count:
            return torch.zeros_like(vector)
        vectors = self._index()
        # Subtracted as integers: single precision has minutes only, some decades away.
        days = (instant - self.times).double().div_(MICROSECONDS_PER_DAY)
        weights = vectors.kernels.compute(days.div_(UNIT_DAYS).float()).double()
        entries = weights.new_zeros(len(vectors.entry_rows)).index_add_(
            0, vectors.entry_of, weights
        )
        own = vector.double()
        own = own / own.norm().clamp(min=_LEAST_LENGTH)
        users = weights.new_zeros(len(self.offsets) - 1)
        products = users.index_add(0, vectors.entry_users, entries * own[vectors.entry_rows])
        lengths = users.index_add(0, vectors.entry_users, entries.square()).sqrt()
        cosines = (products / lengths.clamp(min=_LEAST_LENGTH)).cpu().numpy()
        is_near = select_largest(cosines.round(_DECIMALS)[None], count)[0] & (cosines > 0)
        if not is_near.any():
            return torch.zeros_like(vector)
        chosen = torch.from_numpy(is_near).to(vector.device)[vectors.entry_users]
        total = torch.zeros_like(own).index_add_(0, vectors.entry_rows[chosen], entries[chosen])
        return (total / int(is_near.sum())).to(vector)

    def _index(self) -> _Vectors:
        if self._vectors is None or self._vectors.entry_of.device != self.rows.device:
            rows = self.rows.long()
            pairs = _pair(self.offsets, self.rows, width=len(self.shapes))
            begins = torch.ones_like(pairs, dtype=torch.bool)
            begins[1:] = pairs[1:] != pairs[:-1]
            self._vectors = _Vectors(
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
        """Describe what an index would read beyond the ends of the arrays, or out of order."""
        offsets, rows, times = (arrays[name] for name in self.stored)
        if not are_offsets(offsets, len(rows)):
            return f"its offsets must lead from 0 to its {len(rows):,} purchases"
        if len(rows) != len(times):
            return f"it must have as many times as rows, {len(rows):,}, not {len(times):,}"
        if not bool(((rows >= 0) & (rows < len(self.shapes))).all()):
            return f"its rows must be from 0 to {len(self.shapes) - 1:,}"
        if not bool((_pair(offsets, rows, width=len(self.shapes)).diff() >= 0).all()):
            return "its rows must ascend within a user"
        return None


def _pair(
    offsets: Int64[Tensor, " offsets"], rows: Int[Tensor, " purchases"], *, width: int
) -> Int64[Tensor, " purchases"]:
    """Compute a number of the pair of user and item of each purchase."""
    users = torch.arange(len(offsets) - 1, device=rows.device)
    return users.repeat_interleave(offsets.diff()) * width + rows
