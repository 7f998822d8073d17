"""The purchases of many users, as vectors of items whose weights depend on the time."""

from typing import ClassVar, NamedTuple, final

import torch
from jaxtyping import Bool, Float, Float64, Int, Int64
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
_MOST_SHARED = 0.1
"""Share of all entries of the items of a vector, up to which only their users are compared."""


class _Vectors(NamedTuple):
    """What every purchase of some users adds to their vectors, and where.

    Attributes:
        users: how many they are.
        times: per purchase, epoch microseconds.
        kernels: per purchase, that of its item.
        entry_of: per purchase, its entry: a user and an item.
        entry_rows: per entry, the item.
        entry_users: per entry, the user, as the place among those users.
    """

    users: int
    times: Int64[Tensor, " purchases"]
    kernels: KernelCoefficients
    entry_of: Int64[Tensor, " purchases"]
    entry_rows: Int64[Tensor, " entries"]
    entry_users: Int64[Tensor, " entries"]

    def select(
        self,
        users: int,
        purchases: Int64[Tensor, " chosen"],
        entries: Int64[Tensor, " chosen_entries"],
    ) -> "_Vectors":
        """Select all purchases and entries of so many users, ascending."""
        return _Vectors(
            users=users,
            times=self.times[purchases],
            kernels=KernelCoefficients(*(one[purchases] for one in self.kernels)),
            entry_of=_find_begins(self.entry_of[purchases]).cumsum(0) - 1,
            entry_rows=self.entry_rows[entries],
            entry_users=_find_begins(self.entry_users[entries]).cumsum(0) - 1,
        )


class _Index(NamedTuple):
    """The vectors of all users, and where those of a user and those with an item are.

    Attributes:
        vectors: of all users.
        entry_offsets: user `u` owns the entries `entry_offsets[u]` up to `entry_offsets[u + 1]`.
        by_row: the entries, ordered by item.
        row_offsets: row `r` has the entries `by_row[row_offsets[r] : row_offsets[r + 1]]`.
    """

    vectors: _Vectors
    entry_offsets: Int64[Tensor, " users_and_one"]
    by_row: Int64[Tensor, " entries"]
    row_offsets: Int64[Tensor, " rows_and_one"]


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
        self._index: _Index | None = None

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
        vectors = self._select_sharing(vector)
        # Subtracted as integers: single precision has minutes only, some decades away.
        days = (instant - vectors.times).double().div_(MICROSECONDS_PER_DAY)
        weights = vectors.kernels.compute(days.div_(UNIT_DAYS).float()).double()
        entries = weights.new_zeros(len(vectors.entry_rows)).index_add_(
            0, vectors.entry_of, weights
        )
        own = vector.double()
        own = own / own.norm().clamp(min=_LEAST_LENGTH)
        users = weights.new_zeros(vectors.users)
        products = users.index_add(0, vectors.entry_users, entries * own[vectors.entry_rows])
        lengths = users.index_add(0, vectors.entry_users, entries.square()).sqrt()
        cosines = (products / lengths.clamp(min=_LEAST_LENGTH)).cpu().numpy()
        is_near = select_largest(cosines.round(_DECIMALS)[None], count)[0] & (cosines > 0)
        if not is_near.any():
            return torch.zeros_like(vector)
        chosen = torch.from_numpy(is_near).to(vector.device)[vectors.entry_users]
        total = torch.zeros_like(own).index_add_(0, vectors.entry_rows[chosen], entries[chosen])
        return (total / int(is_near.sum())).to(vector)

    def _select_sharing(self, vector: Float[Tensor, " rows"]) -> _Vectors:
        """Select the vectors of users who share an item with a vector; or all, if they are many."""
        index = self._build_index()
        rows = vector.nonzero().squeeze(1)
        # Where most have such an item, to copy what they have bought costs more than it saves.
        shared = index.row_offsets[rows + 1] - index.row_offsets[rows]
        if int(shared.sum()) > _MOST_SHARED * len(index.by_row):
            return index.vectors
        shares = torch.zeros(index.vectors.users, dtype=torch.bool, device=rows.device)
        shares[index.vectors.entry_users[index.by_row[_list_owned(index.row_offsets, rows)]]] = True
        users = shares.nonzero().squeeze(1)
        return index.vectors.select(
            len(users),
            _list_owned(self.offsets, users),
            _list_owned(index.entry_offsets, users),
        )

    def _build_index(self) -> _Index:
        if self._index is None or self._index.by_row.device != self.rows.device:
            rows, users = self.rows.long(), len(self.offsets) - 1
            pairs = _pair(self.offsets, self.rows, width=len(self.shapes))
            begins = _find_begins(pairs)
            vectors = _Vectors(
                users=users,
                times=self.times,
                kernels=KernelCoefficients.of_shapes(KernelShapes(*self.shapes[rows].unbind(-1))),
                entry_of=begins.cumsum(0) - 1,
                entry_rows=rows[begins],
                entry_users=pairs[begins] // len(self.shapes),
            )
            self._index = _Index(
                vectors=vectors,
                entry_offsets=_count_offsets(vectors.entry_users, users),
                by_row=vectors.entry_rows.argsort(stable=True),
                row_offsets=_count_offsets(vectors.entry_rows, len(self.shapes)),
            )
        return self._index

    def forget_derived(self) -> None:
        """Forget the vectors of the users."""
        self._index = None

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


def _count_offsets(owners: Int64[Tensor, " owned"], count: int) -> Int64[Tensor, " owners_and_one"]:
    """Compute where what each of `count` owners owns begins and ends, if it is in their order."""
    return nn.functional.pad(torch.bincount(owners, minlength=count).cumsum(0), (1, 0))


def _find_begins(values: Int64[Tensor, " values"]) -> Bool[Tensor, " values"]:
    """Find the values that differ from the one before."""
    begins = torch.ones_like(values, dtype=torch.bool)
    begins[1:] = values[1:] != values[:-1]
    return begins


def _list_owned(
    offsets: Int64[Tensor, " owners_and_one"], owners: Int64[Tensor, " chosen"]
) -> Int64[Tensor, " owned"]:
    """List the places `offsets[o]` up to `offsets[o + 1]` of some owners, one after another."""
    counts = offsets[owners + 1] - offsets[owners]
    before = counts.cumsum(0) - counts
    places = torch.arange(int(counts.sum()), device=offsets.device)
    return places + (offsets[owners] - before).repeat_interleave(counts)
