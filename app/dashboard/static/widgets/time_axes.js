/** Two ways to lay time out from left to right: by the calendar, or by the log of elapsed time. */

import { DAY, HOUR, MINUTE, SECOND } from "../shell/instants.js";

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
  const place = (event) => -Math.log10(Math.max(event.age, SECOND));
  const places = events.filter((event) => event.age >= 0).map(place);
  const oldest = Math.min(...places, -Math.log10(DAY));
  const newest = Math.max(...places, oldest + 0.5);
  const margin = (newest - oldest) * 0.03;
  const range = [oldest - margin, newest + margin];
  const marks = readable(MARKS, range, width);
  return {
    place,
    shows: (event) => event.age >= 0,
    queryTime: null,
    range,
    layout: {
      type: "linear",
      title: { text: "elapsed before query time (log)" },
      tickvals: marks.map(([duration]) => -Math.log10(duration)),
      ticktext: marks.map(([, text]) => text),
    },
  };
}

/** Those marks within the range that have room beside each other. */
function readable(marks, [from, to], width) {
  const kept = [];
  let previous = -Infinity;
  for (const mark of marks.toReversed()) {
    const place = -Math.log10(mark[0]);
    const pixel = ((place - from) / (to - from)) * width;
    if (place < from || place > to || pixel - previous < LEAST_PIXELS_BETWEEN_MARKS) continue;
    kept.push(mark);
    previous = pixel;
  }
  return kept;
}
