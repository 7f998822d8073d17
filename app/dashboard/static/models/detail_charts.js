// @ts-check
/** The charts of one version: test metrics, training curves and data windows. */

import { cssColor, escapeText } from "../shell/chart.js";
import { DAY, formatCount, formatDay, formatInstant, formatMetric, pluralize } from "../shell/format.js";
import { rowAxis } from "./chart_figure.js";
import { groupTestMetrics, referenceName, TIME_IGNORED, TIME_READ } from "./data.js";
import { shortName } from "./versions_card.js";

/**
 * @typedef {import("./chart_figure.js").Drawing} Drawing
 * @typedef {import("./data.js").Description} Description
 * @typedef {import("./data.js").Model} Model
 * @typedef {import("./data.js").TestMetric} TestMetric
 * @typedef {import("../shell/tables.js").TableContent} TableContent
 */

const LIVE = "Live popularity";

/**
 * One metric, with the query time given, with live popularity and with the query time withheld, beside other rankings.
 *
 * @param {Description} description
 * @param {string} metric
 * @returns {Drawing}
 */
export function drawMetrics({ manifest }, metric) {
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
function metricRows({ given, live, withheld, references }) {
  const others = references.map(([name, value]) => ({ name: referenceName(name), value, color: "--faint" }));
  others.sort((one, other) => other.value - one.value);
  const own = [{ name: TIME_READ, value: given, color: "--series-1" }];
  if (live !== null) own.push({ name: LIVE, value: live, color: "--series-3" });
  if (withheld !== null) own.push({ name: TIME_IGNORED, value: withheld, color: "--series-5" });
  return [...own, ...others];
}

/**
 * @param {Map<string, TestMetric>} metrics
 * @returns {TableContent}
 */
function metricsTable(metrics) {
  const named = [...metrics.values()].flatMap(({ references }) => references.map(([name]) => name));
  const references = [...new Set(named)];
  const hasLive = [...metrics.values()].some(({ live }) => live !== null);
  return {
    caption: "Test metrics",
    columns: ["Metric", TIME_READ, ...(hasLive ? [LIVE] : []), TIME_IGNORED, ...references.map(referenceName)],
    rows: [...metrics].map(([name, one]) => [
      name,
      formatMetric(one.given),
      ...(hasLive ? [formatMetric(one.live)] : []),
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
export function drawTraining({ epochs, missing, manifest: { provenance } }) {
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
  const line = (label, y, name) => ({
    type: "scatter",
    name: escapeText(label),
    mode: "lines+markers",
    x,
    y,
    line: { color: cssColor(name), width: 2 },
    marker: { color: cssColor(name), size: 6 },
  });
  /** @type {any[]} */
  const traces = [line("loss", epochs.map((epoch) => epoch.loss), "--series-1")];
  if (metric !== null) {
    const values = epochs.map((epoch) => epoch.validation[metric] ?? null);
    traces.push({ ...line(`validation ${metric}`, values, "--series-2"), yaxis: "y2", connectgaps: true });
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
      yaxis: {
        title: { text: "loss", standoff: 10 },
        domain: isAlone ? [0, 1] : [0.56, 1],
        ...rangeOfOne(epochs.map((epoch) => epoch.loss)),
      },
      ...(isAlone ? {} : { yaxis2: { title, domain: [0, 0.44], ...rangeOfOne(traces[1].y) } }),
      ...(best === null ? {} : markBestEpoch(best, best > (x[0] + x.at(-1)) / 2)),
    },
  };
}

/** One value alone is drawn from 0 up: plotly.js would draw it between 1 less and 1 more. */
function rangeOfOne(values) {
  const known = values.filter((value) => value !== null);
  return known.length === 1 ? { range: [Math.min(0, known[0] * 1.2), Math.max(known[0] * 1.2, 1e-9)] } : {};
}

function markBestEpoch(best, isLate) {
  const line = { color: cssColor("--quiet"), width: 1.5, dash: "dot" };
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
        font: { color: cssColor("--quiet") },
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
export function drawWindows(models, chosen) {
  const rows = models
    .flatMap(({ version, data_window: window }) => (window === null ? [] : [{ version, window }]))
    .filter(({ version }, index) => index < MOST_WINDOWS || version === chosen)
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
