/** What came of the answers of each version. */

import { Chart, cssColor } from "../shell/chart.js";
import { formatCount, formatPercent, pluralize } from "../shell/format.js";
import { byId } from "../shell/html.js";
import { showAsTable } from "../shell/tables.js";
import { shortName } from "./roles.js";
import { fitRows, rowAxis, showOrSay } from "./rows.js";
import { wilson } from "./wilson.js";

const NONE = "no answers recorded";

export class ClicksChart {
  #place = byId("clicks-chart");
  #chart = new Chart(this.#place);

  /** Draw the click-through of those versions that are described, newest first. */
  async show(models, descriptions) {
    const rows = models
      .filter((model) => descriptions.get(model.version)?.clicks)
      .map(({ version }) => rowOf(version, descriptions.get(version).clicks));
    const summary = byId("clicks-summary");
    byId("clicks-table").hidden = rows.length === 0;
    if (!showOrSay(this.#place, summary, rows.length > 0 ? null : missingIn(descriptions))) return;
    summary.textContent =
      "The share of remembered answers from which an item was clicked, with its 95 % interval " +
      `(Wilson): ${rows.map(inWords).join("; ")}. Versions answered other users at other times: ` +
      "only a current version and its challenger at one time can be told apart by their clicks.";
    showAsTable(byId("clicks-table"), {
      caption: "Click-through by version",
      columns: ["Version", "Shown", "Clicked", "Rate", "95 % interval"],
      rows: rows.map((row) => [
        row.version,
        formatCount(row.shown),
        formatCount(row.clicked),
        row.rate === null ? NONE : formatPercent(row.rate),
        row.interval === null ? "–" : interval(row),
      ]),
    });
    fitRows(this.#place, rows.length);
    await this.#chart.draw(() => picture(rows), ({ pointNumber }) => told(rows[pointNumber]));
  }
}

function missingIn(descriptions) {
  const reasons = [...descriptions.values()]
    .flatMap((description) => description?.missing ?? [])
    .filter((one) => one.part === "clicks");
  return reasons.length > 0 ? `No clicks are told: ${reasons[0].why}.` : "No version is described yet.";
}

const rowOf = (version, { shown, clicked, rate }) => ({
  version,
  shown,
  clicked,
  rate,
  interval: shown > 0 ? wilson(clicked, shown) : null,
});

const interval = ({ interval: [from, to] }) => `${formatPercent(from)} to ${formatPercent(to)}`;

const inWords = (row) =>
  row.rate === null
    ? `${shortName(row.version)} ${NONE}`
    : `${shortName(row.version)} ${formatPercent(row.rate)} of ${pluralize(row.shown, "answer")} (${interval(row)})`;

const told = (row) =>
  row.rate === null
    ? [row.version, NONE]
    : [
        row.version,
        `${formatCount(row.clicked)} of ${pluralize(row.shown, "answer")} clicked`,
        `${formatPercent(row.rate)}, ${interval(row)}`,
      ];

function picture(rows) {
  const some = rows.map((row) => row.interval ?? [0, 0]);
  const highest = Math.max(...some.map(([, to]) => to), 0.01);
  return {
    traces: [
      {
        type: "bar",
        orientation: "h",
        x: rows.map((row) => row.rate ?? 0),
        y: rows.map((_, row) => row),
        width: 0.5,
        marker: { color: cssColor("--bar") },
        error_x: {
          type: "data",
          symmetric: false,
          array: rows.map((row, place) => some[place][1] - (row.rate ?? 0)),
          arrayminus: rows.map((row, place) => (row.rate ?? 0) - some[place][0]),
          color: cssColor("--text"),
          thickness: 1.5,
          width: 4,
        },
      },
    ],
    layout: {
      margin: { l: 20, r: 20, t: 8, b: 46 },
      xaxis: {
        title: { text: "clicked, share of answers" },
        tickformat: ".1~%",
        range: [0, Math.min(1, highest * 1.1)],
        nticks: 5,
      },
      yaxis: rowAxis(rows.map((row) => `${shortName(row.version)}, ${formatCount(row.shown)} shown`)),
      annotations: rows.flatMap((row, place) =>
        row.rate === null
          ? [{ x: 0, y: place, xanchor: "left", text: NONE, showarrow: false, xshift: 8 }]
          : [],
      ),
    },
  };
}
