// @ts-check
/** The card "Version details": test metrics, training, data windows and facts of one version. */

import { Chart, cssColor, escapeText } from "../shell/chart.js";
import {
  DAY,
  formatCount,
  formatDay,
  formatInstant,
  formatMetric,
  formatPercent,
  pluralize,
} from "../shell/format.js";
import { html, live, nothing, render } from "../shell/html.js";
import { showAsTable, table } from "../shell/tables.js";
import { findTrainingRun, groupTestMetrics, referenceName } from "./data.js";
import { rolesOf, shortName } from "./versions_card.js";

/**
 * @typedef {import("./data.js").Description} Description
 * @typedef {import("./data.js").Model} Model
 * @typedef {import("./data.js").Run} Run
 * @typedef {import("./data.js").ModelsState} ModelsState
 * @typedef {import("./data.js").TestMetric} TestMetric
 * @typedef {import("../shell/tables.js").TableContent} TableContent
 *
 * @typedef {object} Drawing what a `ChartFigure` shows
 * @property {string} [why] why there is no chart; shown in place of it
 * @property {any} [summary]
 * @property {TableContent | null} [content] the numbers behind the chart; null for no table
 * @property {number} [rows] rows of a chart that has one row per name
 * @property {(size: {width: number, height: number}) => {traces: any[], layout: any}} [build]
 * @property {(point: any) => any[] | null} [describePoint] returns the lines of the tooltip
 */

const ROW_PIXELS = 30;
const AXIS_PIXELS = 62;

/** A chart with its summary and its table, or the reason why there is none. */
export class ChartFigure {
  #root;
  #name;
  #heading;
  #container;
  #chart;

  /**
   * @param {HTMLElement} root a figure
   * @param {string} name prefix of the ids of the chart, its summary and its table
   * @param {string | null} heading
   */
  constructor(root, name, heading = null) {
    this.#root = root;
    this.#name = name;
    this.#heading = heading;
    this.#render({ content: null });
    this.#container = this.#find("chart");
    this.#chart = new Chart(this.#container);
  }

  /**
   * Resolves once the chart is drawn.
   *
   * @param {Drawing} drawing
   */
  async show(drawing) {
    this.#render(drawing);
    if (drawing.content) showAsTable(this.#find("table"), drawing.content);
    if (drawing.why !== undefined || drawing.build === undefined) return;
    if (drawing.rows !== undefined) {
      const height = Math.max(drawing.rows, 2) * ROW_PIXELS + AXIS_PIXELS;
      this.#container.style.setProperty("height", `${height}px`);
    }
    await this.#chart.draw(drawing.build, drawing.describePoint);
  }

  /** @returns {any} */
  #find(/** @type {string} */ part) {
    return this.#root.querySelector(`#${this.#name}-${part}`);
  }

  #render(/** @type {Drawing} */ { why, summary, content }) {
    const name = this.#name;
    render(
      html`${this.#heading === null ? nothing : html`<h3>${this.#heading}</h3>`}
        <div id=${`${name}-chart`} class="plot" role="img" aria-labelledby=${`${name}-summary`}
             ?hidden=${why !== undefined}></div>
        <figcaption id=${`${name}-summary`}>
          ${why === undefined ? summary : html`<span class="empty">${why}</span>`}
        </figcaption>
        <details id=${`${name}-table`} ?hidden=${!content}></details>`,
      this.#root,
    );
  }
}

/**
 * The y axis of a chart with one row per name, from the top.
 *
 * @param {string[]} names
 */
export const rowAxis = (names) => ({
  tickvals: names.map((_, row) => row),
  ticktext: names.map(escapeText),
  range: [names.length - 0.4, -0.6],
  showgrid: false,
  ticks: "outside",
  ticklen: 6,
  tickcolor: "rgba(0,0,0,0)",
});

export class DetailCard {
  #root;
  #handlers;
  #figures;

  /**
   * @param {HTMLElement} root
   * @param {{chooseVersion: (version: string) => void, chooseMetric: (metric: string) => void}} handlers
   */
  constructor(root, handlers) {
    this.#root = root;
    this.#handlers = handlers;
    this.#render(null);
    const figure = (/** @type {string} */ name, /** @type {string} */ heading) =>
      new ChartFigure(/** @type {any} */ (root.querySelector(`#${name}-figure`)), name, heading);
    this.#figures = {
      metrics: figure("metrics", "Test metrics"),
      training: figure("training", "Training curves"),
      windows: figure("windows", "Data windows"),
    };
  }

