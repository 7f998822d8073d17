/** Every item's score before and after: two marks on a line of its own. */

import { Chart, cssColor, escapeText } from "../shell/chart.js";
import { byId } from "../shell/html.js";
import { showAsTable } from "../shell/tables.js";
import { signed } from "./items_table.js";
import { shortened } from "./labels.js";

const MOST = 40;
const ROW_PIXELS = 24;

export class ScoreChart {
  #place = byId("scores");
  #chart = new Chart(this.#place);

  /** Draw items as `comparedItems` has them; answers when the picture is there. */
  show(items) {
    const drawn = items.filter(({ difference }) => difference !== null).slice(0, MOST);
    byId("scores-figure").hidden = drawn.length === 0;
    byId("no-scores").hidden = drawn.length > 0;
    if (drawn.length === 0) return Promise.resolve();
    this.#place.style.setProperty("height", `${drawn.length * ROW_PIXELS + 66}px`);
    byId("scores-cut").textContent =
      drawn.length < items.length ? ` The first ${drawn.length} of ${items.length} items.` : "";
    showAsTable(byId("scores-table"), {
      caption: "Scores before and after",
      columns: ["Item", "Before", "After", "Change"],
      rows: drawn.map((item) => [
        item.title || item.itemId,
        item.before.score.toFixed(3),
        item.after.score.toFixed(3),
        signed(item.difference),
      ]),
    });
    return this.#chart.draw((size) => picture(drawn, size), (point) => tip(drawn, point));
  }
}

function picture(items, { width }) {
  const places = items.map((_, place) => place);
  const marks = (side, marker) => ({
    type: "scatter",
    mode: "markers",
    x: items.map((item) => item[side].score),
    y: places,
    marker,
  });
  const lines = {
    type: "scatter",
    mode: "lines",
    hoverinfo: "skip",
    x: items.flatMap((item) => [item.before.score, item.after.score, null]),
    y: places.flatMap((place) => [place, place, null]),
    line: { color: cssColor("--faint"), width: 2 },
  };
  return {
    traces: [
      lines,
      marks("before", { symbol: "circle-open", size: 10, color: cssColor("--query-time"), line: { width: 2 } }),
      marks("after", { symbol: "diamond", size: 9, color: cssColor("--bar") }),
    ],
    layout: {
      margin: { l: 10, r: 14, t: 6, b: 42 },
      xaxis: { title: { text: "score" }, showgrid: true },
      yaxis: {
        tickvals: places,
        ticktext: items.map((item) => escapeText(shortened(item.title || item.itemId, width))),
        range: [items.length - 0.4, -0.6],
        ticks: "",
      },
    },
  };
}

function tip(items, { pointNumber }) {
  const item = items[pointNumber];
  if (!item) return null;
  return [
    item.title || item.itemId,
    `before ${item.before.score.toFixed(3)}, after ${item.after.score.toFixed(3)}`,
    `change ${signed(item.difference)}`,
  ];
}
