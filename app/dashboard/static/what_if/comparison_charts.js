// @ts-check
/** The cards "Scores before and after" and "Attention weights before and after": two marks, or two bars, per row. */

import { Chart, cssColor, escapeText } from "../shell/chart.js";
import { formatDay, formatInstant, formatPercent, pluralize } from "../shell/format.js";
import { html, render } from "../shell/html.js";
import { showAsTable } from "../shell/tables.js";
import { STATUS_LABELS } from "./data.js";
import { isEdited } from "./edits.js";
import { toMilliseconds } from "./exact_instants.js";
import { formatDifference } from "./items_card.js";

/**
 * @typedef {import("./data.js").ComparedItem} ComparedItem
 * @typedef {import("./edits.js").Row} Row
 * @typedef {import("./edits.js").Side} Side
 * @typedef {Row & {name: string}} NamedRow
 */

const MOST_SCORES = 40;
const SCORE_PIXELS = 24;
const MOST_WEIGHTS = 16;
const WEIGHT_PIXELS = 30;
const AXIS_PIXELS = 66;

/** A chart with one row per item or event, as high as its rows need, and its table. */
class RowsChart {
  #plot;
  #table;
  #rowPixels;
  chart;

  /**
   * @param {HTMLElement} root holds the elements `#name` and `#name-table`
   * @param {string} name
   * @param {number} rowPixels
   */
  constructor(root, name, rowPixels) {
    this.#plot = element(root, `#${name}`);
    this.#table = element(root, `#${name}-table`);
    this.#rowPixels = rowPixels;
    this.chart = new Chart(this.#plot);
  }

  /**
   * Resolves once the chart is drawn.
   * @template Drawn
   * @param {Drawn[]} rows
   * @param {object} drawing
   * @param {import("../shell/tables.js").TableContent} drawing.content the numbers behind the chart
   * @param {(rows: Drawn[], size: {width: number}) => {traces: any[], layout: any}} drawing.build
   * @param {(row: Drawn) => any[] | null} drawing.describeRow returns the lines of the tooltip
   */
  draw(rows, { content, build, describeRow }) {
    this.#plot.style.setProperty("height", `${rows.length * this.#rowPixels + AXIS_PIXELS}px`);
    showAsTable(this.#table, content);
    return this.chart.draw(
      (/** @type {{width: number}} */ size) => build(rows, size),
      (/** @type {{pointNumber: number}} */ point) => describeRow(rows[point.pointNumber]),
    );
  }
}

export class ScoresCard {
  #root;
  #chart;
  /** @type {ComparedItem[]} the items of the chart */
  drawn = [];

  /** @param {HTMLElement} root */
  constructor(root) {
    this.#root = root;
    this.#render();
    this.#chart = new RowsChart(root, "scores", SCORE_PIXELS);
  }

  get chart() {
    return this.#chart.chart;
  }

  /**
   * Draws the scores; resolves once they are drawn.
   * @param {ComparedItem[]} items
   * @param {string} summary
   * @param {string} why why there are no scores to draw
   */
  show(items, summary, why) {
    const drawn = items.filter(({ difference }) => difference !== null).slice(0, MOST_SCORES);
    this.drawn = drawn;
    const cut = drawn.length < items.length ? ` The first ${drawn.length} of ${items.length} items.` : "";
    this.#render({ isEmpty: drawn.length === 0, why, summary, cut });
    if (drawn.length === 0) return Promise.resolve();
    const content = {
      caption: "Scores before and after",
      columns: ["Item", "Before", "After", "Change"],
      rows: drawn.map((item) => [
        nameOf(item),
        formatScore(item, "before"),
        formatScore(item, "after"),
        formatDifference(item.difference),
      ]),
    };
    return this.#chart.draw(drawn, { content, build: drawScores, describeRow: describeScore });
  }

  /** Hides the chart. */
  clear() {
    this.#render({ isEmpty: true });
  }

  #render({ isEmpty = false, why = "", summary = "", cut = "" } = {}) {
    const template = html`
      <div class="heading-row"><h2 id="scores-heading">Scores before and after</h2><div class="take-away"></div></div>
      <p class="note">The model's score of each recommended item, for both histories.</p>
      <p id="no-scores" class="note" ?hidden=${!isEmpty}>${why}</p>
      <figure id="scores-figure" ?hidden=${isEmpty}>
        <ul class="key-of-marks">
          <li><span class="mark circle" aria-hidden="true"></span>before</li>
          <li><span class="mark diamond" aria-hidden="true"></span>after</li>
        </ul>
        <div id="scores" class="plot" role="img" aria-label="Scores before and after"
             aria-describedby="scores-summary"></div>
        <figcaption>
          <strong>Scores rank the items of one response.</strong>
          <span id="scores-summary">${summary}</span><span id="scores-cut">${cut}</span>
        </figcaption>
        <details id="scores-table"></details>
      </figure>`;
    render(template, this.#root);
  }
}

/** @param {ComparedItem} item */
const nameOf = (item) => item.title || item.itemId;

/**
 * @param {ComparedItem} item
 * @param {"before" | "after"} side
 */
const formatScore = (item, side) => Number(item[side].score).toFixed(3);

/**
 * @param {ComparedItem[]} items
 * @param {{width: number}} size
 */
function drawScores(items, { width }) {
  const indices = items.map((_, index) => index);
  const marks = (/** @type {"before" | "after"} */ side, /** @type {object} */ marker) => ({
    type: "scatter",
    name: side,
    mode: "markers",
    x: items.map((item) => item[side].score),
    y: indices,
    marker,
  });
  const lines = {
    type: "scatter",
    mode: "lines",
    hoverinfo: "skip",
    x: items.flatMap((item) => [item.before.score, item.after.score, null]),
    y: indices.flatMap((index) => [index, index, null]),
    line: { color: cssColor("--faint"), width: 2 },
  };
  return {
    traces: [
      lines,
      marks("before", { symbol: "circle-open", size: 10, color: cssColor("--query-time"), line: { width: 2 } }),
      marks("after", { symbol: "diamond", size: 9, color: cssColor("--bar") }),
    ],
    layout: {
      margin: { l: 10, r: 14, t: 6, b: 42 },
      xaxis: { title: { text: "score" }, showgrid: true },
      yaxis: {
        tickvals: indices,
        ticktext: items.map((item) => escapeText(shorten(nameOf(item), width))),
        range: [items.length - 0.4, -0.6],
        ticks: "",
      },
    },
  };
}

/** @param {ComparedItem | undefined} item */
function describeScore(item) {
  if (!item) return null;
  return [
    nameOf(item),
    `before ${formatScore(item, "before")}, after ${formatScore(item, "after")}`,
    `change ${formatDifference(item.difference)}`,
  ];
}

export class WeightsCard {
  #root;
  #chart;
  /** @type {Row[]} the events that have a weight on either side */
  weighted = [];

  /** @param {HTMLElement} root */
  constructor(root) {
    this.#root = root;
    this.#render();
    this.#chart = new RowsChart(root, "weights", WEIGHT_PIXELS);
  }

  get chart() {
    return this.#chart.chart;
  }

  /**
   * Draws the largest weights and those of edited events, newest on top; resolves once they are drawn.
   * @param {Row[]} rows with weights
   * @param {Map<string, string | null>} titles
   * @param {boolean} isAttending whether the model has attention weights
   */
  show(rows, titles, isAttending) {
    const weighted = rows.filter((row) => weightOf(row.before) !== null || weightOf(row.after) !== null);
    const drawn = selectRows(weighted).map((row) => ({ ...row, name: titles.get(row.itemId) || row.itemId }));
    this.weighted = weighted;
    const isEmpty = weighted.length === 0;
    const why = isAttending
      ? "No event was read on either side, so there are no weights."
      : "This model has no attention, so there are no weights to show.";
    this.#render({ isEmpty, why, summary: isEmpty ? "" : summarizeWeights(weighted, drawn) });
    if (isEmpty) return Promise.resolve();
    const content = {
      caption: "Weights before and after",
      columns: ["Event", "When", "Before", "After"],
      rows: drawn.map((row) => [
        row.name,
        formatTime(row),
        formatWeight(row.before, "not there"),
        formatWeight(row.after, "removed"),
      ]),
    };
    return this.#chart.draw(drawn, { content, build: drawWeights, describeRow: describeWeight });
  }

  /** Hides the chart. */
  clear() {
    this.#render({ isEmpty: true });
  }

  #render({ isEmpty = false, why = "", summary = "" } = {}) {
    const template = html`
      <div class="heading-row"><h2 id="weights-heading">Attention weights before and after</h2><div class="take-away"></div></div>
      <p class="note">The attention weight of each event in both histories.</p>
      <p id="no-weights" class="note" ?hidden=${!isEmpty}>${why}</p>
      <figure id="weights-figure" ?hidden=${isEmpty}>
        <ul class="key-of-marks">
          <li><span class="mark hatched" aria-hidden="true"></span>before</li>
          <li><span class="mark filled" aria-hidden="true"></span>after</li>
        </ul>
        <div id="weights" class="plot" role="img" aria-label="Weights of events before and after"
             aria-describedby="weights-summary"></div>
        <figcaption>
          <strong>Attention weights: what the model looked at. They do not prove cause.</strong>
          <span id="weights-summary">${summary}</span>
        </figcaption>
        <details id="weights-table"></details>
      </figure>`;
    render(template, this.#root);
  }
}

/** @param {Side | null} side */
const weightOf = (side) => side?.weight ?? null;
/** @param {Row} row */
const largerWeight = (row) => Math.max(weightOf(row.before) ?? 0, weightOf(row.after) ?? 0);
/** @param {Row} row */
const instantOf = (row) => toMilliseconds(/** @type {Side} */ (row.after ?? row.before).at);
/** @param {Row} row */
const formatTime = (row) => `${formatInstant(instantOf(row))} UTC`;
/** @param {Row} row */
const changeOf = (row) => Math.abs((weightOf(row.after) ?? 0) - (weightOf(row.before) ?? 0));

/** @param {Row[]} rows */
function selectRows(rows) {
  const largest = [...rows].sort((one, other) => largerWeight(other) - largerWeight(one));
  const selected = new Set([
    ...largest.slice(0, MOST_WEIGHTS),
    ...rows.filter(isEdited).slice(0, MOST_WEIGHTS),
  ]);
  return [...selected].sort((one, other) => instantOf(other) - instantOf(one));
}

/**
 * @param {Row[]} weighted
 * @param {NamedRow[]} drawn
 */
function summarizeWeights(weighted, drawn) {
  const sum = (/** @type {Row[]} */ rows, /** @type {"before" | "after"} */ side) =>
    rows.reduce((total, row) => total + (weightOf(row[side]) ?? 0), 0);
  const rest = weighted.filter((row) => !drawn.some(({ key }) => key === row.key));
  const largest = weighted.reduce((one, other) => (changeOf(other) > changeOf(one) ? other : one));
  const name = drawn.find(({ key }) => key === largest.key)?.name ?? largest.itemId;
  const moved =
    changeOf(largest) < 0.00005
      ? "No weight changed."
      : `The weight that changed most: ${name}, ` +
        `${formatWeight(largest.before, "not there")} before, ${formatWeight(largest.after, "removed")} after.`;
  const others =
    rest.length === 0
      ? ""
      : ` ${pluralize(rest.length, "other event")} together: ${formatPercent(sum(rest, "before"))} before, ` +
        `${formatPercent(sum(rest, "after"))} after.`;
  return moved + others;
}

/**
 * @param {Side | null} side
 * @param {string} absent for an event that is not on this side
 */
const formatWeight = (side, absent) =>
  side === null
    ? absent
    : typeof side.weight === "number"
      ? formatPercent(side.weight)
      : (STATUS_LABELS[side.status ?? ""] ?? "–");

/**
 * @param {NamedRow[]} rows
 * @param {{width: number}} size
 */
function drawWeights(rows, { width }) {
  const indices = rows.map((_, index) => index);
  const bars = (/** @type {"before" | "after"} */ side, /** @type {object} */ marker) => ({
    type: "bar",
    name: side,
    orientation: "h",
    x: rows.map((row) => weightOf(row[side]) ?? 0),
    y: indices,
    marker,
  });
  const hatched = {
    color: cssColor("--card"),
    line: { color: cssColor("--query-time"), width: 1 },
    pattern: { shape: "/", size: 5, fgcolor: cssColor("--query-time"), bgcolor: cssColor("--card") },
  };
  return {
    traces: [
      bars("before", hatched),
      bars("after", { color: cssColor("--bar"), line: { color: cssColor("--bar"), width: 1 } }),
    ],
    layout: {
      barmode: "group",
      bargap: 0.3,
      margin: { l: 10, r: 14, t: 6, b: 42 },
      xaxis: { title: { text: "weight" }, tickformat: ".1~%", showgrid: true, rangemode: "tozero" },
      yaxis: {
        tickvals: indices,
        ticktext: rows.map(
          (row) => `${escapeText(shorten(row.name, width * 0.8))}<br>${formatDay(instantOf(row))}`,
        ),
        range: [rows.length - 0.5, -0.5],
        ticks: "",
      },
    },
  };
}

/** @param {NamedRow} row */
const describeWeight = (row) => [
  row.name,
  formatTime(row),
  `before ${formatWeight(row.before, "not there")}`,
  `after ${formatWeight(row.after, "removed")}`,
];

const CHARACTER_PIXELS = 6.5;
/** The share of a chart's width that labels may take. */
const LABEL_SHARE = 0.42;

/**
 * Shortens a label to its share of a width in pixels.
 * @param {string} name
 * @param {number} width
 */
function shorten(name, width) {
  const most = Math.max(8, Math.floor((width * LABEL_SHARE) / CHARACTER_PIXELS));
  const characters = [...name];
  return characters.length <= most ? name : `${characters.slice(0, most - 1).join("").trimEnd()}…`;
}

/**
 * @param {HTMLElement} root
 * @param {string} selector
 */
const element = (root, selector) => /** @type {HTMLElement} */ (root.querySelector(selector));
