/** When the events were, and what they were: a lane of dots per action. */

import { Chart, cssColor } from "../shell/chart.js";
import { formatCount, formatInstant, pluralize } from "../shell/format.js";
import { byId, element, itemName } from "../shell/html.js";
import { seriesStyles, styleColor, SYMBOL_CHARACTERS } from "../widgets/series.js";
import { queryTimeLine, timeAxis } from "./time_axis.js";

const LANE_PIXELS = 22;
const MARGIN = { l: 56, r: 14, t: 4, b: 4 };
const DOT = { gap: 8, least: 7, growth: 1.7, most: 17 };
const NAMED_IN_A_TIP = 5;
const NO_ACTION = "no action told";

export class Timeline {
  #place = byId("timeline");
  #chart = new Chart(byId("timeline"));
  #legend = byId("timeline-legend");
  #shown = null;
  #dots = [];

  /** Draw `{events, items, queryTime, span, scale}`, the events as `weightedHistory` gives them. */
  show(shown) {
    this.#shown = shown;
    const actions = [...new Set(shown.events.map(actionOf))].sort();
    const styles = seriesStyles(actions);
    this.#explain(actions, styles);
    const height = `${Math.max(actions.length, 1) * LANE_PIXELS + MARGIN.t + MARGIN.b}px`;
    if (this.#place.style.height !== height) this.#place.style.setProperty("height", height);
    return this.#chart.draw(
      ({ width }) => this.#picture(actions, styles, width),
      ({ curveNumber, pointNumber }) => this.#tip(this.#dots[curveNumber][pointNumber]),
    );
  }

  #picture(actions, styles, width) {
    const { events, queryTime } = this.#shown;
    const axis = timeAxis(this.#shown, width);
    const visible = events.filter((event) => axis.shows(event));
    this.#dots = actions.map((action) =>
      dotsOf(visible.filter((event) => actionOf(event) === action), axis),
    );
    return {
      traces: this.#dots.map((dots, lane) => trace(dots, lane, styles.get(actions[lane]))),
      layout: {
        margin: MARGIN,
        shapes: axis.queryTime === null ? [] : queryTimeLine(queryTime),
        xaxis: {
          type: axis.layout.type,
          range: axis.range,
          showticklabels: false,
          ticks: "",
          showline: false,
          automargin: false,
        },
        yaxis: {
          range: [Math.max(actions.length, 1) - 0.5, -0.5],
          showticklabels: false,
          showgrid: false,
          automargin: false,
        },
      },
    };
  }

  #explain(actions, styles) {
    const { events } = this.#shown;
    const names = actions.map((action) => {
      const { token, symbol } = styles.get(action);
      const swatch = element("span", { class: "swatch", "aria-hidden": "true" }, SYMBOL_CHARACTERS[symbol]);
      swatch.style.setProperty("color", `var(${token})`);
      const number = events.filter((event) => actionOf(event) === action).length;
      return element("li", {}, swatch, ` ${action} `, element("span", { class: "note" }, formatCount(number)));
    });
    this.#legend.replaceChildren(...names);
    byId("timeline-summary").textContent = inWords(events, actions);
  }

  #tip(dot) {
    const { events } = dot;
    if (events.length === 1) return [...this.#named(events[0]), ...when(events), PARTS[dot.part]];
    const named = events.slice(0, NAMED_IN_A_TIP).map((event) => this.#named(event)[0]);
    const rest = events.length - named.length;
    return [
      pluralize(events.length, "event"),
      ...when(events),
      PARTS[dot.part],
      ...named,
      ...(rest > 0 ? [`and ${rest} more`] : []),
    ];
  }

  #named({ itemId, action }) {
    const item = this.#shown.items.get(itemId);
    const kind = item?.categories.join(", ");
    return [itemName(item?.title, itemId), ...(kind ? [kind] : []), action ?? NO_ACTION];
  }
}

const PARTS = {
  read: "read by the model",
  unread: "not read by the model",
  later: "after the query time",
};

const actionOf = (event) => event.action ?? NO_ACTION;

const when = (events) => {
  const [first, last] = [events[0], events.at(-1)].map(({ at }) => formatInstant(at));
  return [first === last ? `${first} UTC` : `${first} to ${last} UTC`];
};

/** Events too close to be told apart share a dot, unless the model treated them differently. */
function dotsOf(events, { place, pixel }) {
  const dots = [];
  for (const event of events) {
    const x = place(event);
    const last = dots.at(-1);
    if (last && last.part === event.part && x - last.x < DOT.gap * pixel) last.events.push(event);
    else dots.push({ x, part: event.part, events: [event] });
  }
  return dots;
}

function trace(dots, lane, style) {
  const css = styleColor(style);
  return {
    type: "scatter",
    mode: "markers",
    x: dots.map((dot) => dot.x),
    y: dots.map(() => lane),
    customdata: dots.map((dot) => dot.events.length),
    cliponaxis: false,
    marker: {
      // Hollow: the model could not know of it yet. Pale: it did not read it.
      symbol: dots.map((dot) => (dot.part === "later" ? `${style.symbol}-open` : style.symbol)),
      size: dots.map(({ events }) => Math.min(DOT.most, DOT.least + DOT.growth * Math.log2(events.length))),
      color: css,
      opacity: dots.map((dot) => (dot.part === "unread" ? 0.4 : 0.9)),
      line: { color: dots.map((dot) => (dot.part === "later" ? css : cssColor("--card"))), width: 1 },
    },
  };
}

function inWords(events, actions) {
  if (events.length === 0) return "No events.";
  const [first, last] = [events[0], events.at(-1)].map(({ at }) => formatInstant(at));
  return (
    `${pluralize(events.length, "event")} of ${pluralize(actions.length, "action")} from ${first} to ${last} UTC. ` +
    "Filled: read by the model; pale: not read; hollow: after the query time."
  );
}
