// @ts-check
/** The card of the sweep: a heat map of every event's weight at every query time. */

import { LatestRequest } from "../shell/api.js";
import { Chart, cssColor, escapeText, heatScale } from "../shell/chart.js";
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

class HeatMap {
  #chart = new Chart(byId("heat-map"));
  #at = null;
  /** @type {any} */
  #sweep = null;

  /** @param {(at: number) => void} go called with the instant that is clicked */
  constructor(go) {
    this.#chart.on("plotly_click", ({ points: [point] }) => go(this.#sweep.instants[cellOf(point).index]));
  }

  /**
   * Draws the weights of a sweep.
   *
   * @returns {Promise<{left: number, strongest: number}>} how many of the oldest events were left
   *   out, and the weight of the strongest colour
   */
  async show(sweep, items, at) {
    const first = Math.max(0, sweep.events.length - MOST_EVENTS);
    this.#at = at;
    this.#sweep = sweep;
    const shown = { events: sweep.events.slice(first), matrix: sweep.matrix.slice(first), items };
    const strongest = strongestWeight(shown.matrix);
    await this.#chart.draw(
      (size) => this.#build(shown, strongest, size),
      (point) => this.#describe(shown, point),
    );
    return { left: first, strongest };
  }

  moveTo(at) {
    if (at === this.#at || this.#sweep === null) return;
    this.#at = at;
    this.#chart.relayout({ "shapes[0].x0": at, "shapes[0].x1": at });
  }

  #build({ events, matrix, items }, strongest, { width, height }) {
    const isNamed = height / events.length >= NAMED.pixels && width >= NAMED.width;
    const names = isNamed ? rowNames(events, items) : { showticklabels: false, ticks: "" };
    const { instants } = this.#sweep;
    return {
      traces: [
        {
          type: "heatmap",
          x: instants,
          y: events.map((_, row) => row),
          z: matrix,
          // For cells without a gap plotly.js uses a style attribute, which the page forbids.
          xgap: 0.001,
          zmin: 0,
          zmax: strongest,
          colorscale: heatScale(),
          // The page has its own scale: that of plotly.js uses style attributes, too.
          showscale: false,
        },
      ],
      layout: {
        margin: isNamed ? { ...MARGIN, l: NAMED.margin } : MARGIN,
        // Cells before the event have no colour of the scale.
        plot_bgcolor: cssColor("--page"),
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

  #describe({ events, matrix, items }, point) {
    const { row, index } = cellOf(point);
    const { itemId, action, at } = events[row];
    const weight = matrix[row][index];
    const happened = `${action ?? "event"} of ${formatInstant(at)} UTC`;
    const seen = weight === null ? "had not happened yet" : weight === 0 ? "not read" : formatPercent(weight);
    const when = `at ${formatInstant(this.#sweep.instants[index])} UTC: ${seen}`;
    return [itemName(items.get(itemId)?.title, itemId), happened, when];
  }
}

/** Row and column of a point, which plotly.js gives as [row, column]. */
const cellOf = ({ pointNumber: [row, index] }) => ({ row, index });

/** The weight of the strongest colour. */
function strongestWeight(matrix) {
  const weights = matrix.flat().filter((weight) => weight > 0);
  weights.sort((one, other) => one - other);
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
