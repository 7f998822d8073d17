/** From when to when versions' training events are, beside each other. */

import { Chart, cssColor } from "../shell/chart.js";
import { DAY, formatCount, formatDay, formatInstant } from "../shell/format.js";
import { byId } from "../shell/html.js";
import { showAsTable } from "../shell/tables.js";
import { shortName } from "./roles.js";
import { fitRows, rowAxis, showOrSay } from "./rows.js";

const MOST_ROWS = 12;
const PIXELS_PER_DATE = 100;

export class WindowsChart {
  #place = byId("windows-chart");
  #chart = new Chart(this.#place);

  /** Draw the windows of the newest versions, the chosen one among them. */
  async show(models, chosen) {
    const told = models
      .filter((model) => model.data_window !== null)
      .filter((model, place) => place < MOST_ROWS || model.version === chosen)
      .map(({ version, data_window: window }) => ({
        version,
        isChosen: version === chosen,
        first: Date.parse(window.first_at),
        last: Date.parse(window.last_at),
      }));
    const own = told.find((row) => row.isChosen);
    const summary = byId("windows-summary");
    const why = own === undefined ? "Its manifest tells no data window." : null;
    byId("windows-table").hidden = why !== null;
    if (!showOrSay(this.#place, summary, why)) return;
    summary.textContent =
      `From ${formatInstant(own.first)} to ${formatInstant(own.last)} UTC, ${days(own)} days; ` +
      "the stronger bar is this version's, the others are those of the newest versions.";
    showAsTable(byId("windows-table"), {
      caption: "Data windows of versions",
      columns: ["Version", "First event (UTC)", "Last event (UTC)", "Days"],
      rows: told.map((row) => [row.version, formatInstant(row.first), formatInstant(row.last), days(row)]),
    });
    fitRows(this.#place, told.length);
    await this.#chart.draw(({ width }) => picture(told, width), ({ pointNumber }) => {
      const row = told[pointNumber];
      return [row.version, `${formatDay(row.first)} to ${formatDay(row.last)}`, `${days(row)} days`];
    });
  }
}

const days = ({ first, last }) => formatCount((last - first) / DAY);

function picture(rows, width) {
  return {
    traces: [
      {
        type: "bar",
        orientation: "h",
        base: rows.map((row) => row.first),
        x: rows.map((row) => row.last - row.first),
        y: rows.map((_, row) => row),
        width: 0.5,
        marker: { color: rows.map((row) => cssColor(row.isChosen ? "--bar" : "--faint")) },
      },
    ],
    layout: {
      margin: { l: 20, r: 20, t: 8, b: 46 },
      xaxis: {
        type: "date",
        title: { text: "when (UTC)" },
        nticks: Math.max(3, Math.round(width / PIXELS_PER_DATE)),
      },
      yaxis: rowAxis(rows.map((row) => `${row.isChosen ? "▸ " : ""}${shortName(row.version)}`)),
    },
  };
}