  /**
   * Resolves once the charts are drawn.
   *
   * @param {Description} description
   * @param {ModelsState} serving
   * @param {string} metric
   * @param {string[]} metrics those to choose from
   */
  async show(description, serving, metric, metrics) {
    this.#render({ description, serving, metric, metrics });
    await Promise.all([
      this.#figures.metrics.show(drawMetrics(description, metric)),
      this.#figures.training.show(drawTraining(description)),
      this.#figures.windows.show(drawWindows(serving.models, description.version)),
    ]);
  }

  #render(shown) {
    const { chooseVersion, chooseMetric } = this.#handlers;
    const option = (name) =>
      html`<option value=${name} .selected=${live(name === shown.metric)}>${name}</option>`;
    render(
      html`
        <div class="heading-row">
          <h2 id="detail-heading">Version details: <span id="detail-name" class="id">${
            shown?.description.version ?? "…"
          }</span></h2>
          <div class="controls">
            <label>Version
              <select id="version" @change=${({ target }) => chooseVersion(target.value)}></select></label>
            <label>Metric <select id="metric" @change=${({ target }) => chooseMetric(target.value)}>
              ${shown?.metrics.map(option)}
            </select></label>
          </div>
        </div>
        <p class="note">How the version was trained and measured, from its manifest.</p>
        <div class="halves">
          <figure id="metrics-figure"></figure>
          <figure id="training-figure"></figure>
          <figure id="windows-figure"></figure>
          <div>
            <h3>Facts</h3>
            <dl id="facts" class="pairs facts">${shown && facts(shown.description, shown.serving)}</dl>
            <details class="as-table"><summary>Recipe</summary>
              <pre id="recipe" tabindex="0">${shown && recipe(shown.description)}</pre></details>
            <details class="as-table"><summary>Files and their checksums</summary>
              <div id="files">${shown && filesTable(shown.description)}</div></details>
          </div>
        </div>`,
      this.#root,
    );
  }
}

const GIVEN = "Given the query time";
const WITHHELD = "Withheld";

/**
 * One metric, with the query time given and withheld, beside other rankings.
 *
 * @param {Description} description
 * @param {string} metric
 * @returns {Drawing}
 */
function drawMetrics({ manifest }, metric) {
  const { questions, metrics } = groupTestMetrics(manifest.metrics);
  if (metrics.size === 0) {
    return { why: "Its manifest holds no test metrics; kairos train measures a model before it is published." };
  }
  const content = metricsTable(metrics);
  const values = metrics.get(metric);
  if (values === undefined) return { why: `Its manifest does not hold ${metric}.`, content };
  const rows = metricRows(values);
  const on = questions === null ? "its test questions" : pluralize(questions, "test question");
  const list = rows.map((row) => `${row.name.toLowerCase()} ${formatMetric(row.value)}`).join(", ");
  return {
    summary: `${metric} on ${on}, the same for every row: ${list}.`,
    content,
    rows: rows.length,
    build: () => ({
      traces: [
        {
          type: "bar",
          orientation: "h",
          x: rows.map((row) => row.value),
          y: rows.map((_, row) => row),
          text: rows.map((row) => formatMetric(row.value)),
          textposition: "outside",
          cliponaxis: false,
          width: 0.62,
          marker: { color: rows.map((row) => cssColor(row.color)) },
        },
      ],
      layout: {
        margin: { l: 20, r: 20, t: 8, b: 46 },
        xaxis: {
          title: { text: escapeText(metric) },
          range: [0, Math.max(...rows.map((row) => row.value), 1e-9) * 1.2],
          nticks: 5,
        },
        yaxis: rowAxis(rows.map((row) => row.name)),
      },
    }),
    describePoint: ({ pointNumber }) => [
      rows[pointNumber].name,
      `${metric} ${formatMetric(rows[pointNumber].value)}`,
    ],
  };
}

