// @ts-check
/** The Popularity card: the stored events of an item over time, a bar per period, split by action. */

import { Chart, cssColor, escapeText, withOpacity } from "../shell/chart.js";
import { actionStyle } from "../shell/colors.js";
import { DAY, formatCount, formatDay, pluralize } from "../shell/format.js";
import { byId, html, render } from "../shell/html.js";
import { showAsTable } from "../shell/tables.js";

const BAR_SHARE = 0.92;

/**
 * @typedef {{name: string, events: number[]}} Series the events of an action, by period
 * @typedef {{start: number, end: number, events: number}} Period milliseconds, and all its events
 * @typedef {{first: number, last: number}} TrainingWindow milliseconds
 */

export class PopularityCard {
  chart = new Chart(byId("popularity-plot"));

  /**
   * Draws the response of `GET /v1/items/{id}/popularity`.
   *
   * @param {any} response
   * @param {{first_at: string, last_at: string} | null} dataWindow what the version was trained on
   * @param {string | null} version
   */
  async show(response, dataWindow, version) {
    if (response.counts.length === 0) {
      this.showMissing("No event of this item is stored; send events to /v1/events.");
      return;
    }
    byId("popularity-missing").hidden = true;
    byId("popularity-shown").hidden = false;
    /** @type {Period[]} */
    const periods = response.counts.map((bucket, index) => ({
      start: Date.parse(bucket.start),
      end: periodEnd(response, index),
      events: bucket.events,
    }));
    const series = splitByAction(response);
    const trained = dataWindow && {
      first: Date.parse(dataWindow.first_at),
      last: Date.parse(dataWindow.last_at),
    };
    showLegend(series);
    byId("popularity-summary").textContent = summarize(response, periods, trained, version);
    showAsTable(byId("popularity-table"), {
      caption: `Events of the item by ${response.step}`,
      columns: [`${response.step} from`, "events", ...series.map(({ name }) => name)],
      rows: periods.map(({ start, events }, index) => [
        html`<span>${formatDay(start)}</span>`,
        events,
        ...series.map((one) => one.events[index]),
      ]),
    });
    await this.chart.draw(
      () => ({
        traces: series.map((one) => barTrace(one, periods)),
        layout: layout(periods, trained),
      }),
      ({ curveNumber, pointNumber }) => {
        const { name, events } = series[curveNumber];
        const { start, events: all } = periods[pointNumber];
        return [
          `${response.step} from ${formatDay(start)}`,
          `${name}: ${formatCount(events[pointNumber])}`,
          ...(series.length > 1 ? [`of ${pluralize(all, "event")}`] : []),
        ];
      },
    );
  }

  /** Shows why there is no chart. */
  showMissing(why) {
    render(why, byId("popularity-missing"));
    byId("popularity-missing").hidden = false;
    byId("popularity-shown").hidden = true;
  }
}

/**
 * Events by action; actions that the response does not list separately come last.
 *
 * @returns {Series[]}
 */
function splitByAction({ counts, actions }) {
  const series = Object.entries(actions).map(([name, events]) => ({ name, events }));
  const rest = counts.map(({ events }, index) =>
    series.reduce((left, one) => left - one.events[index], events),
  );
  return rest.some((events) => events > 0) ? [...series, { name: "other actions", events: rest }] : series;
}

/** The end of a period, in milliseconds: the start of the next one. */
function periodEnd({ counts, step }, index) {
  if (index + 1 < counts.length) return Date.parse(counts[index + 1].start);
  const start = new Date(counts[index].start);
  if (step === "month") return Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1, 1);
  return start.getTime() + (step === "week" ? 7 * DAY : DAY);
}

/**
 * @param {Series} series
 * @param {Period[]} periods
 */
function barTrace({ name, events }, periods) {
  const { token, pattern } = actionStyle(name);
  return {
    type: "bar",
    name: escapeText(name),
    x: periods.map(({ start }) => start),
    y: events,
    offset: 0,
    width: periods.map(({ start, end }) => (end - start) * BAR_SHARE),
    marker: {
      color: cssColor(token),
      pattern: {
        shape: pattern,
        fillmode: "overlay",
        fgcolor: cssColor("--card"),
        size: 6,
      },
    },
  };
}

/**
 * @param {Period[]} periods
 * @param {TrainingWindow | null} trained
 */
function layout(periods, trained) {
  const first = Math.min(periods[0].start, trained?.first ?? Infinity);
  const last = Math.max(periods[periods.length - 1].end, trained?.last ?? -Infinity);
  const margin = (last - first) * 0.01;
  return {
    barmode: "stack",
    xaxis: { type: "date", range: [first - margin, last + margin], title: { text: "when (UTC)" } },
    yaxis: { title: { text: "events" }, rangemode: "tozero" },
    shapes: trained ? shadedWindow(trained) : [],
  };
}

/** @param {TrainingWindow} window */
function shadedWindow({ first, last }) {
  const height = { yref: "paper", y0: 0, y1: 1 };
  const edge = { ...height, type: "line", line: { color: cssColor("--faint"), dash: "dot" } };
  return [
    {
      ...height,
      type: "rect",
      layer: "below",
      x0: first,
      x1: last,
      line: { width: 0 },
      fillcolor: withOpacity(cssColor("--accent"), 0.08),
    },
    { ...edge, x0: first, x1: first },
    { ...edge, x0: last, x1: last },
  ];
}

/** @param {Series[]} series */
function showLegend(series) {
  const container = byId("actions");
  render(
    series.map(
      ({ name }) => html`<li><span class="swatch" aria-hidden="true"
        data-pattern=${actionStyle(name).pattern}></span>${name}</li>`,
    ),
    container,
  );
  for (const [index, swatch] of container.querySelectorAll(".swatch").entries()) {
    swatch.style.setProperty("--swatch", `var(${actionStyle(series[index].name).token})`);
  }
}

const IMPLAUSIBLE = " Events from before 1990 or from the future are not counted.";

/**
 * @param {any} response
 * @param {Period[]} periods
 * @param {TrainingWindow | null} trained
 * @param {string | null} version
 */
function summarize(response, periods, trained, version) {
  const { step, events, first_at: first, last_at: last, is_complete: isComplete, warnings } = response;
  const busiest = periods.reduce((one, other) => (other.events > one.events ? other : one));
  const shading = trained
    ? ` Shaded, between dotted lines: the events that ${version} was trained on, from ` +
      `${formatDay(trained.first)} to ${formatDay(trained.last)}.`
    : "";
  return (
    `${isComplete ? "" : "The newest "}${pluralize(events, "stored event")}, from ${formatDay(Date.parse(first))} to ` +
    `${formatDay(Date.parse(last))}. Most in the ${step} from ${formatDay(busiest.start)}: ` +
    `${formatCount(busiest.events)}.${warnings.includes("implausible_times") ? IMPLAUSIBLE : ""}${shading}`
  );
}
