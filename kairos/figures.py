"""The figure of one user over the query time: attention by basket, and the ranks of items."""

from collections import Counter, defaultdict
from datetime import datetime
from io import BytesIO
from typing import final

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from numpy.typing import NDArray

from kairos.lift import BOUND, EVEN, HIGH, LOW
from model.catalog import Catalog
from model.clock import to_datetime
from model.inference.answers import Sweep

_MOST_BASKETS = 40
_MOST_LINES = 10
_MOST_LABELS = 16
_LONGEST_NAME = 32
_COLOURS = LinearSegmentedColormap.from_list("lift", [LOW, EVEN, HIGH])
_SCALE = Normalize(-BOUND, BOUND)


@final
class AttentionFigure(Figure):
    """Rows are baskets, x is the query time, the colour is the lift; below, the ranks of items.

    White: the basket has not happened yet, or the model no longer reads it. The latest 40 baskets
    are drawn, and the items that are most often among the first. Jupyter shows the figure without
    `pyplot`, which would keep it open.
    """

    def __init__(
        self,
        baskets: pl.DataFrame,
        sweep: Sweep,
        catalog: Catalog,
        *,
        n: int,
        at: int | None,
        title: str,
    ) -> None:
        """Draw a sweep.

        Args:
            baskets: from `kairos.tables.sum_baskets`, of the sweep.
            n: the ranks to draw.
            at: an instant to mark, epoch microseconds.
            title: of the figure; any text.
        """
        rows = baskets["timestamp"].unique().sort().to_list()[-_MOST_BASKETS:]
        height = 1.6 + 0.16 * max(len(rows), 6) + 0.35 * max(n, 3)
        super().__init__(figsize=(9.5, height), dpi=90, layout="constrained")
        times = [to_datetime(instant.query_time) for instant in sweep.instants]
        attention, ranks = self.subplots(
            2, 1, sharex=True, height_ratios=[0.16 * max(len(rows), 6), 0.35 * max(n, 3)]
        )
        _draw_lift(attention, baskets, rows, times)
        _draw_ranks(ranks, sweep, catalog, times, n)
        if at is not None:
            for axes in (attention, ranks):
                axes.axvline(date2num(to_datetime(at)), color="black", linewidth=1)  # type: ignore[no-untyped-call]
        attention.set_title(title, loc="left", fontsize=10, parse_math=False)
        bar = self.colorbar(
            ScalarMappable(_SCALE, _COLOURS),
            cax=attention.inset_axes((1.01, 0.0, 0.012, 1.0)),
            ticks=[-2, -1, 0, 1, 2],
        )
        bar.ax.set_yticklabels(["\u00bc", "\u00bd", "1", "2", "4"], fontsize=8)
        bar.set_label("lift", fontsize=8)
        locator = AutoDateLocator()  # type: ignore[no-untyped-call]
        ranks.xaxis.set_major_locator(locator)
        ranks.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
        ranks.set_xlabel("query time (UTC)", fontsize=8)

    def _repr_png_(self) -> bytes:
        content = BytesIO()
        self.savefig(content, format="png")
        return content.getvalue()


def _draw_lift(
    axes: Axes, baskets: pl.DataFrame, rows: list[datetime], times: list[datetime]
) -> None:
    """Colour each basket at each query time after it."""
    row_of = {at: row for row, at in enumerate(rows)}
    column_of = {at: column for column, at in enumerate(times)}
    lifts = np.full((len(rows), len(times)), np.nan)
    for query_time, at, lift in baskets.select("query_time", "timestamp", "lift").iter_rows():
        if at in row_of:
            lifts[row_of[at], column_of[query_time]] = lift
    with np.errstate(divide="ignore"):
        powers = np.clip(np.log2(lifts), -BOUND, BOUND)
    edges = np.arange(len(rows) + 1) - 0.5
    axes.pcolormesh(_find_edges(times), edges, powers, cmap=_COLOURS, norm=_SCALE)
    axes.invert_yaxis()
    step = -(-len(rows) // _MOST_LABELS) or 1
    axes.set_yticks(range(0, len(rows), step))
    axes.set_yticklabels([f"{at:%Y-%m-%d}" for at in rows[::step]], fontsize=8)
    axes.set_ylabel("basket", fontsize=8)


def _draw_ranks(axes: Axes, sweep: Sweep, catalog: Catalog, times: list[datetime], n: int) -> None:
    """Draw the rank of the items over the query time as lines, which break where it is below n."""
    ranks: dict[int, dict[int, int]] = defaultdict(dict)
    for column, instant in enumerate(sweep.instants):
        for rank, item in enumerate(instant.items, start=1):
            ranks[item.row][column] = rank
    counted = Counter({row: len(columns) for row, columns in ranks.items()})
    x = date2num(times)  # type: ignore[no-untyped-call]
    for number, (row, _) in enumerate(counted.most_common(_MOST_LINES)):
        y = [ranks[row].get(column, np.nan) for column in range(len(times))]
        name = catalog.title(row) or catalog.item_id(row)
        # A label that begins with an underscore would be left out.
        short = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}\u2026"
        axes.plot(
            x, y, color=f"C{number}", linewidth=2, marker=".", markersize=4, label=f" {short}"
        )
    axes.set_ylim(n + 0.5, 0.5)
    axes.set_yticks(range(1, n + 1))
    axes.set_ylabel("rank", fontsize=8)
    axes.tick_params(labelsize=8)
    if ranks:
        legend = axes.legend(
            loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=7, frameon=False
        )
        for text in legend.get_texts():
            text.set_parse_math(False)


def _find_edges(times: list[datetime]) -> NDArray[np.float64]:
    """Return the edges between query times: half-way, and as far beyond the ends."""
    x = np.asarray(date2num(times), dtype=np.float64)  # type: ignore[no-untyped-call]
    if len(x) == 1:
        return np.array([x[0] - 0.5, x[0] + 0.5])
    middle = (x[1:] + x[:-1]) / 2
    return np.concatenate(([2 * x[0] - middle[0]], middle, [2 * x[-1] - middle[-1]]))
