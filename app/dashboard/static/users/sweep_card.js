// @ts-check
/** The card of the sweep: a heat map of every event's weight at every query time. */

import { LatestRequest } from "../shell/api.js";
import { Chart, escapeText, heatColors } from "../shell/chart.js";
import { formatInstant, formatPercent, pluralize } from "../shell/format.js";
import { byId, itemName } from "../shell/html.js";
import { showAsTable } from "../shell/tables.js";
import { queryTimeLine } from "./attention_card.js";
import { requestSweep, Sweep, sweepKey } from "./data.js";

const MOST_EVENTS = 200;
const MARGIN = { l: 56, r: 14, t: 10, b: 46 };
/** What row names need to be readable. */
const NAMED = { pixels: 14, width: 560, letters: 24, margin: 190 };
/** Weights above this quantile share the strongest colour: one outlier would fade all others. */
const STRONGEST = 0.99;
const TABLE_COLUMNS = 12;

export class SweepCard {
  #card = byId("sweep");
  #note = byId("sweep-note");
  #figure = byId("sweep-figure");
  #map;
  #onSweep;
  #items;
  /** @type {string | null} */
  #key = null;
  /** @type {Sweep | null} */
  #sweep = null;
  #at = null;
  #requests = new LatestRequest({
    send: requestSweep,
    show: (answer, { instants }) => this.#show(answer, instants),
    fail: (error) =>
      this.#explain(`The sweep failed: ${error.message}. The slider sends a request per instant.`),
    pause: 0,
  });

  /**
   * @param {object} options
   * @param {(at: number) => void} options.go called with an instant clicked in the heat map
   * @param {(sweep: Sweep) => void} options.onSweep called with every sweep before it is drawn
   * @param {import("./data.js").Items} options.items
   */
  constructor({ go, onSweep, items }) {
    this.#map = new HeatMap(go);
    this.#onSweep = onSweep;
    this.#items = items;
  }

  /** The sweep of the current history, or null until it arrives. */
  get sweep() {
    return this.#sweep;
  }

  /** Drops the sweep. */
  clear() {
    this.#requests.cancel();
    this.#key = this.#sweep = null;
    this.#setBusy(true);
  }

  /** Requests the sweep of a state by a model version, unless it is already there. */
  request(state, { instants, events }, version) {
    this.#at = state.query_time;
    const key = JSON.stringify([sweepKey(state), version]);
    if (state.query_time_withheld) {
      this.clear();
      this.#explain(
        "The query time is withheld from the model, so the weights do not depend on it and there is " +
          "nothing to sweep; clear the checkbox to see how they change. The slider sends a request " +
          "per instant.",
      );
    } else if (events.length === 0) {
      this.clear();
      this.#explain("This history has no events, so there are no weights at any instant.");
    } else if (key !== this.#key) {
      this.clear();
      this.#key = key;
      performance.mark("kairos-sweep-requested");
      this.#requests.request({ state, instants });
    }
  }

  /** Moves the line to an instant. */
  moveTo(at) {
    this.#at = at;
    if (this.#sweep !== null) this.#map.moveTo(at);
  }

  async #show(answer, instants) {
    const sweep = new Sweep(answer, instants);
    this.#sweep = sweep;
    this.#onSweep(sweep);
    if (!sweep.hasWeights) {
      this.#explain(
        answer.warnings.includes("attention_unavailable")
          ? "This model has no attention, so there are no weights to draw; the recommended items still follow the slider."
          : "The model read none of these events at any instant, so there are no weights to draw.",
      );
      return;
    }
    this.#figure.hidden = false;
    this.#note.textContent = "";
    const { left, strongest } = await this.#map.show(sweep, this.#items, this.#at);
    if (this.#sweep !== sweep) return;
    byId("heat-most").textContent = `${formatPercent(strongest)} or more`;
    byId("heat-summary").textContent = describeSweep(sweep, left);
    this.#showTable(sweep);
    performance.measure("kairos-sweep-drawn", "kairos-sweep-requested");
    this.#setBusy(false);
  }

  #explain(sentence) {
    this.#figure.hidden = true;
    this.#note.textContent = sentence;
    this.#setBusy(false);
  }

  #setBusy(isBusy) {
    this.#card.setAttribute("aria-busy", String(isBusy));
  }

  #showTable({ events, instants, matrix }) {
    const step = Math.max(1, Math.ceil(instants.length / TABLE_COLUMNS));
    const indices = instants.map((_, index) => index).filter((index) => index % step === 0);
    showAsTable(byId("heat-table"), {
      caption: "Weights of events at some of the swept instants",
      columns: ["Item", "Event (UTC)", ...indices.map((index) => formatInstant(instants[index]))],
      rows: events.map((event, row) => [
        itemName(this.#items.get(event.itemId)?.title, event.itemId),
        formatInstant(event.at),
        ...indices.map((index) => formatWeight(matrix[row][index])),
      ]),
    });
  }
}

const formatWeight = (weight) => (weight === null ? "–" : weight === 0 ? "0 %" : formatPercent(weight));

function describeSweep({ events, instants }, left) {
  const [first, last] = [instants[0], instants.at(-1)].map(formatInstant);
  const older = left > 0 ? ` The ${pluralize(left, "oldest event")} of the sweep are not drawn.` : "";
  return (
    `Weights, averaged over heads, of ${pluralize(events.length - left, "event")} (upwards, oldest to ` +
    `newest) at ${pluralize(instants.length, "instant")} from ${first} to ${last} UTC. Grey: the event ` +
    `had not happened yet.${older} ` +
    "A click moves the query time; so does the slider."
  );
}

/**
 * The heat map: a pixel per weight on a canvas that is stretched over the plot area. plotly.js, which
 * takes ten times as long for a cell, draws the axes and the line.
 */
