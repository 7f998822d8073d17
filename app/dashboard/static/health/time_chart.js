/** The lines of a panel as plotly.js draws them. */

import { cssColor } from "../shell/chart.js";
import { MINUTE } from "../shell/format.js";
import { KEPT } from "./record.js";

/** By place, as in the legend: nobody needs the colours to tell lines apart. */
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash"];
const MARGIN = { l: 46, r: 8, t: 8, b: 24 };
/** Longer than between any two polls: the page was hidden or paused. */
const GAP = 2 * MINUTE;
const LEAST_SPAN = MINUTE;

const TIMES = [
  [1, "1 s"],
  [60, "1 min"],
  [3600, "1 h"],
  [86400, "1 d"],
];

/** `{traces, layout}` of points `{at, values}`, for a panel as PANELS describes it. */
export function lines({ lines: named, axis, scale = 1, isLogarithmic = false }, points) {
  const told = withGaps(points);
  const x = told.map(({ at }) => asDate(at));
  const traces = named.map(({ name }, line) => ({
    type: "scatter",
    mode: points.length < 3 ? "lines+markers" : "lines",
    name,
    x,
    y: told.map(({ values }) => (values[line] === null ? null : values[line] * scale)),
    line: { color: cssColor(`--series-${line + 1}`), width: line === 0 ? 2 : 1.5, dash: DASHES[line] },
    marker: { size: 4 },
  }));
  const last = points.at(-1).at;
  const first = Math.min(Math.max(points[0].at, last - KEPT), last - LEAST_SPAN);
  return {
    traces,
    layout: {
      margin: MARGIN,
      xaxis: {
        type: "date",
        range: [first, last].map(asDate),
        nticks: 4,
        tickformat: ticks(last - first),
      },
      yaxis: isLogarithmic ? logarithmic() : linear(axis, traces),
    },
  };
}

const asDate = (at) => new Date(at).toISOString().slice(0, 23);

const ticks = (span) => (span < 5 * MINUTE ? "%H:%M:%S" : "%H:%M");

/** From zero, and never so near that nothing looks like something. */
function linear(title, traces) {
  const most = Math.max(0, ...traces.flatMap(({ y }) => y));
  const text = { title: { text: title, font: { size: 11 }, standoff: 4 } };
  return { ...text, nticks: 4, range: [0, most === 0 ? 1 : most * 1.1] };
}

function logarithmic() {
  const [at, words] = [0, 1].map((place) => TIMES.map((time) => time[place]));
  return { type: "log", tickvals: at, ticktext: words, range: [-1, Math.log10(4e6)] };
}

/** A point without values wherever nobody looked for a while, so that no line crosses it. */
function withGaps(points) {
  return points.flatMap((point, place) => {
    const before = points[place - 1];
    if (before === undefined || point.at - before.at <= GAP) return [point];
    return [{ at: before.at + 1, values: point.values.map(() => null) }, point];
  });
}
