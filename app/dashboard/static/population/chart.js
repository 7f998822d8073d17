// @ts-check
/** The charts of the Population page: attention curves with bands, and the histories behind them. */

import { cssColor, escapeText, withOpacity } from "../shell/chart.js";
import { DAY, formatCount, formatDuration, formatPercent } from "../shell/format.js";
import { html } from "../shell/html.js";
import { styleColor } from "../widgets/series.js";
import { intervalAxis, intervalPosition } from "../widgets/time_axes.js";

/**
 * @typedef {"observed" | "predicted"} View
 * @typedef {"sem" | "sd" | "none"} Band standard error of the mean, or standard deviation
 *
 * @typedef {object} Point of `GET /v1/models/{version}`, with `interval` in milliseconds
 * @property {number} interval
 * @property {number} interval_days
 * @property {number} mean
 * @property {number | null} sd
 * @property {number | null} standard_error
 * @property {number} count histories
 *
 * @typedef {object} Curve
 * @property {string} name "" for all histories
 * @property {number} histories
 * @property {Point[]} observed
 * @property {Point[]} predicted
 *
 * @typedef {object} Line a curve of a version, to be drawn
 * @property {Curve} curve
 * @property {string} label
 * @property {string} version
 * @property {boolean} isCompared whether it is of the second version
 * @property {boolean} isShare whether weights are shares of 1
 * @property {any} style as `seriesStyles` returns it
 */

/** The name of the curve of all histories, as in the API. */
export const ALL = "";

/** The mean of fewer histories than this is unreliable. */
const FEW = 10;

/**
 * The curves of a version: that of all histories, then the others, the most frequent first.
 *
 * @param {any} description of the version; null for none
 * @param {"action" | "category"} by
 * @returns {Curve[]} empty without an attention profile
 */
export function toCurves(description, by) {
  /** @type {Map<string, Curve>} */
  const curves = new Map();
  for (const point of description?.attention_profile ?? []) {
    if ((point.by !== by && point.by !== "all") || point.mean === null) continue;
    const curve = curves.get(point.name) ?? {
      name: point.name,
      histories: 0,
      observed: [],
      predicted: [],
    };
    curves.set(point.name, curve);
    curve[point.view].push({ ...point, interval: point.interval_days * DAY });
    // Each history counts once in the observed view.
    if (point.view === "observed") curve.histories += point.count;
  }
  return [...curves.values()].sort(
    (one, other) =>
      Number(other.name === ALL) - Number(one.name === ALL) || other.histories - one.histories,
  );
}

/** The name of a curve as it is shown. */
export const curveLabel = (name) => (name === ALL ? "all histories" : name);

/**
 * The ends of the band around a point. No weight is below 0, and no share above 1.
 *
 * @param {Point} point
 * @param {Band} band
 * @param {boolean} isShare
 */
function bandEnds(point, band, isShare) {
  const spread = (band === "sd" ? point.sd : point.standard_error) ?? 0;
  return [Math.max(0, point.mean - spread), Math.min(isShare ? 1 : Infinity, point.mean + spread)];
}

const CURVES_DOMAIN = [0.27, 1];
const COUNTS_DOMAIN = [0, 0.17];
const HALF_WIDTH_OF_SINGLE_BAND = 0.03;

/**
 * The common scale of both charts: the highest value, and the shortest and longest interval.
 *
 * @param {Line[]} lines
 * @param {Band} band
 */
export function computeExtent(lines, band) {
  const points = lines.flatMap(({ curve }) => [...curve.observed, ...curve.predicted]);
  const heights = lines.flatMap(({ curve, isCompared, isShare }) =>
    [...curve.observed, ...curve.predicted].map((point) =>
      band === "none" || isCompared ? point.mean : bandEnds(point, band, isShare)[1],
    ),
  );
  return {
    highest: Math.max(...heights, 0.01) * 1.06,
    shortest: Math.min(...points.map((point) => point.interval)),
    longest: Math.max(...points.map((point) => point.interval)),
  };
}