class HeatMap {
  #container = byId("heat-map");
  #canvas = byId("heat-cells");
  #chart = new Chart(this.#container);
  #at = null;
  /** @type {any} the events that are drawn, their weights, the instants and the items */
  #shown = null;

  /** @param {(at: number) => void} go called with the instant that is clicked */
  constructor(go) {
    const at = (event) => (this.#shown === null ? null : this.#cellAt(event));
    this.#container.addEventListener("click", (event) => {
      const cell = at(event);
      if (cell !== null) go(this.#shown.instants[cell.column]);
    });
    this.#container.addEventListener("pointermove", (event) => {
      const cell = at(event);
      this.#chart.showTip(cell && this.#describe(cell), event);
    });
    this.#container.addEventListener("pointerleave", () => this.#chart.showTip(null));
  }

  /**
   * Draws the weights of a sweep.
   *
   * @returns {Promise<{left: number, strongest: number}>} how many of the oldest events were left
   *   out, and the weight of the strongest colour
   */
  async show({ events, matrix, instants }, items, at) {
    const left = Math.max(0, events.length - MOST_EVENTS);
    this.#at = at;
    this.#shown = { events: events.slice(left), matrix: matrix.slice(left), instants, items };
    const strongest = strongestWeight(this.#shown.matrix);
    await this.#chart.draw((size) => {
      this.#paint(strongest);
      return this.#build(size);
    });
    return { left, strongest };
  }

  moveTo(at) {
    if (at === this.#at || this.#shown === null) return;
    this.#at = at;
    this.#chart.relayout({ "shapes[0].x0": at, "shapes[0].x1": at });
  }

  /** Paints a pixel per weight, the newest event on top; events that had not happened stay clear. */
  #paint(strongest) {
    const { matrix, instants } = this.#shown;
    const [rows, columns] = [matrix.length, instants.length];
    Object.assign(this.#canvas, { width: columns, height: rows });
    const context = this.#canvas.getContext("2d");
    const image = context.createImageData(columns, rows);
    const pixels = new Uint32Array(image.data.buffer);
    const colors = heatColors();
    const scale = (colors.length - 1) / strongest;
    matrix.forEach((weights, row) => {
      const start = (rows - 1 - row) * columns;
      weights.forEach((weight, column) => {
        if (weight === null) return;
        pixels[start + column] = colors[Math.min(colors.length - 1, Math.round(weight * scale))];
      });
    });
    context.putImageData(image, 0, 0);
  }

  #build({ width, height }) {
    const { events, instants, items } = this.#shown;
    const isNamed = height / events.length >= NAMED.pixels && width >= NAMED.width;
    const names = isNamed ? rowNames(events, items) : { showticklabels: false, ticks: "" };
    const margin = isNamed ? { ...MARGIN, l: NAMED.margin } : MARGIN;
    this.#place(margin);
    return {
      traces: [],
      layout: {
        margin,
        shapes: queryTimeLine(this.#at),
        xaxis: {
          type: "date",
          title: { text: "query time (UTC)" },
          range: outerEdges(instants),
          nticks: Math.max(3, Math.round(width / 110)),
          automargin: false,
        },
        yaxis: {
          title: isNamed ? undefined : { text: "events, newest on top" },
          range: [-0.5, events.length - 0.5],
          showgrid: false,
          automargin: false,
          ...names,
        },
      },
    };
  }

  /** Puts the canvas behind the plot area. */
  #place({ l, r, t, b }) {
    const { offsetLeft, offsetTop, clientWidth, clientHeight } = this.#container;
    const box = { left: offsetLeft + l, top: offsetTop + t, width: clientWidth - l - r, height: clientHeight - t - b };
    for (const [side, pixels] of Object.entries(box)) this.#canvas.style[side] = `${pixels}px`;
  }

  /** The cell under the pointer, or null. */
  #cellAt({ clientX, clientY }) {
    const { left, bottom, width, height } = this.#canvas.getBoundingClientRect();
    const { events, instants } = this.#shown;
    const column = Math.floor(((clientX - left) / width) * instants.length);
    const row = Math.floor(((bottom - clientY) / height) * events.length);
    return events[row] && instants[column] ? { row, column } : null;
  }

  #describe({ row, column }) {
    const { events, matrix, instants, items } = this.#shown;
    const { itemId, action, at } = events[row];
    const weight = matrix[row][column];
    const happened = `${action ?? "event"} of ${formatInstant(at)} UTC`;
    const seen = weight === null ? "had not happened yet" : weight === 0 ? "not read" : formatPercent(weight);
    const when = `at ${formatInstant(instants[column])} UTC: ${seen}`;
    return [itemName(items.get(itemId)?.title, itemId), happened, when];
  }
}

/** The weight of the strongest colour. */
function strongestWeight(matrix) {
  // Typed arrays sort numbers without calling a function for each pair.
  const weights = Float64Array.from(matrix.flat().filter((weight) => weight > 0)).sort();
  return weights[Math.floor((weights.length - 1) * STRONGEST)] ?? 1;
}

function rowNames(events, items) {
  return {
    tickvals: events.map((_, row) => row),
    ticktext: events.map(({ itemId }) => escapeText(shorten(items.get(itemId)?.title ?? itemId))),
  };
}

function shorten(text) {
  const letters = [...text];
  return letters.length <= NAMED.letters ? text : `${letters.slice(0, NAMED.letters - 1).join("")}…`;
}

/** Half a column beyond the first and the last instant. */
function outerEdges(instants) {
  const half = (instants.at(-1) - instants[0]) / (instants.length - 1) / 2;
  return [instants[0] - half, instants.at(-1) + half];
}
