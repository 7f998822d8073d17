/** How training went: loss and validation metric, epoch by epoch. */

import { Chart, cssColor, escapeText } from "../shell/chart.js";
import { formatMetric, pluralize } from "../shell/format.js";
import { byId } from "../shell/html.js";
import { showAsTable } from "../shell/tables.js";
import { showOrSay } from "./rows.js";

export class TrainingChart {
  #place = byId("training-chart");
  #chart = new Chart(this.#place);

  /** Draw the epochs of a description, or say why it has none. */
  async show({ epochs, missing, manifest }) {
    const summary = byId("training-summary");
    const why = missing.find((one) => one.part === "epochs")?.why;
    byId("training-table").hidden = !epochs?.length;
    if (!showOrSay(this.#place, summary, epochs?.length ? null : `${sentence(why)}.`)) return;
    const { provenance } = manifest;
    const measured = [...new Set(epochs.flatMap((epoch) => Object.keys(epoch.validation)))];
    const monitor = provenance.recipe?.fit?.monitor;
    const metric = measured.includes(monitor) ? monitor : (measured[0] ?? null);
    const best = epochs.some((epoch) => epoch.epoch === provenance.best_epoch)
      ? provenance.best_epoch
      : null;
    summary.textContent = inWords(epochs, metric, best);
    tabulate(epochs, measured);
    await this.#chart.draw(() => picture(epochs, metric, best), ({ pointNumber }) =>
      told(epochs[pointNumber]),
    );
  }
}

const sentence = (why) => `No training curves: ${why ?? "the service tells no epochs of it"}`;

function told({ epoch, loss, validation, seconds }) {
  const metrics = Object.entries(validation).map(([name, value]) => `${name} ${formatMetric(value)}`);
  return [`epoch ${epoch}`, `loss ${formatMetric(loss)}`, ...metrics, `${seconds.toFixed(1)} s`];
}

function inWords(epochs, metric, best) {
  const [first, last] = [epochs[0], epochs.at(-1)];
  const parts = [
    `${pluralize(epochs.length, "epoch")}: loss from ${formatMetric(first.loss)} to ${formatMetric(last.loss)}`,
  ];
  const asked = epochs.filter((epoch) => metric !== null && metric in epoch.validation);
  if (asked.length > 0) {
    const [from, to] = [asked[0], asked.at(-1)].map((epoch) => formatMetric(epoch.validation[metric]));
    parts.push(`validation ${metric} from ${from} to ${to}`);
  }
  const kept = best === null ? "" : ` The weights of epoch ${best}, the best by validation, were kept.`;
  return `${parts.join(", ")}.${kept}`;
}

function tabulate(epochs, measured) {
  showAsTable(byId("training-table"), {
    caption: "Epochs of training",
    columns: ["Epoch", "Loss", ...measured.map((name) => `Validation ${name}`), "Seconds"],
    rows: epochs.map(({ epoch, loss, validation, seconds }) => [
      epoch,
      formatMetric(loss),
      ...measured.map((name) => formatMetric(validation[name])),
      seconds.toFixed(1),
    ]),
  });
}

function picture(epochs, metric, best) {
  const x = epochs.map((epoch) => epoch.epoch);
  const line = (y, name) => ({
    type: "scatter",
    mode: "lines+markers",
    x,
    y,
    line: { color: cssColor(name), width: 2 },
    marker: { color: cssColor(name), size: 6 },
  });
  const traces = [line(epochs.map((epoch) => epoch.loss), "--series-1")];
  if (metric !== null) {
    const values = epochs.map((epoch) => epoch.validation[metric] ?? null);
    traces.push({ ...line(values, "--series-2"), yaxis: "y2", connectgaps: true });
  }
  const isAlone = metric === null;
  return {
    traces,
    layout: {
      margin: { l: 20, r: 14, t: 22, b: 46 },
      xaxis: {
        title: { text: "epoch" },
        range: [x[0] - 0.5, x.at(-1) + 0.5],
        // Whole epochs alone.
        ...(x.length < 12 ? { tickvals: x } : { nticks: 8 }),
        anchor: isAlone ? "y" : "y2",
      },
      yaxis: { title: { text: "loss", standoff: 10 }, domain: isAlone ? [0, 1] : [0.56, 1] },
      ...(isAlone ? {} : { yaxis2: { title: { text: escapeText(metric), standoff: 10 }, domain: [0, 0.44] } }),
      ...(best === null ? {} : bestMark(best, best > (x[0] + x.at(-1)) / 2)),
    },
  };
}

function bestMark(best, isLate) {
  const line = { color: cssColor("--query-time"), width: 1.5, dash: "dot" };
  return {
    shapes: [{ type: "line", layer: "below", x0: best, x1: best, yref: "paper", y0: 0, y1: 1, line }],
    annotations: [
      {
        x: best,
        yref: "paper",
        y: 1,
        yanchor: "bottom",
        xanchor: isLate ? "right" : "left",
        text: `best epoch, ${best}`,
        showarrow: false,
        font: { color: cssColor("--query-time") },
      },
    ],
  };
}
