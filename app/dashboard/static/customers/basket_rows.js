// @ts-check
/** Paints the rows of baskets against time: the colour is the lift of each at each query time. */

import { shorten } from "../shell/canvas_chart.js";
import { cssColor, liftColor } from "../shell/colors.js";
import { formatPercent, pluralize } from "../shell/format.js";
import { formatLongDay } from "./time_scale.js";

export const AXIS_PIXELS = 22;
const ROW = { least: 16, most: 26 };
const GAP = 2;
const FONT = "12px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif";
const BOLD = `600 ${FONT}`;
const INDENT = 14;

/**
 * @typedef {object} Row
 * @property {number} at
 * @property {number} first the index of its first event
 * @property {number} end
 * @property {boolean} isEvent one event of a basket that is open
 * @property {boolean} isOpen
 * @property {string} label
 *
 * @typedef {object} Shown what is painted
 * @property {import("./sweep.js").Sweep} sweep
 * @property {import("./time_scale.js").TimeScale} scale
 * @property {Row[]} rows
 * @property {number} firstRow the first one in view
 * @property {number} rowPixels
 * @property {number} index of the swept instant
 * @property {number} queryTime
 * @property {number | null} compareTime
 * @property {{from: number, until: number} | null} span of instants that are averaged
 * @property {(row: Row) => boolean} isLinked
 */

/**
 * The rows of a sweep: a basket each, and the events of those that are open.
 *
 * @param {import("./sweep.js").Sweep} sweep
 * @param {Set<number>} open the instants of open baskets
 * @param {(itemId: string) => string} nameOf
 * @returns {Row[]}
 */
export function buildRows(sweep, open, nameOf) {
  return sweep.baskets.flatMap((basket) => {
    const { at, first, end } = basket;
    const size = end - first;
    const isOpen = size > 1 && open.has(at);
    const what = size === 1 ? nameOf(sweep.events[first].itemId) : pluralize(size, "item");
    const row = { ...basket, isEvent: false, isOpen, label: `${formatLongDay(at)} · ${what}` };
    if (!isOpen) return [row];
    const events = Array.from({ length: size }, (_, index) => ({
      at,
      first: first + index,
      end: first + index + 1,
      isEvent: true,
      isOpen: false,
      label: nameOf(sweep.events[first + index].itemId),
    }));
    return [row, ...events];
  });
}

/** The height of a row, and how many have room. */
export function fitRows(count, height) {
  const room = height - AXIS_PIXELS;
  const pixels = Math.min(ROW.most, Math.max(ROW.least, Math.floor(room / Math.max(1, count))));
  return { pixels, visible: Math.max(1, Math.floor(room / pixels)) };
}

/** The rows in view. */
const inView = ({ rows, firstRow, rowPixels }, height) =>
  rows.slice(firstRow, firstRow + Math.floor((height - AXIS_PIXELS) / rowPixels));

/** Paints what stays while the query time moves: axis, labels, cells. */
export function paintRows(context, { height }, shown) {
  const { scale, sweep, rowPixels } = shown;
  paintTicks(context, scale, height, { isLabelled: true });
  const edges = findEdges(sweep.instants, scale);
  inView(shown, height).forEach((row, position) => {
    const top = AXIS_PIXELS + position * rowPixels;
    paintLabel(context, row, top, shown);
    context.fillStyle = cssColor("--line");
    const start = scale.clampedX(row.at);
    context.fillRect(start, top + rowPixels / 2 - 0.5, scale.right - start, 1);
    paintCells(context, sweep.lifts(row), edges, top, rowPixels, start);
    if (scale.has(row.at)) paintMark(context, row, scale, top + rowPixels / 2);
  });
}

function paintLabel(context, row, top, { scale, rowPixels }) {
  const indent = row.isEvent ? 2 * INDENT : INDENT;
  context.font = FONT;
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.fillStyle = cssColor(row.isEvent ? "--quiet" : "--text");
  const middle = top + rowPixels / 2;
  if (!row.isEvent && row.end - row.first > 1) context.fillText(row.isOpen ? "▾" : "▸", 0, middle);
  context.fillText(shorten(context, row.label, scale.left - indent - 8), indent, middle);
}

