/** The picture of a kernel: psi against the interval, now and before training. */

import { cssColor, withOpacity } from "../shell/chart.js";
import { formulaOf, psiBetween, SIX_DIGITS } from "./rhythms.js";

/**
 * Traces of a kernel over `shown`, as `shownIntervals` answers it, with what is behind each of their
 * points: `[{trace, points}]`, a point being `{from, to, mean, low, high}` or `{at, psi}` in days.
 */
export function psiTraces(kernel, shown) {
  const drawn = [];
  const before = beforeTraining(kernel);
  if (before !== null) {
    const { points } = lineOf(before, formulaOf(before, SIX_DIGITS), shown);
    const line = { color: cssColor("--quiet"), width: 1.2, dash: "dash" };
    drawn.push({ points, trace: { ...lineTrace(points, shown), name: "before training", line } });
  }
  const { points, isFormula } = lineOf(kernel, formulaOf(kernel), shown);
  const strong = cssColor("--series-1");
  if (isFormula) drawn.push({ points, trace: rangeTrace(points, shown, strong) });
  drawn.push({
    points,
    trace: { ...lineTrace(points, shown), name: "psi", line: { color: strong, width: 2 } },
  });
  drawn.push(toldPoints(kernel, shown, strong));
  return drawn;
}

/** The kernel as it was before training, in the form of one; null where nobody tells. */
export const beforeTraining = (kernel) =>
  kernel.initial_psi === null
    ? null
    : { ...kernel, psi: kernel.initial_psi, spectrum: kernel.initial_spectrum };

/** The lowest and the highest place that traces reach. */
export function heightsOf(drawn) {
  const values = drawn.flatMap(({ trace }) => trace.y);
  return values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [0, 0]);
}

function lineOf(kernel, formula, shown) {
  if (formula !== null) {
    const points = shown.columns.map(([from, to]) => ({ from, to, ...psiBetween(formula, from, to) }));
    return { points, isFormula: true };
  }
  return { points: toldOf(kernel, shown), isFormula: false };
}

const toldOf = (kernel, shown) =>
  kernel.interval_days
    .map((at, number) => ({ at, psi: kernel.psi[number] }))
    .filter(({ at }) => shown.shows(at));

/** Where a point stands; a stretch stands at its middle, whatever the scale. */
const placeOf = ({ at, from, to }, shown) =>
  at === undefined ? (shown.place(from) + shown.place(to)) / 2 : shown.place(at);

const lineTrace = (points, shown) => ({
  type: "scatter",
  mode: "lines",
  x: points.map((point) => placeOf(point, shown)),
  y: points.map((point) => point.psi ?? point.mean),
});

/** What psi runs through within every pixel. */
function rangeTrace(points, shown, strong) {
  const places = points.map((point) => placeOf(point, shown));
  return {
    name: "range",
    type: "scatter",
    mode: "lines",
    x: [...places, ...places.toReversed()],
    y: [...points.map((point) => point.high), ...points.map((point) => point.low).toReversed()],
    fill: "toself",
    fillcolor: withOpacity(strong, 0.2),
    line: { width: 0 },
    hoverinfo: "skip",
  };
}

function toldPoints(kernel, shown, strong) {
  const points = toldOf(kernel, shown);
  const trace = {
    name: "told",
    type: "scatter",
    mode: "markers",
    x: points.map((point) => shown.place(point.at)),
    y: points.map((point) => point.psi),
    marker: { color: strong, size: 3.5 },
  };
  return { points, trace };
}
