// @ts-check
/** The card of ranks: how the recommended items rise and fall over time. */

import { CanvasChart } from "../shell/canvas_chart.js";
import { formatInstant } from "../shell/format.js";
import { byId } from "../shell/html.js";
import { showAsTable } from "../shell/tables.js";
import { dragAcross } from "./baskets_card.js";
import { paintCurrent, paintRanks, rankY } from "./rank_chart.js";
import { formatLongDay } from "./time_scale.js";

/** @typedef {import("./view.js").View} View */

const REACH = 14;

export class RanksCard {
  #container = byId("rank-lines");
  #chart;
  #linked;
  #actions;
  /** @type {View | null} */
  #view = null;

  /**
   * @param {object} options
   * @param {import("./linked.js").Linked} options.linked
   * @param {(at: number) => void} options.goTo
   * @param {(from: number, until: number) => void} options.selectSpan
   * @param {() => boolean} options.isSelecting
   */
  constructor({ linked, ...actions }) {
    this.#linked = linked;
    this.#actions = actions;
    this.#chart = new CanvasChart(this.#container, {
      paintBase: (context, size) => this.#view?.sweep && paintRanks(context, size, this.#shown(size)),
      paintOver: (context, size) => this.#view?.sweep && paintCurrent(context, size, this.#shown(size)),
    });
    this.#container.addEventListener("pointermove", (event) => this.#move(event));
    this.#container.addEventListener("pointerleave", () => this.#leave());
    this.#container.addEventListener("pointerdown", (event) => this.#press(event));
  }

  get chart() {
    return this.#chart;
  }

  show(view) {
    this.#view = view;
    this.#chart.draw();
    this.#showTable();
  }

  step(view) {
    this.#view = view;
    this.#chart.drawOver();
  }

  /** Every item's ranks: a row per item and swept instant. */
  table() {
    const { sweep, nameOf } = /** @type {any} */ (this.#view);
    return [...sweep.ranks].flatMap(([itemId, ranks]) =>
      ranks.flatMap((rank, index) =>
        rank === null ? [] : [{ itemId, name: nameOf(itemId), at: sweep.instants[index], rank }],
      ),
    );
  }

  #shown(size) {
    const view = /** @type {any} */ (this.#view);
    return {
      ...view,
      scale: view.scaleFor(size.width),
      isLinked: (itemId) => this.#linked.hasItem(itemId, view.sweep),
    };
  }

  /** The item whose line is at a point, or null. */
  #itemAt({ x, y }) {
    const { sweep, n, scaleFor } = /** @type {any} */ (this.#view);
    const { width, height } = this.#chart.size;
    const scale = scaleFor(width);
    const isLabel = x < scale.left;
    const index = isLabel ? this.#view?.index : sweep.nearest(scale.at(x));
    for (const { item_id: itemId, rank } of sweep.at(index).items) {
      if (Math.abs(rankY(rank, n, height) - y) < Math.min(REACH, height / n / 2)) return itemId;
    }
    return null;
  }

  #move(event) {
    if (!this.#view?.sweep) return;
    const point = this.#chart.pointOf(event);
    const itemId = this.#itemAt(point);
    if (itemId === null) {
      this.#leave();
      return;
    }
    const { sweep, nameOf, scaleFor, swaps } = this.#view;
    const at = sweep.instants[sweep.nearest(scaleFor(this.#chart.size.width).at(point.x))];
    const swap = swaps.find((one) => Math.abs(one.at - at) <= sweep.instants[1] - sweep.instants[0]);
    this.#linked.hover({ kind: "item", itemId });
    this.#chart.showTip(
      [
        nameOf(itemId),
        `rank ${sweep.ranks.get(itemId)?.[sweep.nearest(at)] ?? "–"} on ${formatLongDay(at)}`,
        ...(swap === undefined ? [] : [`model ${swap.version} began to serve`]),
      ],
      point,
    );
  }

  #leave() {
    this.#linked.hover(null);
    this.#chart.hideTip();
  }

  #press(event) {
    const view = this.#view;
    if (event.button !== 0 || !view?.sweep) return;
    const point = this.#chart.pointOf(event);
    const scale = view.scaleFor(this.#chart.size.width);
    const itemId = this.#itemAt(point);
    if (itemId !== null && !this.#actions.isSelecting()) {
      this.#linked.toggle({ kind: "item", itemId });
      return;
    }
    if (point.x < scale.left) return;
    dragAcross(this.#container, event, {
      at: (moved) => scale.at(this.#chart.pointOf(moved).x),
      isSelecting: this.#actions.isSelecting(),
      goTo: this.#actions.goTo,
      selectSpan: this.#actions.selectSpan,
    });
  }

  #showTable() {
    const { sweep, nameOf } = /** @type {any} */ (this.#view);
    byId("ranks-table").hidden = sweep === null;
    byId("ranks-summary").textContent =
      sweep === null ? "" : `The ranks of ${sweep.ranks.size} items that were recommended at any time.`;
    if (sweep === null) return;
    const sampled = sample(sweep.instants.length);
    showAsTable(byId("ranks-table"), {
      caption: "Ranks of items at some of the instants",
      columns: ["Item", ...sampled.map((index) => formatInstant(sweep.instants[index]).slice(0, 10))],
      rows: [...sweep.ranks].map(([itemId, ranks]) => [
        nameOf(itemId),
        ...sampled.map((index) => ranks[index] ?? "–"),
      ]),
    });
  }
}

/** At most ten indices over a range, with the first and the last one. */
function sample(length) {
  const count = Math.min(10, length);
  return Array.from({ length: count }, (_, index) =>
    Math.round((index * (length - 1)) / Math.max(1, count - 1)),
  );
}
