/** The time axis that the pictures of this view share. */

import { cssColor } from "../shell/chart.js";
import { calendarAxis, elapsedAxis } from "../widgets/time_axes.js";

/** An axis for `{events, queryTime, span, scale}` and a width in pixels, with the size of a pixel. */
export function timeAxis({ events, queryTime, span, scale }, width) {
  const axis =
    scale === "log" ? elapsedAxis(events, width) : calendarAxis(events, width, queryTime, span);
  return { ...axis, pixel: (axis.range[1] - axis.range[0]) / width };
}

/** A line at the query time, over the whole height; the layout's `shapes`. */
export const queryTimeLine = (at) => [
  {
    type: "line",
    x0: at,
    x1: at,
    yref: "paper",
    y0: 0,
    y1: 1,
    line: { color: cssColor("--query-time"), width: 2 },
  },
];

/** What `queryTimeLine` is called, above it; the layout's `annotations`. */
export function queryTimeName(at, [from, to]) {
  return [
    {
      x: at,
      yref: "paper",
      y: 1,
      yanchor: "bottom",
      xanchor: at > (from + to) / 2 ? "right" : "left",
      text: "query time",
      showarrow: false,
      font: { color: cssColor("--query-time") },
    },
  ];
}