/**
 * Builds a chart for plotly.js. Lines of the compared version are dashed, with smaller points and
 * without bands.
 *
 * @param {Line[]} lines
 * @param {View} view
 * @param {Band} band
 * @param {ReturnType<typeof computeExtent>} extent
 * @param {number} width pixels
 * @returns {{traces: any[], layout: any, drawn: Line[]}} `drawn`: the line of every trace
 */
export function buildChart(lines, view, band, extent, width) {
  const shown = lines.filter(({ curve }) => curve[view].length > 0);
  const banded = band === "none" ? [] : shown.filter((line) => !line.isCompared);
  const traces = [
    ...banded.map((line) => bandTrace(line, view, band)),
    ...shown.map((line) => curveTrace(line, view)),
    ...shown.map((line) => countTrace(line, view)),
  ];
  return { traces, layout: layout(shown, view, extent, width), drawn: [...banded, ...shown, ...shown] };
}

/** @param {Line} line */
function bandTrace({ curve, style, isShare }, view, band) {
  const points = curve[view];
  const positions = points.map((point) => intervalPosition(point.interval));
  const ends = points.map((point) => bandEnds(point, band, isShare));
  if (points.length === 1) {
    // The band of a single point would have no width.
    positions.splice(
      0,
      1,
      positions[0] - HALF_WIDTH_OF_SINGLE_BAND,
      positions[0] + HALF_WIDTH_OF_SINGLE_BAND,
    );
    ends.push(ends[0]);
  }
  return {
    name: "band",
    showlegend: false,
    type: "scatter",
    mode: "lines",
    x: [...positions, ...positions.toReversed()],
    y: [...ends.map(([, high]) => high), ...ends.map(([low]) => low).toReversed()],
    fill: "toself",
    fillcolor: withOpacity(styleColor(style), 0.13),
    line: { width: 0 },
    hoverinfo: "skip",
  };
}

/** @param {Line} line */
function curveTrace({ curve, label, version, style, isCompared }, view) {
  const points = curve[view];
  const isFew = points.map((point) => point.count < FEW);
  return {
    name: escapeText(isCompared ? `${label}, ${version}` : label),
    type: "scatter",
    mode: "lines+markers",
    x: points.map((point) => intervalPosition(point.interval)),
    y: points.map((point) => point.mean),
    line: {
      color: styleColor(style),
      width: isCompared ? 1.5 : 2,
      dash: isCompared ? "dash" : "solid",
    },
    marker: {
      color: styleColor(style),
      size: (view === "observed" ? 8 : 5) - (isCompared ? 2 : 0),
      symbol: isFew.map((few) => (few ? `${style.symbol}-open` : style.symbol)),
      opacity: isFew.map((few) => (few ? 0.6 : 1)),
    },
  };
}

/** @param {Line} line */
function countTrace({ curve, style }, view) {
  const points = curve[view];
  return {
    name: "histories",
    showlegend: false,
    type: "scatter",
    mode: "markers",
    yaxis: "y2",
    x: points.map((point) => intervalPosition(point.interval)),
    y: points.map((point) => point.count),
    marker: { color: styleColor(style), size: 5, symbol: style.symbol },
  };
}

function layout(shown, view, extent, width) {
  const counts = shown.flatMap(({ curve }) => curve[view].map((point) => point.count));
  const line = { color: cssColor("--faint"), width: 1, dash: "dot" };
  return {
    xaxis: {
      ...intervalAxis(extent, width, "time since the last event (log)"),
      anchor: "y2",
    },
    yaxis: {
      title: { text: "weight" },
      tickformat: ".1~%",
      range: [0, extent.highest],
      domain: CURVES_DOMAIN,
    },
    yaxis2: {
      title: { text: "histories" },
      range: [0, Math.max(...counts, 2 * FEW) * 1.2],
      domain: COUNTS_DOMAIN,
      nticks: 2,
    },
    shapes: [{ type: "line", xref: "paper", x0: 0, x1: 1, yref: "y2", y0: FEW, y1: FEW, line }],
  };
}

