// @ts-check
/** One panel: the newest value, a chart of the last 15 minutes, and the value of every line. */

import { Chart, cssColor } from "../shell/chart.js";
import { formatInstant, MINUTE } from "../shell/format.js";
import { html, nothing, render } from "../shell/html.js";
import { showAsTable } from "../shell/tables.js";
import { TakeAway, toFileName } from "../widgets/take_away.js";
import { HISTORY_LENGTH } from "./metrics.js";
import { computeStatus, worstStatus } from "./panels.js";

/**
 * @typedef {import("./panels.js").PanelSpec} PanelSpec
 * @typedef {import("./panels.js").Status} Status
 * @typedef {{at: number, values: (number | null)[]}} Point
 */

export class Panel {
  /** @type {PanelSpec} */
  #spec;
  #plot = document.createElement("div");
  #table = document.createElement("details");
  #chart;
  /** @type {Point[]} */
  #points = [];
  #isVisible = false;
  #isDue = false;

  /** The element of the panel, to be placed on the page. */
  node = document.createElement("section");

  /** @param {PanelSpec} spec */
  constructor(spec) {
    this.#spec = spec;
    this.node.id = `card-${spec.id}`;
    this.node.className = "card panel";
    this.node.tabIndex = -1;
    this.node.setAttribute("aria-labelledby", `heading-${spec.id}`);
    this.#plot.id = `chart-${spec.id}`;
    this.#plot.className = "plot";
    this.#plot.role = "img";
    this.#plot.hidden = true;
    this.#render({ values: spec.lines.map(() => null), span: "", status: null });
    this.#showTable();
    this.#chart = new Chart(this.#plot);
    new TakeAway(this.node, () => this.#take());
    // A chart that is scrolled out of view is drawn when it comes back.
    new IntersectionObserver(([entry]) => {
      this.#isVisible = entry.isIntersecting;
      this.#drawIfVisible();
    }).observe(this.#plot);
  }

  get id() {
    return this.#spec.id;
  }

  get heading() {
    return this.#spec.heading;
  }

  /**
   * Shows the newest values.
   *
   * @param {object} measured
   * @param {(number | null)[]} measured.values one per line
   * @param {string} measured.span the period they are of, in words
   * @param {boolean} measured.isSinceStart whether that is all time since the start of the service
   * @param {import("./metrics.js").HistoryPoint[]} measured.points the earlier values of all panels
   * @returns {Status | null} null for values since the start: limits hold for the last minute
   */
  show({ values, span, isSinceStart, points }) {
    const { id, heading, lines } = this.#spec;
    const statuses = lines.map(({ limit }, line) =>
      limit === undefined ? null : computeStatus(values[line], limit),
    );
    const status = isSinceStart ? null : worstStatus(statuses);
    this.#points = points.map(({ at, values: all }) => ({ at, values: all[id] }));
    const isEmpty = this.#points.every((point) => point.values.every((value) => value === null));
    this.#plot.hidden = isEmpty;
    const names = lines.map(({ name }) => name).join(", ");
    this.#plot.setAttribute("aria-label", `${heading} in the last 15 minutes: ${names}`);
    this.#render({ values, span, status });
    this.#isDue = !isEmpty;
    this.#drawIfVisible();
    // A table that is being read keeps its rows.
    if (!this.#table.querySelector(":hover, .scroller:focus")) this.#showTable();
    return status;
  }

  /** The lines of the chart, in the units of its axis. */
  #take() {
    const { id, heading, lines, axis = "s", scale = 1, note } = this.#spec;
    if (this.#plot.hidden) return { why: "Nothing was measured yet: the chart follows after some polls." };
    return {
      title: heading,
      caption: `${note} Computed by the page from ${this.#points.length} polls of the metrics; times are UTC.`,
      name: toFileName("operations", id),
      chart: this.#chart,
      rows: this.#points.map(({ at, values }) => ({
        time: new Date(at).toISOString(),
        ...Object.fromEntries(
          lines.map(({ name }, line) => [`${name}, ${axis}`, values[line] === null ? null : values[line] * scale]),
        ),
      })),
      requests: [{ path: "v1/metrics" }],
    };
  }