/** @param {TestMetric} values */
function metricRows({ given, withheld, references }) {
  const others = references.map(([name, value]) => ({ name: referenceName(name), value, color: "--faint" }));
  others.sort((one, other) => other.value - one.value);
  const own = [{ name: GIVEN, value: given, color: "--series-1" }];
  if (withheld !== null) own.push({ name: WITHHELD, value: withheld, color: "--series-2" });
  return [...own, ...others];
}

/**
 * @param {Map<string, TestMetric>} metrics
 * @returns {TableContent}
 */
function metricsTable(metrics) {
  const named = [...metrics.values()].flatMap(({ references }) => references.map(([name]) => name));
  const references = [...new Set(named)];
  return {
    caption: "Test metrics",
    columns: ["Metric", "Given", "Withheld", ...references.map(referenceName)],
    rows: [...metrics].map(([name, one]) => [
      name,
      formatMetric(one.given),
      formatMetric(one.withheld),
      ...references.map((reference) => formatMetric(new Map(one.references).get(reference))),
    ]),
  };
}

/**
 * Loss and validation metric by epoch.
 *
 * @param {Description} description
 * @returns {Drawing}
 */
function drawTraining({ epochs, missing, manifest: { provenance } }) {
  if (!epochs?.length) {
    const why = missing.find((one) => one.part === "epochs")?.why;
    return { why: `No training curves: ${why ?? "the service returns no epochs of it"}.` };
  }
  const measured = [...new Set(epochs.flatMap((epoch) => Object.keys(epoch.validation)))];
  const monitor = provenance.recipe?.fit?.monitor;
  const metric = measured.includes(monitor) ? monitor : (measured[0] ?? null);
  const isKnown = epochs.some((epoch) => epoch.epoch === provenance.best_epoch);
  const best = isKnown ? provenance.best_epoch : null;
  return {
    summary: summarizeTraining(epochs, metric, best),
    content: {
      caption: "Epochs of training",
      columns: ["Epoch", "Loss", ...measured.map((name) => `Validation ${name}`), "Seconds"],
      rows: epochs.map(({ epoch, loss, validation, seconds }) => [
        epoch,
        formatMetric(loss),
        ...measured.map((name) => formatMetric(validation[name])),
        seconds.toFixed(1),
      ]),
    },
    build: () => drawEpochs(epochs, metric, best),
    describePoint: ({ pointNumber }) => {
      const { epoch, loss, validation, seconds } = epochs[pointNumber];
      const metrics = Object.entries(validation).map(([name, value]) => `${name} ${formatMetric(value)}`);
      return [`epoch ${epoch}`, `loss ${formatMetric(loss)}`, ...metrics, `${seconds.toFixed(1)} s`];
    },
  };
}

function summarizeTraining(epochs, metric, best) {
  const [first, last] = [epochs[0], epochs.at(-1)];
  const parts = [
    `${pluralize(epochs.length, "epoch")}: loss from ${formatMetric(first.loss)} to ${formatMetric(last.loss)}`,
  ];
  const validated = epochs.filter((epoch) => metric !== null && metric in epoch.validation);
  if (validated.length > 0) {
    const ends = [validated[0], validated.at(-1)].map((epoch) => formatMetric(epoch.validation[metric]));
    parts.push(`validation ${metric} from ${ends[0]} to ${ends[1]}`);
  }
  const kept = best === null ? "" : ` The weights of epoch ${best}, the best by validation, were kept.`;
  return `${parts.join(", ")}.${kept}`;
}