const formatOptionalPercent = (share) => (share === null ? "–" : formatPercent(share));

/**
 * The lines of the tooltip of a point.
 *
 * @param {Line} line
 * @param {Point} point
 */
export function describePoint({ label, version, isCompared }, point) {
  const { mean, sd, standard_error: error, count } = point;
  return [
    html`<span class="title">${label}</span>`,
    isCompared ? html`<code>${version}</code>` : null,
    `${formatDuration(point.interval)} after the last event`,
    `mean ${formatPercent(mean)}${error === null ? "" : `, standard error ${formatPercent(error)}`}`,
    sd === null ? null : `standard deviation ${formatPercent(sd)}`,
    `over ${formatCount(count)} ${count === 1 ? "history" : "histories"}`,
    count < FEW ? "few histories: unreliable" : null,
  ].filter((text) => text !== null);
}

const BANDS = {
  sem: "Bands are the standard error of the mean, to either side: the uncertainty of the mean",
  sd: "Bands are the standard deviation, to either side: the spread of the histories",
  none: "",
};

/**
 * The note below the charts: what bands, dashes and hollow points mean.
 *
 * @param {Band} band
 * @param {Line[]} lines
 */
export function describeBands(band, lines) {
  const isClipped = lines.some((line) => !line.isCompared && line.isShare);
  const ends = isClipped ? "cut off at 0 and 100 %" : "cut off at 0";
  return [
    BANDS[band] && `${BANDS[band]}; ${ends}.`,
    lines.some((line) => line.isCompared) &&
      "The other version is dashed, with smaller points and no bands.",
    `Hollow points have fewer than ${FEW} histories.`,
  ]
    .filter(Boolean)
    .join(" ");
}

/**
 * The first and last point of every line of a view, in words.
 *
 * @param {Line[]} lines
 * @param {View} view
 */
export function summarize(lines, view) {
  const describe = (point) => `${formatPercent(point.mean)} after ${formatDuration(point.interval)}`;
  return lines
    .filter(({ curve }) => curve[view].length > 0)
    .map(({ curve, label, version, isCompared }) => {
      const points = curve[view];
      const name = isCompared ? `${label} of ${version}` : label;
      return points.length === 1
        ? `${name}: ${describe(points[0])}`
        : `${name}: from ${describe(points[0])} to ${describe(points[points.length - 1])}`;
    })
    .join("; ");
}

/**
 * The points of a view with the API's numbers, a row each.
 *
 * @param {Line[]} lines
 * @param {View} view
 */
export const toRows = (lines, view) =>
  lines.flatMap(({ curve, label, version }) =>
    curve[view].map(({ interval_days, mean, sd, standard_error, count }) => ({
      version,
      curve: label,
      days_since_last_event: interval_days,
      mean_weight: mean,
      sd,
      standard_error,
      histories: count,
    })),
  );

/**
 * The points of a view, for a table.
 *
 * @param {Line[]} lines
 * @param {View} view
 */
export function toTable(lines, view) {
  const hasComparison = lines.some((line) => line.isCompared);
  const rows = lines.flatMap(({ curve, label, version }) =>
    curve[view].map((point) => [
      label,
      ...(hasComparison ? [version] : []),
      formatDuration(point.interval),
      formatPercent(point.mean),
      formatOptionalPercent(point.standard_error),
      formatOptionalPercent(point.sd),
      formatCount(point.count),
    ]),
  );
  const numbers = ["Time since", "Mean", "Standard error", "Standard deviation", "Histories"];
  return { columns: ["Curve", ...(hasComparison ? ["Version"] : []), ...numbers], rows };
}
