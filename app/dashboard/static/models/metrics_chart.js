/** One metric of a version, given and withheld the query time, beside other rankings. */

import { Chart, cssColor } from "../shell/chart.js";
import { formatMetric, pluralize } from "../shell/format.js";
import { byId } from "../shell/html.js";
import { showAsTable } from "../shell/tables.js";
import { referenceName, testMetrics } from "./metrics.js";
import { fitRows, rowAxis, showOrSay } from "./rows.js";

const GIVEN = "Given the query time";
const WITHHELD = "Withheld";

export class MetricsChart {
  #place = byId("metrics-chart");
  #chart = new Chart(this.#place);

  /** Draw `metric` of a description's manifest, all others in the table below. */
  async show(description, metric) {
    const { questions, metrics } = testMetrics(description.manifest.metrics);
    const summary = byId("metrics-summary");
    const told = metrics.get(metric) ?? null;
    const why =
      metrics.size === 0
        ? "Its manifest holds no test metrics; kairos train measures a model before it is published."
        : told === null
          ? `Its manifest does not tell ${metric}.`
          : null;
    byId("metrics-table").hidden = metrics.size === 0;
    if (metrics.size > 0) this.#tabulate(metrics);
    if (!showOrSay(this.#place, summary, why)) return;
    const rows = rowsOf(told);
    const on = questions === null ? "its test questions" : pluralize(questions, "test question");
    summary.textContent = `${metric} on ${on}, all the same for every row: ${inWords(rows)}.`;
    fitRows(this.#place, rows.length);
    await this.#chart.draw(() => picture(rows, metric), ({ pointNumber }) => [
      rows[pointNumber].name,
      `${metric} ${formatMetric(rows[pointNumber].value)}`,
    ]);
  }

  #tabulate(metrics) {
    const named = [...metrics.values()].flatMap(({ references }) => references.map(([name]) => name));
    const references = [...new Set(named)];
    showAsTable(byId("metrics-table"), {
      caption: "Test metrics",
      columns: ["Metric", "Given", "Withheld", ...references.map(referenceName)],
      rows: [...metrics].map(([name, one]) => [
        name,
        formatMetric(one.given),
        formatMetric(one.withheld),
        ...references.map((reference) => formatMetric(new Map(one.references).get(reference))),
      ]),
    });
  }
}

function rowsOf({ given, withheld, references }) {
  const own = [
    { name: GIVEN, value: given, color: "--series-1" },
    { name: WITHHELD, value: withheld, color: "--series-2" },
  ];
  const others = references.map(([name, value]) => ({
    name: referenceName(name),
    value,
    color: "--faint",
  }));
  others.sort((one, other) => other.value - one.value);
  return [...own, ...others].filter((row) => row.value !== null);
}

const inWords = (rows) => rows.map((row) => `${row.name.toLowerCase()} ${formatMetric(row.value)}`).join(", ");

function picture(rows, metric) {
  const values = rows.map((row) => row.value);
  return {
    traces: [
      {
        type: "bar",
        orientation: "h",
        x: values,
        y: rows.map((_, row) => row),
        text: values.map(formatMetric),
        textposition: "outside",
        cliponaxis: false,
        width: 0.62,
        marker: { color: rows.map((row) => cssColor(row.color)) },
      },
    ],
    layout: {
      margin: { l: 20, r: 20, t: 8, b: 46 },
      xaxis: { title: { text: metric }, range: [0, Math.max(...values, 1e-9) * 1.2], nticks: 5 },
      yaxis: rowAxis(rows.map((row) => row.name)),
    },
  };
}
