/** The picture of a kernel's rhythms: how much of all power each period has, now and before. */

import { cssColor, withOpacity } from "../shell/chart.js";
import { DAY, HOUR, MINUTE } from "../shell/format.js";
import { intervalPosition } from "../widgets/time_axes.js";
import { movesOf, sharesOf } from "./rhythms.js";

/** The periods, in milliseconds, and the highest share of some kernels, now and before training. */
export function spectrumExtent(kernels) {
  const shares = kernels.flatMap((kernel) => [
    ...sharesOf(kernel.spectrum ?? []),
    ...sharesOf(kernel.initial_spectrum ?? []),
  ]);
  const periods = shares.map((rhythm) => Math.abs(rhythm.period_days) * DAY);
  return {
    shortest: Math.min(...periods, HOUR) / 2,
    longest: Math.max(...periods, 7 * DAY, MINUTE) * 2,
    highest: Math.max(...shares.map((rhythm) => rhythm.share), 0.01) * 1.12,
  };
}

/** Traces of a kernel's spectrum, with what is behind each of their points: `[{trace, points}]`. */
export function spectrumTraces(kernel) {
  const after = sharesOf(kernel.spectrum);
  const before = sharesOf(kernel.initial_spectrum ?? []);
  const strong = cssColor("--series-1");
  const faint = cssColor("--quiet");
  const drawn = [];
  if (before.length > 0) {
    const open = { color: faint, size: 7, symbol: "circle-open" };
    drawn.push(stems(before, { color: withOpacity(faint, 0.6), width: 1, dash: "dot" }));
    drawn.push(heads(before, "before training", open));
    const moves = movesOf(before, after) ?? [];
    drawn.push(ways(moves, { color: cssColor("--series-2"), width: 1 }));
  }
  drawn.push(stems(after, { color: strong, width: 2 }));
  drawn.push(heads(after, "share", { color: strong, size: 8 }));
  return drawn;
}

const placeOf = (rhythm) => intervalPosition(Math.abs(rhythm.period_days) * DAY);

function heads(rhythms, name, marker) {
  const trace = {
    name,
    type: "scatter",
    mode: "markers",
    x: rhythms.map(placeOf),
    y: rhythms.map((rhythm) => rhythm.share),
    cliponaxis: false,
    marker,
  };
  return { points: rhythms, trace };
}

const stems = (rhythms, line) =>
  pieces("stems", rhythms.map((rhythm) => [[placeOf(rhythm), 0], [placeOf(rhythm), rhythm.share]]), line);

const ways = (moves, line) =>
  pieces(
    "moved",
    moves.map((move) => [move.before, move.after].map((rhythm) => [placeOf(rhythm), rhythm.share])),
    line,
  );

/** Lines from place to place, apart from each other. */
function pieces(name, ends, line) {
  const trace = {
    name,
    type: "scatter",
    mode: "lines",
    x: ends.flatMap(([from, to]) => [from[0], to[0], null]),
    y: ends.flatMap(([from, to]) => [from[1], to[1], null]),
    hoverinfo: "skip",
    line,
  };
  return { points: [], trace };
}
