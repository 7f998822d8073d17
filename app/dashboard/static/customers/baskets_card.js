// @ts-check
/** The card of baskets: what the model looks at, at the point in time or over a span. */

import { CanvasChart } from "../shell/canvas_chart.js";
import { liftColor } from "../shell/colors.js";
import { formatCount, formatInstant, formatPercent, pluralize } from "../shell/format.js";
import { byId, html, render } from "../shell/html.js";
import { MOST_ROWS, showAsTable } from "../shell/tables.js";
import { AXIS_PIXELS, buildRows, fitRows, formatLift, paintMoving, paintRows } from "./basket_rows.js";
import { formatLongDay } from "./time_scale.js";

/** @typedef {import("./view.js").View} View */

const SAMPLES = [0.25, 0.5, 1, 2, 4];
const NAMED = 4;

export class BasketsCard {
  #container = byId("basket-rows");
  #chart;
  #linked;
  #actions;
  /** @type {View | null} */
  #view = null;
  /** @type {import("./basket_rows.js").Row[]} */
  #rows = [];
  #firstRow = 0;
  /** The row that the arrow keys are at; -1 for none. */
  #cursor = -1;

  /**
   * @param {object} options
   * @param {import("./linked.js").Linked} options.linked
   * @param {(at: number) => void} options.goTo
   * @param {(at: number) => void} options.toggleOpen opens or closes the basket of an instant
   * @param {(from: number, until: number) => void} options.selectSpan
   * @param {() => boolean} options.isSelecting whether dragging selects a span
   */
  constructor({ linked, ...actions }) {
    this.#linked = linked;
    this.#actions = actions;
    this.#chart = new CanvasChart(this.#container, {
      paintBase: (context, size) => this.#view?.sweep && paintRows(context, size, this.#shown(size)),
      paintOver: (context, size) => this.#view?.sweep && paintMoving(context, size, this.#shown(size)),
    });
    render(
      html`less ${SAMPLES.map(
        (lift) => html`<canvas width="18" height="12" data-lift=${lift} aria-hidden="true"></canvas>`,
      )} more than its even share <span class="visually-hidden">on a fixed scale, from a quarter to four times</span>`,
      byId("lift-scale"),
    );
    this.#paintSamples();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#paintSamples());
    this.#listen();
  }

  get chart() {
    return this.#chart;
  }

  /** Draws another sweep, or other open baskets. */
  show(view) {
    this.#view = view;
    this.#rows = view.sweep === null ? [] : buildRows(view.sweep, view.open, view.nameOf);
    this.#cursor = Math.min(this.#cursor, this.#rows.length - 1);
    this.#follow();
    this.#chart.draw();
    this.#describe();
    this.#showTable();
  }

  /** Draws another point in time, span or highlight. */
  step(view) {
    this.#view = view;
    if (this.#follow()) this.#chart.draw();
    else this.#chart.drawOver();
    this.#describe();
  }

  /** The rows as a table: one line per basket and event. */
  table() {
    const { sweep, index, nameOf } = /** @type {any} */ (this.#view);
    const [from, until] = this.#averaged();
    const rows = sweep.baskets.flatMap((basket) =>
      Array.from({ length: basket.end - basket.first }, (_, offset) => {
        const number = basket.first + offset;
        const { itemId, action, at } = sweep.events[number];
        const { weight, lift } = sweep.meanOver(from, until, { first: number, end: number + 1 });
        return { at, itemId, name: nameOf(itemId), action, weight: lift > 0 ? weight : null, lift };
      }),
    );
    return { index, rows };
  }

  #averaged() {
    const { index, span } = /** @type {any} */ (this.#view);
    return span === null ? [index, index] : [span.from, span.until];
  }

  #shown(size) {
    const view = /** @type {any} */ (this.#view);
    const { pixels } = fitRows(this.#rows.length, size.height);
    return {
      ...view,
      scale: view.scaleFor(size.width),
      rows: this.#rows,
      firstRow: this.#firstRow,
      rowPixels: pixels,
      isLinked: (row) => this.#linked.hasEvents(row, view.sweep),
    };
  }

  /** Scrolls the newest basket of the point in time into view; returns whether that moved the rows. */
  #follow() {
    const { sweep, queryTime } = /** @type {any} */ (this.#view);
    const { visible } = fitRows(this.#rows.length, this.#chart.size.height);
    const most = Math.max(0, this.#rows.length - visible);
    let target = this.#firstRow;
    const pinned = this.#linked.pinned;
    const anchor =
      pinned !== null && pinned.kind !== "item"
        ? this.#rows.findIndex((row) => row.at === pinned.at)
        : -1;
    if (sweep === null || most === 0) target = 0;
    else if (anchor >= 0) {
      if (anchor < target || anchor >= target + visible) target = anchor - Math.floor(visible / 2);
    } else {
      const after = this.#rows.findIndex((row) => row.at > queryTime);
      const newest = (after < 0 ? this.#rows.length : after) - 1;
      target = newest - visible + 2;
    }
    target = Math.min(most, Math.max(0, target));
    const hasMoved = target !== this.#firstRow;
    this.#firstRow = target;
    return hasMoved;
  }

  #scroll(by) {
    const { visible } = fitRows(this.#rows.length, this.#chart.size.height);
    const most = Math.max(0, this.#rows.length - visible);
    const next = Math.min(most, Math.max(0, this.#firstRow + by));
    if (next === this.#firstRow) return false;
    this.#firstRow = next;
    this.#chart.draw();
    this.#showPosition();
    return true;
  }

  #paintSamples() {
    for (const canvas of byId("lift-scale").querySelectorAll("canvas")) {
      const context = canvas.getContext("2d");
      context.fillStyle = liftColor(Number(canvas.dataset.lift));
      context.fillRect(0, 0, 18, 12);
    }
  }

  /** Which rows are in view, where there are others. */
  #showPosition() {
    const { visible } = fitRows(this.#rows.length, this.#chart.size.height);
    const [first, last] = [this.#firstRow + 1, this.#firstRow + visible];
    byId("rows-in-view").textContent =
      visible < this.#rows.length ? `rows ${first} to ${last} of ${this.#rows.length}; scroll for the others` : "";
  }

  #describe() {
    this.#showPosition();
    const { sweep, index, span, nameOf, queryTime, storedEvents } = /** @type {any} */ (this.#view);
    const summary = byId("baskets-summary");
    if (sweep === null) {
      summary.textContent = "";
      return;
    }
    const { history_used: used, warnings } = sweep.at(index);
    const [from, until] = this.#averaged();
    if (!sweep.hasWeights) {
      summary.textContent =
        sweep.events.length === 0
          ? "The model reads no event before this point in time, so there is nothing to look at."
          : "This model has no attention: there are no weights to show.";
      return;
    }
    const ranked = sweep.rankBaskets(from, until);
    const [most] = ranked;
    const limit = warnings.includes("history_truncated") ? describeLimit(sweep.events.length, storedEvents) : "";
    const reading =
      span === null
        ? `On ${formatLongDay(queryTime)} the model reads ${pluralize(used, "event")}${limit}.`
        : `Averaged from ${formatLongDay(sweep.instants[from])} to ${formatLongDay(sweep.instants[until])}.`;
    if (most === undefined) {
      summary.textContent = reading;
      return;
    }
    const { basket, weight, lift } = most;
    const size = basket.end - basket.first;
    const what =
      size === 1 ? nameOf(sweep.events[basket.first].itemId) : pluralize(size, "item");
    if (ranked.length === 1) {
      summary.textContent = `${reading} All of its attention is on ${formatLongDay(basket.at)} (${what}).`;
      return;
    }
    summary.textContent =
      `${reading} ${formatLongDay(basket.at)} (${what}) stands out most: ` +
      `${formatPercent(weight)} of its attention, where an even share is ${formatPercent(weight / lift)}.`;
  }

  #showTable() {
    const view = this.#view;
    if (view === null || view.sweep === null) {
      byId("baskets-table").hidden = true;
      return;
    }
    byId("baskets-table").hidden = false;
    const { rows } = this.table();
    // What is read comes first where not every row is shown.
    if (rows.length > MOST_ROWS) rows.sort((one, other) => Number(one.weight === null) - Number(other.weight === null));
    showAsTable(byId("baskets-table"), {
      caption: "Events with their share of the attention",
      columns: ["Event (UTC)", "Item", "Action", "Share of the attention", "Times its even share"],
      rows: rows.map(({ at, name, action, weight, lift }) => [
        formatInstant(at),
        name,
        action ?? "–",
        weight === null ? "–" : formatPercent(weight),
        weight === null ? "–" : formatLift(lift),
      ]),
    });
  }

  #listen() {
    const container = this.#container;
    container.addEventListener("pointermove", (event) => this.#move(event));
    container.addEventListener("pointerleave", () => this.#leave());
    container.addEventListener("pointerdown", (event) => this.#press(event));
    container.addEventListener("keydown", (event) => this.#key(event));
    container.addEventListener(
      "wheel",
      (event) => {
        if (this.#scroll(Math.sign(event.deltaY) * 2)) event.preventDefault();
      },
      { passive: false },
    );
  }

  #rowAt({ y }) {
    const { pixels } = fitRows(this.#rows.length, this.#chart.size.height);
    const position = Math.floor((y - AXIS_PIXELS) / pixels);
    return position < 0 ? undefined : this.#rows[this.#firstRow + position];
  }

  #move(event) {
    if (!this.#view?.sweep) return;
    const point = this.#chart.pointOf(event);
    const row = this.#rowAt(point);
    if (row === undefined) {
      this.#leave();
      return;
    }
    this.#linked.hover(this.#targetOf(row));
    this.#chart.showTip(this.#tip(row, point), point);
  }

  #leave() {
    this.#linked.hover(null);
    this.#chart.hideTip();
  }

  #targetOf({ at, first, isEvent }) {
    if (!isEvent) return { kind: "basket", at };
    return { kind: "event", at, itemId: this.#view?.sweep?.events[first].itemId };
  }

  #tip(row, { x }) {
    const { sweep, nameOf, scaleFor } = /** @type {any} */ (this.#view);
    const scale = scaleFor(this.#chart.size.width);
    const { events } = sweep;
    const indices = Array.from({ length: row.end - row.first }, (_, offset) => row.first + offset);
    const named = indices.slice(0, NAMED).map((number) => nameOf(events[number].itemId));
    const actions = [...new Set(indices.map((number) => events[number].action).filter(Boolean))];
    const lines = [
      `${formatInstant(row.at)} UTC${actions.length ? `, ${actions.join(", ")}` : ""}`,
      ...named.map((name) => html`<span class="title">${name}</span>`),
    ];
    if (indices.length > NAMED) lines.push(`and ${indices.length - NAMED} more`);
    const isOnAxis = x >= scale.left && x <= scale.right;
    const [from, until] = isOnAxis
      ? [sweep.nearest(scale.at(x)), sweep.nearest(scale.at(x))]
      : this.#averaged();
    const at = sweep.instants[until];
    const { weight, lift } = sweep.meanOver(from, until, row);
    if (at < row.at) lines.push(`not yet chosen on ${formatLongDay(at)}`);
    else if (lift === 0) lines.push(`not read on ${formatLongDay(at)}`);
    else {
      lines.push(
        `${formatLongDay(at)}: ${formatPercent(weight)} of the attention, ${formatLift(lift)} times its even share`,
      );
    }
    return lines;
  }

  #press(event) {
    const view = this.#view;
    if (event.button !== 0 || !view?.sweep) return;
    const point = this.#chart.pointOf(event);
    const scale = view.scaleFor(this.#chart.size.width);
    const row = this.#rowAt(point);
    if (point.x < scale.left - 4) {
      if (row !== undefined) this.#choose(row, point);
      return;
    }
    dragAcross(this.#container, event, {
      at: (moved) => scale.at(this.#chart.pointOf(moved).x),
      isSelecting: this.#actions.isSelecting(),
      goTo: this.#actions.goTo,
      selectSpan: this.#actions.selectSpan,
    });
  }

  #choose(row, { x }) {
    this.#cursor = this.#rows.indexOf(row);
    if (x < 16 && !row.isEvent && row.end - row.first > 1) this.#actions.toggleOpen(row.at);
    else this.#linked.toggle(this.#targetOf(row));
  }

  #key(event) {
    const { key } = event;
    if (key === "ArrowDown" || key === "ArrowUp") {
      event.preventDefault();
      const start = this.#cursor < 0 ? this.#firstRow - (key === "ArrowDown" ? 1 : -1) : this.#cursor;
      this.#cursor = Math.min(this.#rows.length - 1, Math.max(0, start + (key === "ArrowDown" ? 1 : -1)));
      const row = this.#rows[this.#cursor];
      if (row !== undefined) this.#linked.pin(this.#targetOf(row));
    } else if (key === "Enter") {
      const row = this.#rows[this.#cursor];
      if (row !== undefined && !row.isEvent) this.#actions.toggleOpen(row.at);
    } else if (key === "Escape") {
      this.#cursor = -1;
      this.#linked.pin(null);
    }
  }
}

/**
 * That the model does not read the whole history.
 *
 * @param {number} rows the events read at any of the instants, which the rows show
 * @param {number | null} stored null where it is not known
 */
function describeLimit(rows, stored) {
  if (stored === null) return ", the latest it can read";
  const all = rows < stored ? `, and ${formatCount(rows)} at any point of this axis, which the rows show` : "";
  return `, the latest it can read, of ${formatCount(stored)} stored${all}`;
}

/**
 * Follows a pointer that is pressed on the time axis: moves the point in time, or selects a span.
 *
 * @param {HTMLElement} container
 * @param {PointerEvent} pressed
 * @param {object} options
 * @param {(event: PointerEvent) => number} options.at the instant under the pointer
 * @param {boolean} options.isSelecting
 * @param {(at: number) => void} options.goTo
 * @param {(from: number, until: number) => void} options.selectSpan
 */
export function dragAcross(container, pressed, { at, isSelecting, goTo, selectSpan }) {
  const start = at(pressed);
  container.setPointerCapture(pressed.pointerId);
  const follow = (event) => {
    if (!isSelecting) goTo(at(event));
    else selectSpan(Math.min(start, at(event)), Math.max(start, at(event)));
  };
  if (!isSelecting) goTo(start);
  const end = () => container.removeEventListener("pointermove", follow);
  container.addEventListener("pointermove", follow);
  container.addEventListener("pointerup", end, { once: true });
  container.addEventListener("pointercancel", end, { once: true });
}
