// @ts-check
/** Paints the ranks of items over time: a line per item, on the axis of the basket rows. */

import { shorten } from "../shell/canvas_chart.js";
import { cssColor } from "../shell/colors.js";
import { paintTicks, paintTimes } from "./basket_rows.js";

const FONT = "12px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif";
const PAD = 8;

/**
 * @typedef {object} Ranked what is painted
 * @property {import("./sweep.js").Sweep} sweep
 * @property {import("./time_scale.js").TimeScale} scale
 * @property {number} n the number of ranks
 * @property {number} index of the swept instant
 * @property {number} queryTime
 * @property {number | null} compareTime
 * @property {{from: number, until: number} | null} span
 * @property {{at: number}[]} swaps when another version began to serve
 * @property {(itemId: string) => boolean} isLinked
 * @property {(itemId: string) => string} nameOf
 */

/** The pixel of a rank. */
export const rankY = (rank, n, height) => PAD + ((rank - 0.5) / n) * (height - 2 * PAD);

/** Paints what stays: every item's line, faint, and the swaps of models. */
export function paintRanks(context, size, shown) {
  paintTicks(context, shown.scale, size.height, { isLabelled: false });
  context.strokeStyle = cssColor("--rank-line");
  context.lineWidth = 1.5;
  for (const ranks of shown.sweep.ranks.values()) strokeRanks(context, size, shown, ranks);
  for (const { at } of shown.swaps) {
    if (shown.scale.has(at)) paintSwap(context, size, shown.scale.x(at));
  }
}

/** Paints what moves: the current items' lines and names, and the highlighted ones. */
export function paintCurrent(context, size, shown) {
  const { sweep, index, scale, n } = shown;
  paintTimes(context, size, shown);
  const { items } = sweep.at(index);
  context.lineWidth = 1.5;
  context.strokeStyle = cssColor("--bar");
  context.globalAlpha = 0.6;
  for (const { item_id: itemId } of items) {
    if (!shown.isLinked(itemId)) strokeRanks(context, size, shown, sweep.ranks.get(itemId) ?? []);
  }
  context.globalAlpha = 1;
  context.lineWidth = 3.5;
  context.strokeStyle = cssColor("--linked");
  for (const [itemId, ranks] of sweep.ranks) {
    if (shown.isLinked(itemId)) strokeRanks(context, size, shown, ranks);
  }
  context.textBaseline = "middle";
  for (const { item_id: itemId, rank } of items) {
    const y = rankY(rank, n, size.height);
    const isLinked = shown.isLinked(itemId);
    context.font = isLinked ? `600 ${FONT}` : FONT;
    context.fillStyle = cssColor(isLinked ? "--linked" : "--text");
    context.textAlign = "left";
    const name = `${rank}  ${shown.nameOf(itemId)}`;
    context.fillText(shorten(context, name, scale.left - 10), 0, y);
    context.beginPath();
    context.arc(scale.x(shown.queryTime), y, isLinked ? 5 : 3.5, 0, 2 * Math.PI);
    context.fill();
  }
}

/** The line of one item, broken where it has no rank. */
function strokeRanks(context, { height }, { sweep, scale, n }, ranks) {
  context.beginPath();
  let isDrawing = false;
  ranks.forEach((rank, index) => {
    const isShown = rank !== null && scale.has(sweep.instants[index]);
    if (isShown) {
      const [x, y] = [scale.x(sweep.instants[index]), rankY(rank, n, height)];
      if (isDrawing) context.lineTo(x, y);
      else {
        context.moveTo(x, y);
        // One instant alone is a dot.
        context.lineTo(x + 0.1, y);
      }
    }
    isDrawing = isShown;
  });
  context.stroke();
}

function paintSwap(context, { height }, x) {
  context.fillStyle = cssColor("--caution");
  for (let y = 0; y < height; y += 8) context.fillRect(x - 0.75, y, 1.5, 4);
  context.beginPath();
  context.moveTo(x - 5, 0);
  context.lineTo(x + 5, 0);
  context.lineTo(x, 8);
  context.fill();
}
