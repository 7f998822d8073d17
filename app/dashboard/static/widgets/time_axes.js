// @ts-check
/** The log axis of an interval, for plotly.js. Intervals are milliseconds. */

import { DAY, HOUR, MINUTE, SECOND } from "../shell/format.js";

/** @type {[number, string][]} */
const UNITS = [
  [SECOND, "second"],
  [MINUTE, "minute"],
  [HOUR, "hour"],
  [DAY, "day"],
  [7 * DAY, "week"],
  [(365.25 / 12) * DAY, "month"],
  [365.25 * DAY, "year"],
];
const LEAST_PIXELS_BETWEEN_TICKS = 44;

/** The position of an interval on an `intervalAxis`. */
export const intervalPosition = (interval) => Math.log10(interval);

/**
 * An axis of the log of an interval, with a grid line at every second, minute, hour, day, week, month
 * and year between two intervals.
 *
 * @param {{shortest: number, longest: number}} range
 * @param {number} width of the axis in pixels
 * @param {string} title
 */
export function intervalAxis({ shortest, longest }, width, title) {
  const [from, to] = [shortest, longest].map(intervalPosition);
  const margin = Math.max(to - from, 0.5) * 0.03;
  /** @type {[number, number]} */
  const range = [from - margin, to + margin];
  const units = UNITS.filter(([unit]) => isWithin(range, intervalPosition(unit)));
  const labelled = withoutOverlap(units, range, width);
  return {
    type: "linear",
    title: { text: title },
    range,
    showgrid: true,
    tickvals: units.map(([unit]) => intervalPosition(unit)),
    ticktext: units.map((unit) => (labelled.includes(unit) ? unit[1] : "")),
  };
}

/**
 * The ticks within the range whose labels do not overlap; of two that do, the longer duration.
 *
 * @param {[number, string][]} ticks
 */
function withoutOverlap(ticks, range, width) {
  /** @type {[number, string][]} */
  const kept = [];
  let previous = -Infinity;
  for (const tick of ticks.toReversed()) {
    const position = intervalPosition(tick[0]);
    const pixel = ((position - range[0]) / (range[1] - range[0])) * width;
    const gap = Math.abs(pixel - previous);
    if (!isWithin(range, position) || gap < LEAST_PIXELS_BETWEEN_TICKS) continue;
    kept.push(tick);
    previous = pixel;
  }
  return kept;
}

const isWithin = ([from, to], position) => position >= from && position <= to;