/** Neighbouring cells of one colour are one rectangle. */
function paintCells(context, lifts, edges, top, rowPixels, start) {
  let [color, from] = [/** @type {string | null} */ (null), 0];
  for (let index = 0; index <= lifts.length; index += 1) {
    const lift = lifts[index] ?? null;
    const next = index === lifts.length || lift === null ? null : liftColor(lift);
    if (next === color) continue;
    if (color !== null) {
      const left = Math.max(from, start);
      context.fillStyle = color;
      context.fillRect(left, top + GAP / 2, Math.max(0, edges[index] - left), rowPixels - GAP);
    }
    [color, from] = [next, edges[index]];
  }
}

/** The instant of the basket itself. */
function paintMark(context, row, scale, middle) {
  const size = row.end - row.first;
  context.beginPath();
  context.arc(scale.x(row.at), middle, Math.min(6, 2.5 + 0.6 * Math.sqrt(size)), 0, 2 * Math.PI);
  context.fillStyle = cssColor("--text");
  context.fill();
}

/** Where the cell of each instant begins, and where the last one ends. */
function findEdges(instants, scale) {
  const edges = instants.map((at, index) =>
    scale.clampedX(index === 0 ? at : (instants[index - 1] + at) / 2),
  );
  return [...edges, scale.clampedX(instants[instants.length - 1])];
}

/** Light lines at the ticks of a scale, with labels at the top. */
export function paintTicks(context, scale, height, { isLabelled }) {
  context.font = FONT;
  context.textBaseline = "middle";
  context.textAlign = "center";
  for (const { at, label } of scale.ticks) {
    const x = Math.round(scale.x(at)) + 0.5;
    context.fillStyle = cssColor("--line");
    context.fillRect(x, isLabelled ? AXIS_PIXELS - 4 : 0, 1, height);
    context.fillStyle = cssColor("--quiet");
    if (isLabelled) context.fillText(label, x, 9);
  }
}

/** Paints what moves: the span, the lines of the query times, the numbers, the highlighted rows. */
export function paintMoving(context, size, shown) {
  const { rowPixels, sweep, index, span } = shown;
  paintTimes(context, size, shown);
  inView(shown, size.height).forEach((row, position) => {
    const top = AXIS_PIXELS + position * rowPixels;
    const isLinked = shown.isLinked(row);
    if (isLinked) {
      context.strokeStyle = cssColor("--accent");
      context.lineWidth = 2;
      context.strokeRect(1, top, size.width - 2, rowPixels);
    }
    const [from, until] = span === null ? [index, index] : [span.from, span.until];
    const { weight, lift } = sweep.meanOver(from, until, row);
    paintNumbers(context, size, { weight, lift, isLinked, middle: top + rowPixels / 2 });
  });
}

/** The lines of the query time and of the time it is compared with, and the span. */
export function paintTimes(context, { height }, { scale, queryTime, compareTime, span, sweep }) {
  if (span !== null) {
    const [left, right] = [span.from, span.until].map((index) =>
      scale.clampedX(sweep.instants[index]),
    );
    context.globalAlpha = 0.22;
    context.fillStyle = cssColor("--faint");
    context.fillRect(left, 0, Math.max(1, right - left), height);
    context.globalAlpha = 1;
  }
  const line = (at, color) => {
    if (!scale.has(at)) return;
    context.fillStyle = cssColor(color);
    context.fillRect(scale.x(at) - 1, 0, 2, height);
  };
  if (compareTime !== null) line(compareTime, "--compare");
  line(queryTime, "--query-time");
}

function paintNumbers(context, { width }, { weight, lift, isLinked, middle }) {
  context.font = isLinked ? BOLD : FONT;
  context.textBaseline = "middle";
  context.textAlign = "right";
  context.fillStyle = cssColor(lift > 0 ? "--text" : "--faint");
  const isNarrow = width < 600;
  context.fillText(lift > 0 ? formatPercent(weight) : "–", width - (isNarrow ? 4 : 46), middle);
  if (!isNarrow && lift > 0) context.fillText(`×${formatLift(lift)}`, width - 4, middle);
}

/** A lift with two leading digits: "1.9", "0.34", "12". */
export const formatLift = (lift) =>
  lift >= 9.95 ? String(Math.round(lift)) : lift.toFixed(lift < 0.995 ? 2 : 1);
