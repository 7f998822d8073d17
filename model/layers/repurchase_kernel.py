"""When users return to an item: a mixture of an exponential and a normal density per item."""

import math
from itertools import pairwise
from typing import NamedTuple, final

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor, nn

from model.clock import MICROSECONDS_PER_DAY

UNIT_DAYS = 70.0
"""Days of the unit in which intervals and densities are measured: the ten weeks of the authors."""

LEAST_WIDTH = 0.25 / UNIT_DAYS
"""Least mean of the exponential and least standard deviation of the normal: a quarter of a day.
Events of one day often share a clock time, where a density could grow without bound."""

DEFAULT_INTERVAL = 30.0
"""Days of an interval that the training events do not show."""


_DRAWN = 5.0
"""Repeats of all items that count beside an item's own where its start is measured."""


class KernelShapes(NamedTuple):
    """The shapes of the kernels of some items, in units of `UNIT_DAYS`.

    Attributes:
        normal_logit: the logarithm of the odds of the normal density.
        log_mean: of the exponential density, whose mean is `exp(log_mean) + LEAST_WIDTH`.
        centre: the mean of the normal density.
        log_width: of the normal density, whose standard deviation is `exp(log_width) +
            LEAST_WIDTH`.
    """

    normal_logit: Float[Tensor, "*items"]
    log_mean: Float[Tensor, "*items"]
    centre: Float[Tensor, "*items"]
    log_width: Float[Tensor, "*items"]


STARTING_SHAPE = (0.0, 0.0, DEFAULT_INTERVAL / UNIT_DAYS, 0.0)
"""Both densities weigh alike, and each is `UNIT_DAYS` wide."""


def compute_log_kernel(
    intervals: Float[Tensor, "*#shape"], shapes: KernelShapes
) -> Float[Tensor, "*shape"]:
    """Compute the logarithm of `(1 - pi) Exp(interval; beta) + pi Normal(interval; mu, sigma)`.

    Args:
        intervals: since the purchase, in units of `UNIT_DAYS`.
        shapes: of the purchase's item.

    Returns:
        Logarithms of densities per `UNIT_DAYS`.
    """
    mean = shapes.log_mean.exp() + LEAST_WIDTH
    width = shapes.log_width.exp() + LEAST_WIDTH
    log_normal = nn.functional.logsigmoid(shapes.normal_logit)
    of_exponential = log_normal - shapes.normal_logit - mean.log() - intervals / mean
    level = log_normal - width.log() - 0.5 * math.log(2 * math.pi)
    of_normal = level - 0.5 * ((intervals - shapes.centre) / width).square()
    return torch.logaddexp(of_exponential, of_normal)


class KernelCoefficients(NamedTuple):
    """The kernels of some purchases, in the form in which many are computed fastest.

    Attributes:
        rate: the inverse of the exponential density's mean, per `UNIT_DAYS`.
        exponential: the weight of the exponential.
        inverse_width: the inverse of the normal density's standard deviation, per `UNIT_DAYS`.
        scaled_centre: of the normal density, in its widths.
        normal: the weight of the normal density's exponential.
    """

    rate: Float[Tensor, " purchases"]
    exponential: Float[Tensor, " purchases"]
    inverse_width: Float[Tensor, " purchases"]
    scaled_centre: Float[Tensor, " purchases"]
    normal: Float[Tensor, " purchases"]

    @classmethod
    def of_shapes(cls, shapes: KernelShapes) -> "KernelCoefficients":
        """Compute the coefficients of some shapes."""
        rate = 1 / (shapes.log_mean.exp() + LEAST_WIDTH)
        inverse_width = 1 / (shapes.log_width.exp() + LEAST_WIDTH)
        share = shapes.normal_logit.sigmoid()
        return cls(
            rate,
            (1 - share) * rate,
            inverse_width,
            shapes.centre * inverse_width,
            share * inverse_width / math.sqrt(2 * math.pi),
        )

    def compute(self, intervals: Float[Tensor, " purchases"]) -> Float[Tensor, " purchases"]:
        """Compute the kernels, without gradients; those of negative intervals are 0."""
        # The exponential of a long interval before the purchase would be infinite.
        since = intervals.clamp(min=0)
        scaled = (since * self.inverse_width).sub_(self.scaled_centre)
        of_normal = scaled.square_().mul_(-0.5).exp_().mul_(self.normal)
        decayed = since.mul_(self.rate).neg_().exp_()
        return of_normal.addcmul_(decayed, self.exponential).mul_(intervals >= 0)


