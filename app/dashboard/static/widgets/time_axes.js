// @ts-check
/**
 * Time axes for plotly.js: the calendar, the log of the time elapsed before the query time, and the
 * log of an interval. All durations and instants are milliseconds.
 */

import { DAY, HOUR, MINUTE, SECOND } from "../shell/format.js";

/** @type {[number, string][]} */
const TICKS = [
  [SECOND, "1 s"],
  [10 * SECOND, "10 s"],
  [MINUTE, "1 min"],
  [10 * MINUTE, "10 min"],
  [HOUR, "1 h"],
  [6 * HOUR, "6 h"],
  [DAY, "1 d"],
  [3 * DAY, "3 d"],
  [7 * DAY, "7 d"],
  [14 * DAY, "14 d"],
  [30 * DAY, "30 d"],
  [60 * DAY, "60 d"],
  [90 * DAY, "90 d"],
  [180 * DAY, "180 d"],
  [365 * DAY, "1 y"],
  [2 * 365 * DAY, "2 y"],
  [3 * 365 * DAY, "3 y"],
  [10 * 365 * DAY, "10 y"],
  [30 * 365 * DAY, "30 y"],
];
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
const PIXELS_PER_DATE = 100;

/**
 * @typedef {object} TimeAxis
 * @property {(event: any) => number} position the position of an event
 * @property {(event: any) => boolean} shows whether an event is within the axis
 * @property {number | null} queryTime its position; null if it is the axis' end
 * @property {[number, number]} range
 * @property {any} layout the axis of plotly.js
 */

/**
 * A calendar axis over the events, the span of the control and the query time.
 *
 * @returns {TimeAxis}
 */
export function calendarAxis(events, width, queryTime, span) {
  const first = Math.min(events[0]?.at ?? span.first, queryTime);
  const last = Math.max(span.end, queryTime);
  const margin = (last - first) * 0.02;
  return {
    position: (event) => event.at,
    shows: () => true,
    queryTime,
    range: [first - margin, last + margin],
    layout: {
      type: "date",
      title: { text: "when (UTC)" },
      nticks: Math.max(3, Math.round(width / PIXELS_PER_DATE)),
    },
  };
}

/**
 * An axis of the log of the time elapsed before the query time, recent on the right. Less than a
 * second counts as one.
 *
 * @returns {TimeAxis}
 */
export function elapsedAxis(events, width) {
  const positionOf = (duration) => -Math.log10(duration);
  const position = (event) => positionOf(Math.max(event.age, SECOND));
  const positions = events.filter((event) => event.age >= 0).map(position);
  const oldest = Math.min(...positions, -Math.log10(DAY));
  const newest = Math.max(...positions, oldest + 0.5);
  const margin = (newest - oldest) * 0.03;
  /** @type {[number, number]} */
  const range = [oldest - margin, newest + margin];
  const ticks = withoutOverlap(TICKS, positionOf, range, width);
  return {
    position,
    shows: (event) => event.age >= 0,
    queryTime: null,
    range,
    layout: {
      type: "linear",
      title: { text: "elapsed before query time (log)" },
      tickvals: ticks.map(([duration]) => positionOf(duration)),
      ticktext: ticks.map(([, text]) => text),
    },
  };
}

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
  const labelled = withoutOverlap(units, intervalPosition, range, width);
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
function withoutOverlap(ticks, positionOf, range, width) {
  /** @type {[number, string][]} */
  const kept = [];
  let previous = -Infinity;
  for (const tick of ticks.toReversed()) {
    const position = positionOf(tick[0]);
    const pixel = ((position - range[0]) / (range[1] - range[0])) * width;
    const gap = Math.abs(pixel - previous);
    if (!isWithin(range, position) || gap < LEAST_PIXELS_BETWEEN_TICKS) continue;
    kept.push(tick);
    previous = pixel;
  }
  return kept;
}

const isWithin = ([from, to], position) => position >= from && position <= to;