function drawEpochs(epochs, metric, best) {
  const x = epochs.map((epoch) => epoch.epoch);
  const line = (y, name) => ({
    type: "scatter",
    mode: "lines+markers",
    x,
    y,
    line: { color: cssColor(name), width: 2 },
    marker: { color: cssColor(name), size: 6 },
  });
  /** @type {any[]} */
  const traces = [line(epochs.map((epoch) => epoch.loss), "--series-1")];
  if (metric !== null) {
    const values = epochs.map((epoch) => epoch.validation[metric] ?? null);
    traces.push({ ...line(values, "--series-2"), yaxis: "y2", connectgaps: true });
  }
  const isAlone = metric === null;
  const title = { text: escapeText(metric), standoff: 10 };
  return {
    traces,
    layout: {
      margin: { l: 20, r: 14, t: 22, b: 46 },
      xaxis: {
        title: { text: "epoch" },
        range: [x[0] - 0.5, x.at(-1) + 0.5],
        // Only integers.
        ...(x.length < 12 ? { tickvals: x } : { nticks: 8 }),
        anchor: isAlone ? "y" : "y2",
      },
      yaxis: { title: { text: "loss", standoff: 10 }, domain: isAlone ? [0, 1] : [0.56, 1] },
      ...(isAlone ? {} : { yaxis2: { title, domain: [0, 0.44] } }),
      ...(best === null ? {} : markBestEpoch(best, best > (x[0] + x.at(-1)) / 2)),
    },
  };
}

function markBestEpoch(best, isLate) {
  const line = { color: cssColor("--query-time"), width: 1.5, dash: "dot" };
  return {
    shapes: [{ type: "line", layer: "below", x0: best, x1: best, yref: "paper", y0: 0, y1: 1, line }],
    annotations: [
      {
        x: best,
        yref: "paper",
        y: 1,
        yanchor: "bottom",
        xanchor: isLate ? "right" : "left",
        text: `best epoch, ${best}`,
        showarrow: false,
        font: { color: cssColor("--query-time") },
      },
    ],
  };
}

const MOST_WINDOWS = 12;
const PIXELS_PER_DATE = 100;

/**
 * The data windows of the newest versions, and of the chosen one, on one time axis.
 *
 * @param {Model[]} models
 * @param {string} chosen
 * @returns {Drawing}
 */
function drawWindows(models, chosen) {
  const rows = models
    .flatMap(({ version, data_window: window }) => (window === null ? [] : [{ version, window }]))
    .filter(({ version }, place) => place < MOST_WINDOWS || version === chosen)
    .map(({ version, window }) => ({
      version,
      isChosen: version === chosen,
      first: Date.parse(window.first_at),
      last: Date.parse(window.last_at),
    }));
  const own = rows.find((row) => row.isChosen);
  if (own === undefined) return { why: "Its manifest holds no data window." };
  const days = ({ first, last }) => formatCount((last - first) / DAY);
  return {
    summary:
      `From ${formatInstant(own.first)} to ${formatInstant(own.last)} UTC, ${days(own)} days; ` +
      "the stronger bar is this version's, the others are those of the newest versions.",
    content: {
      caption: "Data windows of versions",
      columns: ["Version", "First event (UTC)", "Last event (UTC)", "Days"],
      rows: rows.map((row) => [row.version, formatInstant(row.first), formatInstant(row.last), days(row)]),
    },
    rows: rows.length,
    build: ({ width }) => ({
      traces: [
        {
          type: "bar",
          orientation: "h",
          base: rows.map((row) => row.first),
          x: rows.map((row) => row.last - row.first),
          y: rows.map((_, row) => row),
          width: 0.5,
          marker: { color: rows.map((row) => cssColor(row.isChosen ? "--bar" : "--faint")) },
        },
      ],
      layout: {
        margin: { l: 20, r: 20, t: 8, b: 46 },
        xaxis: {
          type: "date",
          title: { text: "when (UTC)" },
          nticks: Math.max(3, Math.round(width / PIXELS_PER_DATE)),
        },
        yaxis: rowAxis(rows.map((row) => `${row.isChosen ? "▸ " : ""}${shortName(row.version)}`)),
      },
    }),
    describePoint: ({ pointNumber }) => {
      const row = rows[pointNumber];
      return [row.version, `${formatDay(row.first)} to ${formatDay(row.last)}`, `${days(row)} days`];
    },
  };
}

