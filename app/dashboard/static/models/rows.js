/** Charts of one row per name, read from top to bottom. */

import { escapeText } from "../shell/chart.js";
import { element } from "../shell/html.js";

const ROW_PIXELS = 30;
const AXIS_PIXELS = 62;

/** Give a chart's place the height of so many rows. */
export const fitRows = (place, rows) =>
  place.style.setProperty("height", `${Math.max(rows, 2) * ROW_PIXELS + AXIS_PIXELS}px`);

/** The y axis for names that stand at 0, 1, ... from the top. */
export const rowAxis = (names) => ({
  tickvals: names.map((_, row) => row),
  ticktext: names.map(escapeText),
  range: [names.length - 0.4, -0.6],
  showgrid: false,
  ticks: "outside",
  ticklen: 6,
  tickcolor: "rgba(0,0,0,0)",
});

/** Show a chart's place, or instead of it why there is nothing to draw; answers whether to draw. */
export function showOrSay(place, summary, why) {
  place.hidden = why !== null;
  summary.replaceChildren(...(why === null ? [] : [element("span", { class: "empty" }, why)]));
  return why === null;
}
