// @ts-check
/** Shading of the map where many items lie: cells of a grid in levels of their number. */

import { cssColor, withOpacity } from "../shell/chart.js";

const CELLS = 64;
const OPACITY = 0.055;
/** Of the most crowded cell; the area of each level lies within that of the one before. */
const LEVELS = [0.08, 0.2, 0.4, 0.65];

/** How many traces `densityTraces` returns. */
export const DENSITY_LEVELS = LEVELS.length;

/**
 * A trace per level, to be drawn below the points.
 *
 * @param {any[]} items
 */
export function densityTraces(items) {
  const grid = countCells(items);
  const most = Math.max(...grid.counts, 0);
  const fillcolor = withOpacity(cssColor("--text"), OPACITY);
  return LEVELS.map((level) => ({
    type: "scatter",
    mode: "lines",
    name: "density",
    showlegend: false,
    ...outlineCells(grid, most > 0 ? level * most : Infinity),
    fill: "toself",
    fillcolor,
    line: { width: 0 },
    hoverinfo: "skip",
  }));
}

/** The smoothed number of items in each cell, row by row from the lower left. */
function countCells(items) {
  const [left, right] = extent(items.map((item) => item.x));
  const [bottom, top] = extent(items.map((item) => item.y));
  const unit = Math.max(right - left, top - bottom) / (CELLS - 6) || 1;
  const origin = { x: (left + right - CELLS * unit) / 2, y: (bottom + top - CELLS * unit) / 2 };
  let counts = new Float64Array(CELLS * CELLS);
  for (const { x, y } of items) {
    const [column, row] = [Math.floor((x - origin.x) / unit), Math.floor((y - origin.y) / unit)];
    counts[row * CELLS + column] += 1;
  }
  for (const step of [1, CELLS, 1, CELLS]) counts = blur(counts, step);
  return { counts, unit, origin };
}

const extent = (numbers) => (numbers.length === 0 ? [0, 0] : [Math.min(...numbers), Math.max(...numbers)]);

/** The mean of each cell and its two neighbours at a distance; the margin of the grid is empty. */
function blur(counts, step) {
  return counts.map((count, cell) => ((counts[cell - step] ?? 0) + count + (counts[cell + step] ?? 0)) / 3);
}

/** The cells with at least so many items, as rectangles with gaps between them. */
function outlineCells({ counts, unit, origin }, least) {
  /** @type {(number | null)[]} */
  const x = [];
  /** @type {(number | null)[]} */
  const y = [];
  for (let row = 0; row < CELLS; row += 1) {
    const within = (column) => column < CELLS && counts[row * CELLS + column] >= least;
    for (let column = 0; column < CELLS; column += 1) {
      if (!within(column) || (column > 0 && within(column - 1))) continue;
      let end = column + 1;
      while (within(end)) end += 1;
      const [left, right] = [origin.x + column * unit, origin.x + end * unit];
      const [low, high] = [origin.y + row * unit, origin.y + (row + 1) * unit];
      x.push(left, right, right, left, left, null);
      y.push(low, low, high, high, low, null);
    }
  }
  return { x, y };
}