/**
 * @param {Description} description
 * @param {ModelsState} serving
 */
function facts(description, { models, traffic, runs }) {
  const { manifest, version } = description;
  const model = models.find((one) => one.version === version);
  const { encoder } = manifest.recommender;
  const { counts } = manifest;
  const data =
    `${pluralize(counts.events, "event")} of ${pluralize(counts.users, "user")}, ` +
    pluralize(counts.items, "item");
  const rows = [
    ["Role", rolesOf(model, traffic).join(", ") || "none"],
    ["Trained", `${formatInstant(Date.parse(manifest.created_at))} UTC`],
    ["Training data", data],
    ["Encoder", encoder.time_encoding ? `${encoder.kind}, ${encoder.time_encoding.kind} time` : encoder.kind],
    ["History length", `at most ${pluralize(manifest.max_history, "event")}`],
    ["Training", describeTraining(manifest.provenance)],
    ["Index recall", describeRecall(description, runs)],
    ["Latency", describeLatency(description, runs)],
    ["Clicks", describeClicks(description)],
  ];
  return rows.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`);
}

function describeTraining({ best_epoch: best, seconds, refitted_after_measuring: isRefitted }) {
  const parts = [];
  if (seconds !== undefined) parts.push(`${seconds} s`);
  if (best !== undefined && best !== null) parts.push(`best epoch ${best}`);
  if (isRefitted === true) parts.push("refitted on all events after the evaluation");
  return parts.join(", ") || "not recorded";
}

function describeRecall(description, runs) {
  const format = (share, where) => `${formatPercent(share)} of the exact ten best items found, ${where}`;
  return describeMeasurement(description, runs, { part: "index_recall", check: "index_recall", format });
}

function describeLatency(description, runs) {
  const format = (seconds, where) => `95 of 100 recommendations within ${(seconds * 1000).toFixed(1)} ms, ${where}`;
  return describeMeasurement(description, runs, { part: "p95_seconds", check: "latency", format });
}

/** A value of the bundle, or of the gate of the run that trained it, or the reason why there is none. */
function describeMeasurement({ version, missing, ...description }, runs, { part, check, format }) {
  if (description[part] !== null) return format(description[part], "measured where it was trained");
  const checks = findTrainingRun(runs, version)?.decision?.checks ?? [];
  const value = checks.find((one) => one.name === check)?.value ?? null;
  if (value !== null) return format(value, "measured by the gate of its retraining run");
  return `unknown: ${missing.find((one) => one.part === part)?.why ?? "the service gives no reason"}`;
}

/** @param {Description} description */
function describeClicks({ clicks, missing }) {
  if (clicks === null) return missing.find((one) => one.part === "clicks")?.why ?? "unknown";
  const { shown, clicked, rate } = clicks;
  if (rate === null) return "no recommendations recorded";
  return `${formatCount(clicked)} of ${pluralize(shown, "recommendation")} clicked, ${formatPercent(rate)}`;
}

/** @param {Description} description */
const recipe = ({ manifest }) => JSON.stringify(manifest.provenance.recipe ?? manifest.recommender, null, 2);

/** @param {Description} description */
const filesTable = ({ manifest }) =>
  table({
    caption: "Files of the bundle",
    columns: ["File", "SHA-256"],
    rows: Object.entries(manifest.files).map(([file, sum]) => [file, html`<code>${sum}</code>`]),
  });
