// @ts-check
/** The charts of a kernel: psi by interval, and the power of its rhythms by period. */

import { cssColor, withOpacity } from "../shell/chart.js";
import { DAY, HOUR, MINUTE, SECOND } from "../shell/format.js";
import { intervalAxis, intervalPosition } from "../widgets/time_axes.js";

/**
 * @typedef {{period_days: number, power: number, share: number}} Rhythm
 *
 * @typedef {object} Kernel a kernel of `GET /v1/models/{version}`
 * @property {string} place
 * @property {string} kind
 * @property {boolean} is_stationary
 * @property {number[]} interval_days
 * @property {number[]} psi
 * @property {Rhythm[] | null} spectrum
 * @property {number | null} constant
 * @property {number[] | null} initial_psi before training
 * @property {Rhythm[] | null} initial_spectrum
 * @property {number | null} initial_constant
 *
 * @typedef {{constant: number, rhythms: Rhythm[]}} Formula
 *   psi(x) = constant + sum of power * cos(2 pi x / period)
 *
 * @typedef {object} Scale the horizontal axis of psi; intervals are in days
 * @property {any} axis as plotly.js takes it
 * @property {(days: number) => number} position of an interval on the axis
 * @property {(days: number) => boolean} contains whether an interval is on the axis
 * @property {[number, number][]} columns sections of the axis, about a pixel wide each
 *
 * @typedef {{trace: any, points: any[]}} DrawnTrace a trace and what its points stand for
 */

const WINDOWS = {
  day: { length: DAY, unit: HOUR, step: 3, title: "interval (hours)" },
  week: { length: 7 * DAY, unit: DAY, step: 1, title: "interval (days)" },
  "60d": { length: 60 * DAY, unit: DAY, step: 7, title: "interval (days)" },
  year: { length: 365 * DAY, unit: DAY, step: 30, title: "interval (days)" },
};
const LEAST_PIXELS_PER_TICK = 40;

/**
 * The horizontal axis of psi: logarithmic up to the longest interval, or linear over a window.
 *
 * @param {Record<string, any>} state of the page: its `scale` and `window`
 * @param {number} longest days
 * @param {number} width pixels
 * @returns {Scale}
 */
export function intervalScale({ scale, window }, longest, width) {
  const columns = Math.max(50, Math.round(width));
  return scale === "log"
    ? logarithmicScale(longest, columns, width)
    : linearScale(WINDOWS[window], columns, width);
}

/** @returns {Scale} */
function logarithmicScale(longest, columns, width) {
  const [from, to] = [intervalPosition(SECOND), intervalPosition(longest * DAY)];
  const edge = (number) => 10 ** (from + ((to - from) * number) / columns) / DAY;
  return {
    axis: intervalAxis({ shortest: SECOND, longest: longest * DAY }, width, "interval (log)"),
    position: (days) => intervalPosition(days * DAY),
    contains: () => true,
    columns: sections(edge, columns),
  };
}

/** @returns {Scale} */
function linearScale({ length, unit, step, title }, columns, width) {
  const end = length / unit;
  const every = Math.max(1, Math.ceil((LEAST_PIXELS_PER_TICK * end) / step / width));
  return {
    axis: { title: { text: title }, range: [0, end * 1.005], tick0: 0, dtick: step * every, showgrid: true },
    position: (days) => (days * DAY) / unit,
    contains: (days) => days * DAY <= length,
    columns: sections((number) => ((length / DAY) * number) / columns, columns),
  };
}

/** @returns {[number, number][]} */
const sections = (edge, count) =>
  Array.from({ length: count }, (_, number) => [edge(number), edge(number + 1)]);

/**
 * The formula of a kernel.
 *
 * @param {Kernel} kernel
 * @returns {Formula | null} null where the API has no constant: the rhythms do not reproduce psi
 */
export const toFormula = ({ constant, spectrum }) =>
  constant === null || spectrum === null ? null : { constant, rhythms: spectrum };

/**
 * The kernel before training; null if the API does not have it.
 *
 * @param {Kernel} kernel
 * @returns {Kernel | null}
 */
const beforeTraining = (kernel) =>
  kernel.initial_psi === null
    ? null
    : {
        ...kernel,
        psi: kernel.initial_psi,
        spectrum: kernel.initial_spectrum,
        constant: kernel.initial_constant,
      };

const CYCLE = 2 * Math.PI;