  /** @param {{values: (number | null)[], span: string, status: Status | null}} shown */
  #render({ values, span, status }) {
    const { id, heading, lines, format, note } = this.#spec;
    const headline = headlineIndex(this.#spec.headline, values);
    const isEmpty = values.every((value) => value === null);
    render(
      html`<div class="heading-row">
          <h2 id="heading-${id}">${heading}</h2>
          <span id="state-${id}" class="state ${status ?? "none"}">${status ?? ""}</span>
          <div class="take-away"></div>
        </div>
        <div class="beside">
          <div>
            <p><strong id="newest-${id}">${format(values[headline])}</strong><span class="which"
              >${lines.length > 1 ? lines[headline].name : ""}</span></p>
            <p class="note">${isEmpty && span ? `none ${span}` : span}</p>
          </div>
          <figure>${this.#plot}<p class="note" ?hidden=${!this.#plot.hidden}>${
              this.#points.length === 0 ? "The chart follows after some polls." : "Nothing to draw yet."
            }</p></figure>
        </div>
        ${lines.length > 1 ? this.#legend(values) : nothing}
        <p class="note">${note}</p>
        ${this.#table}`,
      this.node,
    );
  }

  /** @param {(number | null)[]} values */
  #legend(values) {
    const { lines, format } = this.#spec;
    return html`<ul class="legend">${lines.map(
      ({ name }, line) => html`<li
        ><span class="swatch line-${line + 1}"></span> ${name} <b>${format(values[line])}</b></li>`,
    )}</ul>`;
  }

  #drawIfVisible() {
    if (!this.#isVisible || !this.#isDue) return;
    this.#isDue = false;
    const points = this.#points;
    const { lines, format, scale = 1 } = this.#spec;
    this.#chart.draw(
      () => drawLines(this.#spec, points),
      ({ x, curveNumber, y }) => [
        `${String(x).slice(11, 19)} UTC`,
        `${lines[curveNumber].name} ${format(y / scale)}`,
      ],
    );
  }

  #showTable() {
    const { heading, lines, format } = this.#spec;
    showAsTable(this.#table, {
      caption: `${heading}, newest first`,
      columns: ["Time (UTC)", ...lines.map(({ name }) => name)],
      rows: this.#points.toReversed().map(({ at, values }) => [formatInstant(at), ...values.map(format)]),
    });
  }
}

/** The index of the line that is shown large. */
function headlineIndex(headline, values) {
  return headline === "longest" ? Math.max(0, values.indexOf(Math.max(...values))) : 0;
}

// Lines differ by colour and by dash, as in the legend.
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
const MARGIN = { l: 46, r: 8, t: 8, b: 24 };
/** Longer than any two polls lie apart: the page was hidden or paused. */
const GAP = 2 * MINUTE;
const SHORTEST_SPAN = MINUTE;

/** Ticks of the logarithmic axis: seconds and labels. */
const TICKS = { tickvals: [1, 60, 3600, 86400], ticktext: ["1 s", "1 min", "1 h", "1 d"] };

/**
 * The lines of a panel for plotly.js.
 *
 * @param {PanelSpec} spec
 * @param {Point[]} points at least one, oldest first
 */
function drawLines({ lines, axis, scale = 1, isLogarithmic = false }, points) {
  const drawn = insertGaps(points);
  const x = drawn.map(({ at }) => toPlotlyDate(at));
  const traces = lines.map(({ name }, line) => ({
    type: "scatter",
    mode: points.length < 3 ? "lines+markers" : "lines",
    name,
    x,
    y: drawn.map(({ values }) => (values[line] === null ? null : values[line] * scale)),
    line: {
      color: cssColor(`--series-${line + 1}`),
      width: line === 0 ? 2 : 1.5,
      dash: DASHES[line],
    },
    marker: { size: 4 },
  }));
  const last = points[points.length - 1].at;
  const first = Math.min(Math.max(points[0].at, last - HISTORY_LENGTH), last - SHORTEST_SPAN);
  return {
    traces,
    layout: {
      margin: MARGIN,
      xaxis: {
        type: "date",
        range: [first, last].map(toPlotlyDate),
        nticks: 4,
        tickformat: last - first < 5 * MINUTE ? "%H:%M:%S" : "%H:%M",
      },
      yaxis: isLogarithmic
        ? { type: "log", ...TICKS, range: [-1, Math.log10(4e6)] }
        : linearAxis(axis, traces),
    },
  };
}

const toPlotlyDate = (at) => new Date(at).toISOString().slice(0, 23);

/** A linear axis that begins at zero; 0 to 1 where all values are zero. */
function linearAxis(title, traces) {
  const highest = Math.max(0, ...traces.flatMap(({ y }) => y));
  return {
    title: { text: title, font: { size: 11 }, standoff: 4 },
    nticks: 4,
    range: [0, highest === 0 ? 1 : highest * 1.1],
  };
}

/**
 * Inserts a point of nulls wherever the page did not poll for a while, so that the line breaks.
 *
 * @param {Point[]} points
 * @returns {any[]}
 */
function insertGaps(points) {
  return points.flatMap((point, index) => {
    const before = points[index - 1];
    if (before === undefined || point.at - before.at <= GAP) return [point];
    return [{ at: before.at + 1, values: point.values.map(() => null) }, point];
  });
}
