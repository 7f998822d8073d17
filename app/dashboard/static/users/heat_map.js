/** Every event at every swept instant: how its weight comes and goes while the clock runs. */

import { Chart, cssColor, escapeText, heatScale } from "../shell/chart.js";
import { formatInstant, formatPercent } from "../shell/format.js";
import { byId, itemName } from "../shell/html.js";
import { queryTimeLine } from "./time_axis.js";

const MOST_EVENTS = 200;
const MARGIN = { l: 56, r: 14, t: 10, b: 46 };
/** What a row and its name need to be read. */
const NAMED = { pixels: 14, width: 560, letters: 24, margin: 190 };
/** The heaviest of a hundred cells share the strongest colour: else one would leave the rest pale. */
const STRONGEST = 0.99;

export class HeatMap {
  #chart = new Chart(byId("heat-map"));
  #at = null;
  #sweep = null;

  /** `go(at)` is called with the instant that is clicked. */
  constructor(go) {
    this.#chart.on("plotly_click", ({ points: [point] }) => {
      const { place } = this.#cell(point);
      go(this.#sweep.instants[place]);
    });
  }

  /** Draw the weights of a sweep; `items` knows titles by id. */
  show(sweep, items, at) {
    const first = Math.max(0, sweep.events.length - MOST_EVENTS);
    this.#at = at;
    this.#sweep = sweep;
    const shown = { events: sweep.events.slice(first), matrix: sweep.matrix.slice(first), items };
    const strongest = strongestOf(shown.matrix);
    return this.#chart
      .draw(
        (size) => this.#picture(shown, strongest, size),
        (point) => this.#tip(shown, point),
      )
      .then(() => ({ left: first, strongest }));
  }

  /** Move the line to another instant. */
  moveTo(at) {
    if (at === this.#at || this.#sweep === null) return;
    this.#at = at;
    this.#chart.relayout({ "shapes[0].x0": at, "shapes[0].x1": at });
  }

  #picture({ events, matrix, items }, strongest, { width, height }) {
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
          // Cells that touch exactly make plotly.js try a style attribute, which the page forbids.
          xgap: 0.001,
          zmin: 0,
          zmax: strongest,
          colorscale: heatScale(),
          // The page has a scale of its own: that of plotly.js has style attributes, too.
          showscale: false,
        },
      ],
      layout: {
        margin: isNamed ? { ...MARGIN, l: NAMED.margin } : MARGIN,
        // What had not happened yet has no colour of the scale.
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

  #tip({ events, matrix, items }, point) {
    const { row, place } = this.#cell(point);
    const { itemId, action, at } = events[row];
    const weight = matrix[row][place];
    const happened = `${action ?? "event"} of ${formatInstant(at)} UTC`;
    const seen = weight === null ? "had not happened yet" : weight === 0 ? "not read" : formatPercent(weight);
    const when = `at ${formatInstant(this.#sweep.instants[place])} UTC: ${seen}`;
    return [itemName(items.get(itemId)?.title, itemId), happened, when];
  }

  /** Row and column of a point; plotly.js tells the pair as [row, column]. */
  #cell({ pointNumber: [row, place] }) {
    return { row, place };
  }
}

/** The weight that gets the strongest colour. */
function strongestOf(matrix) {
  const weights = matrix.flat().filter((weight) => weight > 0);
  weights.sort((one, other) => one - other);
  return weights[Math.floor((weights.length - 1) * STRONGEST)] ?? 1;
}

function rowNames(events, items) {
  return {
    tickvals: events.map((_, row) => row),
    ticktext: events.map(({ itemId }) => escapeText(shortened(items.get(itemId)?.title ?? itemId))),
  };
}

function shortened(text) {
  const letters = [...text];
  return letters.length <= NAMED.letters ? text : `${letters.slice(0, NAMED.letters - 1).join("")}…`;
}

/** Half a column beyond the first and the last instant. */
function outerEdges(instants) {
  const half = (instants.at(-1) - instants[0]) / (instants.length - 1) / 2;
  return [instants[0] - half, instants.at(-1) + half];
}