/**
 * psi at an interval, by the formula.
 *
 * @param {Formula} formula
 * @param {number} days
 */
export const evaluatePsi = ({ constant, rhythms }, days) =>
  rhythms.reduce(
    (sum, { power, period_days: period }) => sum + power * Math.cos((CYCLE * days) / period),
    constant,
  );

const SAMPLES = { perPeriod: 8, most: 48 };

/**
 * The exact mean of psi between two intervals, and its range. Drawing the mean of each pixel keeps
 * rhythms that are too fast to be drawn from leaving a pattern of their own (aliasing).
 *
 * @param {Formula} formula
 * @param {number} from days
 * @param {number} to days
 */
function summarizePsi(formula, from, to) {
  const { constant, rhythms } = formula;
  const shortest = Math.min(...rhythms.map((rhythm) => Math.abs(rhythm.period_days)));
  const samples = Math.ceil((SAMPLES.perPeriod * (to - from)) / shortest);
  const count = Math.max(2, Math.min(samples, SAMPLES.most));
  let [low, high] = [Infinity, -Infinity];
  for (let sample = 0; sample <= count; sample += 1) {
    const value = evaluatePsi(formula, from + ((to - from) * sample) / count);
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  const mean = rhythms.reduce((sum, { power, period_days: period }) => {
    const frequency = CYCLE / period;
    const integral = (Math.sin(frequency * to) - Math.sin(frequency * from)) / frequency;
    return sum + (power * integral) / (to - from);
  }, constant);
  return { mean, low, high };
}

/**
 * The traces of psi. Their points are `{from, to, mean, low, high}` or `{at, psi}`, in days.
 *
 * @param {Kernel} kernel
 * @param {Scale} scale
 * @returns {DrawnTrace[]}
 */
export function psiTraces(kernel, scale) {
  const drawn = [];
  const before = beforeTraining(kernel);
  if (before !== null) {
    const points = linePoints(before, scale);
    const line = { color: cssColor("--quiet"), width: 1.2, dash: "dash" };
    drawn.push({ points, trace: { ...lineTrace(points, scale), name: "before training", line } });
  }
  const points = linePoints(kernel, scale);
  const color = cssColor("--series-1");
  if (toFormula(kernel) !== null) drawn.push({ points, trace: rangeTrace(points, scale, color) });
  drawn.push({
    points,
    trace: { ...lineTrace(points, scale), name: "psi", line: { color, width: 2 } },
  });
  drawn.push(valuesTrace(kernel, scale, color));
  return drawn;
}

/** The points of the line: one per pixel by the formula, or the values of the API. */
function linePoints(kernel, scale) {
  const formula = toFormula(kernel);
  return formula === null
    ? valuePoints(kernel, scale)
    : scale.columns.map(([from, to]) => ({ from, to, ...summarizePsi(formula, from, to) }));
}

const valuePoints = (kernel, scale) =>
  kernel.interval_days
    .map((at, number) => ({ at, psi: kernel.psi[number] }))
    .filter(({ at }) => scale.contains(at));

/** The position of a point; of a section, its middle on the axis. */
const positionOf = ({ at, from, to }, scale) =>
  at === undefined ? (scale.position(from) + scale.position(to)) / 2 : scale.position(at);

const lineTrace = (points, scale) => ({
  type: "scatter",
  mode: "lines",
  x: points.map((point) => positionOf(point, scale)),
  y: points.map((point) => point.psi ?? point.mean),
});

/** The range of psi within every pixel. */
function rangeTrace(points, scale, color) {
  const positions = points.map((point) => positionOf(point, scale));
  return {
    name: "range",
    showlegend: false,
    type: "scatter",
    mode: "lines",
    x: [...positions, ...positions.toReversed()],
    y: [...points.map((point) => point.high), ...points.map((point) => point.low).toReversed()],
    fill: "toself",
    fillcolor: withOpacity(color, 0.2),
    line: { width: 0 },
    hoverinfo: "skip",
  };
}

function valuesTrace(kernel, scale, color) {
  const points = valuePoints(kernel, scale);
  const trace = {
    name: "values",
    type: "scatter",
    mode: "markers",
    x: points.map((point) => scale.position(point.at)),
    y: points.map((point) => point.psi),
    marker: { color, size: 3.5 },
  };
  return { points, trace };
}

/**
 * The lowest and highest value of psi, over all kernels.
 *
 * @param {Kernel[]} kernels
 * @param {Scale} scale
 */
export function computePsiExtent(kernels, scale) {
  const values = kernels.flatMap((kernel) => psiTraces(kernel, scale).flatMap(({ trace }) => trace.y));
  let [low, high] = [0, 0.01];
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return [low, high];
}

/**
 * The rhythms that are drawn; none where none has any power.
 *
 * @param {Rhythm[] | null} spectrum
 */
export const drawableRhythms = (spectrum) =>
  spectrum?.some(({ share }) => share > 0) ? spectrum : [];

/**
 * Pairs the rhythms before training with those after, in the order of their periods, which rarely
 * overtake each other.
 *
 * @param {Kernel} kernel
 * @returns {{before: Rhythm, after: Rhythm}[] | null} null where they are not equally many
 */
export function pairRhythms({ initial_spectrum: initial, spectrum }) {
  if (initial === null || initial.length !== spectrum?.length) return null;
  const [before, after] = [initial, spectrum].map((rhythms) =>
    rhythms.toSorted((one, other) => Math.abs(one.period_days) - Math.abs(other.period_days)),
  );
  return before.map((rhythm, index) => ({ before: rhythm, after: after[index] }));
}

/**
 * The common scale of the spectra of some kernels: their periods in milliseconds, and the highest
 * share.
 *
 * @param {Kernel[]} kernels
 */
export function computeSpectrumExtent(kernels) {
  const rhythms = kernels.flatMap((kernel) => [
    ...drawableRhythms(kernel.spectrum),
    ...drawableRhythms(kernel.initial_spectrum),
  ]);
  const periods = rhythms.map((rhythm) => Math.abs(rhythm.period_days) * DAY);
  return {
    shortest: Math.min(...periods, HOUR) / 2,
    longest: Math.max(...periods, 7 * DAY, MINUTE) * 2,
    highest: Math.max(...rhythms.map((rhythm) => rhythm.share), 0.01) * 1.12,
  };
}

/**
 * The traces of a spectrum: stems with heads, and lines from each rhythm before training to its
 * position after. Their points are rhythms.
 *
 * @param {Kernel} kernel
 * @returns {DrawnTrace[]}
 */
export function spectrumTraces(kernel) {
  const after = drawableRhythms(kernel.spectrum);
  const before = drawableRhythms(kernel.initial_spectrum);
  const color = cssColor("--series-1");
  const quiet = cssColor("--quiet");
  const drawn = [];
  if (before.length > 0) {
    drawn.push(stemsTrace(before, { color: withOpacity(quiet, 0.6), width: 1, dash: "dot" }));
    drawn.push(headsTrace(before, "before training", { color: quiet, size: 7, symbol: "circle-open" }));
    const pairs = after.length > 0 ? (pairRhythms(kernel) ?? []) : [];
    drawn.push(movesTrace(pairs, { color: cssColor("--series-2"), width: 1 }));
  }
  drawn.push(stemsTrace(after, { color, width: 2 }));
  drawn.push(headsTrace(after, "share", { color, size: 8 }));
  return drawn;
}

const periodPosition = (rhythm) => intervalPosition(Math.abs(rhythm.period_days) * DAY);

function headsTrace(rhythms, name, marker) {
  const trace = {
    name,
    type: "scatter",
    mode: "markers",
    x: rhythms.map(periodPosition),
    y: rhythms.map((rhythm) => rhythm.share),
    cliponaxis: false,
    marker,
  };
  return { points: rhythms, trace };
}

const stemsTrace = (rhythms, line) =>
  segmentsTrace(
    "stems",
    rhythms.map((rhythm) => [
      [periodPosition(rhythm), 0],
      [periodPosition(rhythm), rhythm.share],
    ]),
    line,
  );

const movesTrace = (pairs, line) =>
  segmentsTrace(
    "moved",
    pairs.map(({ before, after }) =>
      [before, after].map((rhythm) => [periodPosition(rhythm), rhythm.share]),
    ),
    line,
  );

/** Separate lines between pairs of positions. */
function segmentsTrace(name, segments, line) {
  const trace = {
    name,
    showlegend: false,
    type: "scatter",
    mode: "lines",
    x: segments.flatMap(([from, to]) => [from[0], to[0], null]),
    y: segments.flatMap(([from, to]) => [from[1], to[1], null]),
    hoverinfo: "skip",
    line,
  };
  return { points: [], trace };
}
