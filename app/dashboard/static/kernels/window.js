/** Which intervals are shown: all of them by their logarithm, or a window from now on. */

import { DAY, HOUR, SECOND } from "../shell/format.js";
import { intervalAxis, intervalPosition } from "../widgets/time_axes.js";

const WINDOWS = {
  day: { length: DAY, unit: HOUR, step: 3, title: "interval (hours)" },
  week: { length: 7 * DAY, unit: DAY, step: 1, title: "interval (days)" },
  "60d": { length: 60 * DAY, unit: DAY, step: 7, title: "interval (days)" },
  year: { length: 365 * DAY, unit: DAY, step: 30, title: "interval (days)" },
};
const LEAST_PIXELS_PER_TICK = 40;

/**
 * The horizontal axis of kernels for a `scale` and `window` of the state, `width` pixels wide, whose
 * logarithm ends at `longest`, in days: `{axis, place, shows, columns}`, the axis as plotly.js takes
 * it, where an interval in days stands on it, whether it is on it at all, and stretches `[from, to]`
 * in days that are about a pixel wide each.
 */
export function shownIntervals({ scale, window }, longest, width) {
  const count = Math.max(50, Math.round(width));
  return scale === "log" ? logarithmic(longest, count, width) : linear(WINDOWS[window], count, width);
}

function logarithmic(longest, count, width) {
  const [from, to] = [intervalPosition(SECOND), intervalPosition(longest * DAY)];
  const edge = (number) => 10 ** (from + ((to - from) * number) / count) / DAY;
  return {
    axis: intervalAxis({ shortest: SECOND, longest: longest * DAY }, width, "interval (log)"),
    place: (days) => intervalPosition(days * DAY),
    shows: () => true,
    columns: stretches(edge, count),
  };
}

function linear({ length, unit, step, title }, count, width) {
  const end = length / unit;
  const room = Math.max(1, Math.ceil((LEAST_PIXELS_PER_TICK * end) / step / width));
  return {
    axis: { title: { text: title }, range: [0, end * 1.005], tick0: 0, dtick: step * room, showgrid: true },
    place: (days) => (days * DAY) / unit,
    shows: (days) => days * DAY <= length,
    columns: stretches((number) => ((length / DAY) * number) / count, count),
  };
}

const stretches = (edge, count) =>
  Array.from({ length: count }, (_, number) => [edge(number), edge(number + 1)]);
