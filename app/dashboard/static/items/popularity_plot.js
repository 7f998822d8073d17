/** How often an item was chosen over time: bars, one part for each action. */

import { Chart, cssColor, escapeText, seriesToken, withOpacity } from "../shell/chart.js";
import { DAY, formatCount, formatDay, pluralize } from "../shell/format.js";
import { byId, element } from "../shell/html.js";
import { showAsTable } from "../shell/tables.js";

/** Hatchings, so that colour does not tell actions apart alone. Seven and eight share no divisor. */
const PATTERNS = ["", "/", "\\", "x", "-", "|", "."];
const BAR_SHARE = 0.92;
const OTHERS = "other actions";

export class PopularityPlot {
  #chart = new Chart(byId("popularity-plot"));

  /**
   * Draw an answer of `GET /v1/items/{id}/popularity`, with the span of the events that a version was
   * trained on: `{first_at, last_at}` or null.
   */
  async show(answer, window, version) {
    if (answer.counts.length === 0) {
      this.showNone("No event of this item is stored; those that come in at /v1/events are counted here.");
      return;
    }
    byId("popularity-missing").hidden = true;
    byId("popularity-shown").hidden = false;
    const buckets = answer.counts.map((bucket, place) => ({
      start: Date.parse(bucket.start),
      end: endOf(answer, place),
      events: bucket.events,
    }));
    const parts = partsOf(answer);
    const trained = window && { first: Date.parse(window.first_at), last: Date.parse(window.last_at) };
    byId("actions").replaceChildren(...parts.map((part, place) => entry(part, place)));
    byId("popularity-summary").textContent = summary(answer, buckets, trained, version);
    showAsTable(byId("popularity-table"), {
      caption: `Events of the item by ${answer.step}`,
      columns: [`${answer.step} from`, "events", ...parts.map(({ name }) => name)],
      rows: buckets.map(({ start, events }, place) => [
        element("span", {}, formatDay(start)),
        events,
        ...parts.map((part) => part.events[place]),
      ]),
    });
    await this.#chart.draw(
      () => ({
        traces: parts.map((part, place) => bars(part, place, buckets)),
        layout: layout(buckets, trained),
      }),
      ({ curveNumber, pointNumber }) => {
        const { name, events } = parts[curveNumber];
        const { start, events: all } = buckets[pointNumber];
        const whole = parts.length > 1 ? [`of ${pluralize(all, "event")}`] : [];
        return [`${answer.step} from ${formatDay(start)}`, `${name}: ${formatCount(events[pointNumber])}`, ...whole];
      },
    );
  }

  /** Say why there is nothing to draw. */
  showNone(why) {
    byId("popularity-missing").textContent = why;
    byId("popularity-missing").hidden = false;
    byId("popularity-shown").hidden = true;
  }
}

/** Events by action, `{name, events}`; what the answer does not tell apart comes last. */
function partsOf({ counts, actions }) {
  const parts = Object.entries(actions).map(([name, events]) => ({ name, events }));
  const rest = counts.map(({ events }, place) =>
    parts.reduce((left, part) => left - part.events[place], events),
  );
  return rest.some((events) => events > 0) ? [...parts, { name: OTHERS, events: rest }] : parts;
}

/** When a bucket ends, which is when the next one begins. */
function endOf({ counts, step }, place) {
  if (place + 1 < counts.length) return Date.parse(counts[place + 1].start);
  const start = new Date(counts[place].start);
  if (step === "month") return Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1, 1);
  return start.getTime() + (step === "week" ? 7 * DAY : DAY);
}

function bars({ name, events }, place, buckets) {
  return {
    type: "bar",
    name: escapeText(name),
    x: buckets.map(({ start }) => start),
    y: events,
    offset: 0,
    width: buckets.map(({ start, end }) => (end - start) * BAR_SHARE),
    marker: {
      color: cssColor(seriesToken(place)),
      pattern: {
        shape: PATTERNS[place % PATTERNS.length],
        fillmode: "overlay",
        fgcolor: cssColor("--card"),
        size: 6,
      },
    },
  };
}

function layout(buckets, trained) {
  const first = Math.min(buckets[0].start, trained?.first ?? Infinity);
  const last = Math.max(buckets.at(-1).end, trained?.last ?? -Infinity);
  const room = (last - first) * 0.01;
  return {
    barmode: "stack",
    xaxis: { type: "date", range: [first - room, last + room], title: { text: "when (UTC)" } },
    yaxis: { title: { text: "events" }, rangemode: "tozero" },
    ...(trained && windowMark(trained)),
  };
}

function windowMark({ first, last }) {
  const edge = { type: "line", yref: "paper", y0: 0, y1: 1, line: { color: cssColor("--faint"), dash: "dot" } };
  return {
    shapes: [
      {
        type: "rect",
        layer: "below",
        yref: "paper",
        x0: first,
        x1: last,
        y0: 0,
        y1: 1,
        line: { width: 0 },
        fillcolor: withOpacity(cssColor("--accent"), 0.08),
      },
      { ...edge, x0: first, x1: first },
      { ...edge, x0: last, x1: last },
    ],
  };
}

function entry({ name }, place) {
  const swatch = element("span", { class: "swatch", "aria-hidden": "true" });
  swatch.dataset.pattern = PATTERNS[place % PATTERNS.length];
  swatch.style.setProperty("--swatch", `var(${seriesToken(place)})`);
  return element("li", {}, swatch, name);
}

function summary({ step, events, first_at: first, last_at: last }, buckets, trained, version) {
  const busiest = buckets.reduce((one, other) => (other.events > one.events ? other : one));
  const shading = trained
    ? ` Shaded, between dotted lines: the events that ${version} was trained on, from ` +
      `${formatDay(trained.first)} to ${formatDay(trained.last)}; what came later it has not seen.`
    : "";
  return (
    `${pluralize(events, "stored event")}, from ${formatDay(Date.parse(first))} to ` +
    `${formatDay(Date.parse(last))}. Most in the ${step} from ${formatDay(busiest.start)}: ` +
    `${formatCount(busiest.events)}.${shading}`
  );
}
