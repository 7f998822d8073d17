/** What attention did: the weights of events before and after, two bars for each. */

import { Chart, cssColor, escapeText } from "../shell/chart.js";
import { formatDay, formatPercent, pluralize } from "../shell/format.js";
import { byId } from "../shell/html.js";
import { showAsTable } from "../shell/tables.js";
import { isEdited } from "./events_table.js";
import { inMilliseconds } from "./exact_instants.js";
import { shortened } from "./labels.js";
import { PARTS, when } from "./remarks.js";

const MOST = 16;
const ROW_PIXELS = 30;

export class WeightsChart {
  #place = byId("weights");
  #chart = new Chart(this.#place);

  /**
   * Draw the most weighted of rows as `weightedRows` has them, and all that were edited; newest on
   * top. Answers when the picture is there.
   */
  show(rows, titles) {
    const weighted = rows.filter((row) => weightOf(row.before) !== null || weightOf(row.after) !== null);
    byId("weights-figure").hidden = weighted.length === 0;
    byId("no-weights").hidden = weighted.length > 0;
    if (weighted.length === 0) return Promise.resolve();
    const drawn = chosen(weighted).map((row) => ({ ...row, name: titles.get(row.itemId) || row.itemId }));
    this.#place.style.setProperty("height", `${drawn.length * ROW_PIXELS + 66}px`);
    byId("weights-summary").textContent = summary(weighted, drawn);
    showAsTable(byId("weights-table"), {
      caption: "Weights before and after",
      columns: ["Event", "When", "Before", "After"],
      rows: drawn.map((row) => [
        row.name,
        when((row.after ?? row.before).at),
        inWords(row.before, "not there"),
        inWords(row.after, "removed"),
      ]),
    });
    return this.#chart.draw((size) => picture(drawn, size), (point) => tip(drawn, point));
  }
}

const weightOf = (side) => side?.weight ?? null;
const larger = (row) => Math.max(weightOf(row.before) ?? 0, weightOf(row.after) ?? 0);
const instantOf = (row) => inMilliseconds((row.after ?? row.before).at);

function chosen(rows) {
  const heaviest = [...rows].sort((one, other) => larger(other) - larger(one)).slice(0, MOST);
  const both = new Set([...heaviest, ...rows.filter(isEdited).slice(0, MOST)]);
  return [...both].sort((one, other) => instantOf(other) - instantOf(one));
}

function summary(weighted, drawn) {
  const sum = (rows, side) => rows.reduce((total, row) => total + (weightOf(row[side]) ?? 0), 0);
  const rest = weighted.filter((row) => !drawn.some(({ key }) => key === row.key));
  const largest = weighted.reduce((one, other) => (change(other) > change(one) ? other : one));
  const moved =
    change(largest) < 0.00005
      ? "No weight changed."
      : `The weight that changed most: ${drawn.find(({ key }) => key === largest.key)?.name ?? largest.itemId}, ` +
        `${inWords(largest.before, "not there")} before, ${inWords(largest.after, "removed")} after.`;
  const others =
    rest.length === 0
      ? ""
      : ` ${pluralize(rest.length, "other event")} together: ${formatPercent(sum(rest, "before"))} before, ` +
        `${formatPercent(sum(rest, "after"))} after.`;
  return moved + others;
}

const change = (row) => Math.abs((weightOf(row.after) ?? 0) - (weightOf(row.before) ?? 0));

const inWords = (side, absent) =>
  side === null ? absent : side.weight === null ? (PARTS[side.part] ?? "–") : formatPercent(side.weight);

function picture(rows, { width }) {
  const places = rows.map((_, place) => place);
  const bars = (side, marker) => ({
    type: "bar",
    orientation: "h",
    x: rows.map((row) => weightOf(row[side]) ?? 0),
    y: places,
    marker,
  });
  const hatched = {
    color: cssColor("--card"),
    line: { color: cssColor("--query-time"), width: 1 },
    pattern: { shape: "/", size: 5, fgcolor: cssColor("--query-time"), bgcolor: cssColor("--card") },
  };
  return {
    traces: [
      bars("before", hatched),
      bars("after", { color: cssColor("--bar"), line: { color: cssColor("--bar"), width: 1 } }),
    ],
    layout: {
      barmode: "group",
      bargap: 0.3,
      margin: { l: 10, r: 14, t: 6, b: 42 },
      xaxis: { title: { text: "weight" }, tickformat: ".1~%", showgrid: true, rangemode: "tozero" },
      yaxis: {
        tickvals: places,
        ticktext: rows.map((row) => label(row, width)),
        range: [rows.length - 0.5, -0.5],
        ticks: "",
      },
    },
  };
}

const label = (row, width) => `${escapeText(shortened(row.name, width * 0.8))}<br>${formatDay(instantOf(row))}`;

function tip(rows, { pointNumber }) {
  const row = rows[pointNumber];
  return [
    row.name,
    when((row.after ?? row.before).at),
    `before ${inWords(row.before, "not there")}`,
    `after ${inWords(row.after, "removed")}`,
  ];
}