@final
class RepurchaseKernel(nn.Module):
    """The learned excitation of an item by each of its past purchases.

    The logarithm of `alpha g(interval)`, where g is the density of `compute_log_kernel`. What an
    item's parameters differ by from those shared by all items gets a gradient from the item's own
    repeats alone, so items with few of them stay close to where they start.

    Shape: rows (*), intervals (*) -> (*)

    Args:
        items: catalog size without the padding row.
    """

    def __init__(self, *, items: int) -> None:
        super().__init__()
        # Log alpha, then the shape. The excitation of one purchase weighs as the base intensity of
        # all items.
        start = (math.log(max(items, 1)), *STARTING_SHAPE)
        self.shared = nn.Parameter(torch.tensor(start))
        self.offsets = nn.Parameter(torch.zeros(items + 1, len(start)))

    @torch.no_grad()
    def start_at(self, shapes: Float[Tensor, "rows 4"]) -> None:
        """Start at the shapes of `measure_shapes`: those of row 0 are shared."""
        self.shared[1:] = shapes[0]
        self.offsets[:, 1:] = shapes - shapes[0]

    def forward(
        self, rows: Int64[Tensor, "*events"], intervals: Float[Tensor, "*#shape"]
    ) -> Float[Tensor, "*shape"]:
        """Compute the logarithm of the excitation by each purchase.

        Args:
            rows: of the purchases; their shape broadcasts to that of the intervals.
            intervals: since the purchases, in units of `UNIT_DAYS`.
        """
        log_alpha, *shape = (self.shared + self.offsets[rows]).unbind(-1)
        return log_alpha + compute_log_kernel(intervals, KernelShapes(*shape))


class Repeats(NamedTuple):
    """Purchases of an item by a user who has bought it before, paired with the earlier ones.

    Attributes:
        rows: per repeat, its item.
        repeat_of: per pair, its repeat.
        days: per pair, the interval between the two purchases.
        latest_days: per repeat, the interval since the latest earlier purchase.
    """

    rows: Int64[Tensor, " repeats"]
    repeat_of: Int64[Tensor, " pairs"]
    days: Float64[Tensor, " pairs"]
    latest_days: Float64[Tensor, " repeats"]


def find_repeats(
    rows: Int64[Tensor, " events"],
    times: Int64[Tensor, " events"],
    users: Int64[Tensor, " events"],
    *,
    most_earlier: int,
) -> Repeats:
    """Pair every repeat with up to `most_earlier` of the purchases before it, the latest ones.

    Purchases of one instant do not precede each other.

    Args:
        rows: of events sorted by user, then time.
        times: epoch microseconds.
        users: user number of each event.
    """
    pair = users * (rows.amax() + 1 if len(rows) else 1) + rows
    order = pair.argsort(stable=True)  # Within a pair of user and item, by time.
    pair, times, rows = pair[order], times[order], rows[order]
    is_first = torch.ones_like(pair, dtype=torch.bool)
    is_first[1:] = pair[1:] != pair[:-1]
    is_new = is_first.clone()
    is_new[1:] |= times[1:] != times[:-1]
    rows, times, is_first = rows[is_new], times[is_new], is_first[is_new]
    index = torch.arange(len(rows))
    earlier = index - torch.where(is_first, index, 0).cummax(0).values
    repeats = earlier.nonzero().squeeze(1)
    counts = earlier[repeats].clamp(max=most_earlier)
    repeat_of = torch.arange(len(repeats)).repeat_interleave(counts)
    lag = torch.arange(len(repeat_of)) - (counts.cumsum(0) - counts)[repeat_of] + 1
    later = repeats[repeat_of]
    days = (times[later] - times[later - lag]).double() / MICROSECONDS_PER_DAY
    return Repeats(rows[repeats], repeat_of, days, days[lag == 1])


def start_shapes(repeats: Repeats, *, items: int) -> Float[Tensor, "rows 4"]:
    """Return the authors' start, one row of `KernelShapes` per catalog row, all alike.

    The normal density has the mean interval of all repeats as its centre.

    Args:
        items: catalog size without the padding row.
    """
    shapes = torch.tensor(STARTING_SHAPE).repeat(items + 1, 1)
    if len(repeats.rows):
        shapes[:, 2] = repeats.latest_days.mean() / UNIT_DAYS
    return shapes


def measure_shapes(repeats: Repeats, *, items: int) -> Float[Tensor, "rows 4"]:
    """Measure the normal density of every item, one row of `KernelShapes` per catalog row.

    Its centre is the mean interval since the latest purchase and its width their standard
    deviation, both drawn to those of all items as if `_DRAWN` repeats of all were the item's. Row 0
    has those of all items. The rest is as in `start_shapes`.

    Args:
        items: catalog size without the padding row.
    """
    shapes = torch.tensor(STARTING_SHAPE).repeat(items + 1, 1)
    intervals = repeats.latest_days / UNIT_DAYS
    if not len(intervals):
        return shapes
    counts, sums, squares = (
        torch.bincount(repeats.rows, weights, minlength=items + 1)
        for weights in (torch.ones_like(intervals), intervals, intervals.square())
    )
    mean = (sums + _DRAWN * intervals.mean()) / (counts + _DRAWN)
    square = (squares + _DRAWN * intervals.square().mean()) / (counts + _DRAWN)
    shapes[:, 2] = mean.float()
    shapes[:, 3] = (square - mean.square()).clamp(min=LEAST_WIDTH**2).sqrt().log().float()
    return shapes


