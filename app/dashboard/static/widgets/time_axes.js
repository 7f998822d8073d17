/**
 * Ways to lay time out from left to right: by the calendar, by the log of elapsed time up to now, or
 * by the log of an interval from now on.
 */

import { DAY, HOUR, MINUTE, SECOND } from "../shell/format.js";

const MARKS = [
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
const UNITS = [
  [SECOND, "second"],
  [MINUTE, "minute"],
  [HOUR, "hour"],
  [DAY, "day"],
  [7 * DAY, "week"],
  [(365.25 / 12) * DAY, "month"],
  [365.25 * DAY, "year"],
];
const LEAST_PIXELS_BETWEEN_MARKS = 44;
const PIXELS_PER_DATE = 100;

/** The calendar: it stands still while the query time moves over it. */
export function calendarAxis(events, width, queryTime, span) {
  const first = Math.min(events[0]?.at ?? span.first, queryTime);
  const last = Math.max(span.end, queryTime);
  const margin = (last - first) * 0.02;
  return {
    place: (event) => event.at,
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

/** Elapsed time up to the query time, recent on the right; anything under a second counts as one. */
export function elapsedAxis(events, width) {
  const placeOf = (duration) => -Math.log10(duration);
  const place = (event) => placeOf(Math.max(event.age, SECOND));
  const places = events.filter((event) => event.age >= 0).map(place);
  const oldest = Math.min(...places, -Math.log10(DAY));
  const newest = Math.max(...places, oldest + 0.5);
  const margin = (newest - oldest) * 0.03;
  const range = [oldest - margin, newest + margin];
  const marks = readable(MARKS, placeOf, range, width);
  return {
    place,
    shows: (event) => event.age >= 0,
    queryTime: null,
    range,
    layout: {
      type: "linear",
      title: { text: "elapsed before query time (log)" },
      tickvals: marks.map(([duration]) => placeOf(duration)),
      ticktext: marks.map(([, text]) => text),
    },
  };
}

/** Where an interval, in milliseconds, stands on an `intervalAxis`. */
export const intervalPosition = (interval) => Math.log10(interval);

/**
 * The log of an interval, growing to the right, with a line at every second, minute, hour, day, week,
 * month and year between the `shortest` and the `longest` to be shown (milliseconds). `width` is in
 * pixels. Answers an axis as plotly.js takes it.
 */
export function intervalAxis({ shortest, longest }, width, title) {
  const [from, to] = [shortest, longest].map(intervalPosition);
  const margin = Math.max(to - from, 0.5) * 0.03;
  const range = [from - margin, to + margin];
  const units = UNITS.filter(([unit]) => isWithin(range, intervalPosition(unit)));
  const named = readable(units, intervalPosition, range, width);
  return {
    type: "linear",
    title: { text: title },
    range,
    showgrid: true,
    tickvals: units.map(([unit]) => intervalPosition(unit)),
    ticktext: units.map((unit) => (named.includes(unit) ? unit[1] : "")),
  };
}

/** Those marks within the range that have room beside each other; of two without, the longer. */
function readable(marks, placeOf, range, width) {
  const kept = [];
  let previous = -Infinity;
  for (const mark of marks.toReversed()) {
    const place = placeOf(mark[0]);
    const pixel = ((place - range[0]) / (range[1] - range[0])) * width;
    const gap = Math.abs(pixel - previous);
    if (!isWithin(range, place) || gap < LEAST_PIXELS_BETWEEN_MARKS) continue;
    kept.push(mark);
    previous = pixel;
  }
  return kept;
}

const isWithin = ([from, to], place) => place >= from && place <= to;