def measure_visit_interval(
    times: Int64[Tensor, " events"], users: Int64[Tensor, " events"]
) -> float:
    """Measure the median interval in days between successive instants of a user.

    Args:
        times: epoch microseconds of events sorted by user, then time.
        users: user number of each event.
    """
    intervals = times[1:] - times[:-1]
    intervals = intervals[(users[1:] == users[:-1]) & (intervals > 0)]
    if not len(intervals):
        return DEFAULT_INTERVAL
    return float(intervals.double().median()) / MICROSECONDS_PER_DAY


_MOST_EARLIER = 50
"""Earlier purchases that count for a repeat in a fit, the latest ones."""

MOST_PAIRS = 1_000_000
"""Pairs of a repeat and an earlier purchase whose gradients are computed at once, about."""


class KernelFit(NamedTuple):
    """How shapes are fitted to repeats.

    Attributes:
        steps: of the optimizer, at most; it ends where nothing improves.
        is_measured: whether items start at their own intervals, as `measure_shapes` measures them.
        shrinkage: of an item's difference from the shape that all items share: a weight of its
            square beside the sum of the item's losses, one per repeat.
    """

    steps: int
    shrinkage: float
    is_measured: bool = False


def fit_shapes(
    rows: Int64[Tensor, " events"],
    times: Int64[Tensor, " events"],
    users: Int64[Tensor, " events"],
    *,
    items: int,
    fit: KernelFit,
    most_pairs: int = MOST_PAIRS,
) -> Float[Tensor, "rows 4"]:
    """Fit the shapes of the kernels, one row of `KernelShapes` per catalog row.

    The loss of a repeat is that of BPR against an item without purchases: `-log sigmoid` of the sum
    of its item's kernel over the earlier purchases. The sum of the losses, plus half of `shrinkage`
    times the squares of the items' differences from the shape that all share, is minimised by
    L-BFGS with a line search, which never ends above its start.

    Args:
        rows: of events sorted by user, then time.
        times: epoch microseconds.
        users: user number of each event.
        items: catalog size without the padding row.
        most_pairs: whose gradients are computed at once, about; gradients are added up.
    """
    repeats = find_repeats(rows, times, users, most_earlier=_MOST_EARLIER)
    start = measure_shapes if fit.is_measured else start_shapes
    shapes = start(repeats, items=items)
    if not len(repeats.rows) or not fit.steps:
        return shapes
    # Of the items that repeat: per pair, an item's parameters are looked up in a short table.
    repeating, item_of = torch.unique(repeats.rows, return_inverse=True)
    starts = shapes[repeating] - shapes[0]
    # Parameters are measured in units in which the objective bends about alike: a repeat adds about
    # one to the second derivative, and the shrinkage its own.
    counts = torch.bincount(item_of).unsqueeze(1)
    unit, of_item_unit = len(item_of) ** -0.5, (counts + fit.shrinkage) ** -0.5
    shared, of_items = nn.Parameter(shapes[0] / unit), nn.Parameter(starts / of_item_unit)
    intervals = (repeats.days / UNIT_DAYS).float()
    slices = _slice_repeats(repeats, most_pairs)
    optimizer = torch.optim.LBFGS(
        (shared, of_items), max_iter=fit.steps, line_search_fn="strong_wolfe"
    )

    def compute_objective() -> float:
        optimizer.zero_grad()
        penalty = 0.5 * fit.shrinkage * (of_items * of_item_unit).square().sum()
        penalty.backward()  # type: ignore[no-untyped-call]
        objective = penalty.item()
        for chosen, pairs in slices:
            repeat_of = repeats.repeat_of[pairs] - chosen.start
            of_pairs = item_of[chosen][repeat_of]
            of_kernels = shared * unit + of_items * of_item_unit
            density = compute_log_kernel(
                intervals[pairs], KernelShapes(*of_kernels[of_pairs].unbind(-1))
            ).exp()
            sums = torch.zeros(chosen.stop - chosen.start).index_add(0, repeat_of, density)
            loss = -nn.functional.logsigmoid(sums).sum()
            loss.backward()  # type: ignore[no-untyped-call]
            objective += loss.item()
        return objective

    optimizer.step(compute_objective)  # type: ignore[no-untyped-call]
    fitted: Tensor = (shared * unit).detach().repeat(items + 1, 1)
    fitted[repeating] += (of_items * of_item_unit).detach()
    return fitted


def _slice_repeats(repeats: Repeats, most_pairs: int) -> list[tuple[slice, slice]]:
    """Divide the repeats, and their pairs with them, into slices of about as many pairs."""
    ends = torch.bincount(repeats.repeat_of, minlength=len(repeats.rows)).cumsum(0)
    last = int(ends[-1])
    cuts = torch.tensor([*range(0, last, most_pairs), last])
    # Behind the last repeat whose pairs end there at the latest.
    begins = sorted(set(torch.searchsorted(ends, cuts, right=True).tolist()))
    return [
        (slice(begin, end), slice(int(ends[begin - 1]) if begin else 0, int(ends[end - 1])))
        for begin, end in pairwise(begins)
    ]
