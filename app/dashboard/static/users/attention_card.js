// @ts-check
/**
 * The card of attention weights: events as dots by action, their weights as bars. Also what charts
 * of other cards share with it: bars over time, the time axis, the text of an event.
 */

import { Chart, cssColor } from "../shell/chart.js";
import { formatCount, formatDuration, formatInstant, formatPercent, pluralize } from "../shell/format.js";
import { byId, html, itemName, render } from "../shell/html.js";
import { seriesStyles, styleColor, SYMBOL_CHARACTERS } from "../widgets/series.js";
import { calendarAxis, elapsedAxis } from "../widgets/time_axes.js";

const BARS_MARGIN = { l: 56, r: 14, t: 22, b: 46 };
const DOTS_MARGIN = { l: 56, r: 14, t: 4, b: 4 };
const LANE_PIXELS = 22;
const DOT = { gap: 8, least: 7, growth: 1.7, most: 17 };
const NAMED_IN_A_TIP = 5;
const NO_ACTION = "no action";
/** Bars closer than `least` are stacked; where there is room, they grow to `most`. */
const BAR_PIXELS = { least: 5, most: 14 };
const PARTS = {
  read: "read by the model",
  unread: "not read by the model",
  later: "after the query time",
};

/**
 * @typedef {object} ChartedHistory what the charts draw
 * @property {any[]} events as `weightedHistory` returns them
 * @property {import("./data.js").Items} items
 * @property {number} queryTime
 * @property {any} span of the query time's control
 * @property {"linear" | "log"} scale
 */

/** Weights of a history as bars over time. */
export class AttentionBars {
  #chart = new Chart(byId("plot"));
  /** @type {any} */
  #shown = null;
  /** @type {any} */
  #drawn = null;
  #highlighted = null;

  /**
   * Draws the bars, and describes them in `#plot-summary`.
   *
   * @param {ChartedHistory} shown
   * @param {any} answer
   * @param {number | null} head the number of a head, or null for the mean
   */
  show(shown, answer, head) {
    this.#shown = shown;
    this.#highlighted = null;
    byId("plot-summary").textContent = describeWeights(shown, answer, head);
    return this.#chart.draw(
      ({ width }) => this.#build(width),
      (point) => this.#describe(point),
    );
  }

  /** Highlights one event; null for none. */
  highlight(event) {
    if (event === this.#highlighted || this.#drawn === null) return;
    this.#highlighted = event;
    this.#chart.restyle({ "marker.color": [this.#colors()] }, [0]);
  }

  #build(width) {
    const { events } = this.#shown;
    const axis = timeAxis(this.#shown, width);
    const read = events.filter((event) => event.part === "read");
    const stacked = stackBars(read, axis);
    const rest = events.filter((event) => event.part !== "read" && axis.shows(event));
    this.#drawn = { bars: stacked.bars, rest };
    const isStacked = stacked.bars.some((bar) => bar.base > 0);
    const line = { color: cssColor("--card"), width: isStacked ? 0.5 : 0 };
    return {
      traces: [
        { ...barTrace(stacked), marker: { color: this.#colors(), line } },
        tickTrace(rest, axis.position),
      ],
      layout: barsLayout(axis, highestBar(stacked.bars)),
    };
  }

  #colors() {
    const [plain, highlighted] = [cssColor("--bar"), cssColor("--bar-pointed")];
    return this.#drawn.bars.map(({ event }) => (event === this.#highlighted ? highlighted : plain));
  }

  #describe({ curveNumber, pointNumber }) {
    const { bars, rest } = this.#drawn;
    const bar = curveNumber === 0 ? bars[pointNumber] : null;
    const event = bar?.event ?? rest[pointNumber];
    const lines = describeEvent(event, this.#shown.items);
    lines.push(bar ? `weight ${formatPercent(event.weight)}` : "not read by the model");
    if (bar?.stack.events > 1) {
      const { events, weight } = bar.stack;
      lines.push(`one of ${events} stacked here, together ${formatPercent(weight)}`);
    }
    return lines;
  }
}

/** Events without a weight, as ticks on the axis. */
function tickTrace(events, position) {
  return {
    type: "scatter",
    mode: "markers",
    x: events.map(position),
    y: events.map(() => 0),
    cliponaxis: false,
    marker: { symbol: "line-ns-open", size: 8, color: cssColor("--faint"), line: { width: 1 } },
  };
}

function barsLayout(axis, highest) {
  const queryTime =
    axis.queryTime === null
      ? {}
      : {
          shapes: queryTimeLine(axis.queryTime).map((line) => ({ ...line, layer: "below" })),
          annotations: queryTimeLabel(axis.queryTime, axis.range),
        };
  return {
    margin: BARS_MARGIN,
    xaxis: { ...axis.layout, range: axis.range, automargin: false },
    yaxis: {
      title: { text: "weight" },
      tickformat: ".1~%",
      range: [0, highest * 1.08],
      automargin: false,
    },
    ...queryTime,
  };
}

/** Which weights these are, and the most weighted event. */
function describeWeights({ events, items }, answer, head) {
  const read = events.filter((event) => event.part === "read");
  if (read.length === 0) return "No event was read at this instant, so there are no weights.";
  const heaviest = read.reduce((one, other) => (other.weight > one.weight ? other : one));
  const title = items.get(heaviest.itemId)?.title || heaviest.itemId;
  const which = head === null ? "averaged over heads" : `of head ${head}`;
  const sum = answer.attention.normalised ? ", summing to 100 %" : "";
  const ticks = read.length < events.length ? " Ticks on the axis are events without a weight." : "";
  return (
    `Weights of the last block at the query position, ${which}, over the ` +
    `${pluralize(read.length, "event")} read${sum}. ` +
    `Largest weight: ${title}, ${formatPercent(heaviest.weight)}.${ticks}`
  );
}

/** When the events were: a row of dots per action. */
export class Timeline {
  #container = byId("timeline");
  #chart = new Chart(byId("timeline"));
  /** @type {any} */
  #shown = null;
  #dots = [];

  /** @param {ChartedHistory} shown */
  show(shown) {
    this.#shown = shown;
    const actions = [...new Set(shown.events.map(actionOf))].sort();
    const styles = seriesStyles(actions);
    this.#showLegend(actions, styles);
    byId("timeline-summary").textContent = describeEvents(shown.events, actions);
    const height = `${Math.max(actions.length, 1) * LANE_PIXELS + DOTS_MARGIN.t + DOTS_MARGIN.b}px`;
    if (this.#container.style.height !== height) {
      this.#container.style.setProperty("height", height);
    }
    return this.#chart.draw(
      ({ width }) => this.#build(actions, styles, width),
      ({ curveNumber, pointNumber }) => this.#describe(this.#dots[curveNumber][pointNumber]),
    );
  }

  #build(actions, styles, width) {
    const { events, queryTime } = this.#shown;
    const axis = timeAxis(this.#shown, width);
    const visible = events.filter((event) => axis.shows(event));
    this.#dots = actions.map((action) =>
      groupDots(visible.filter((event) => actionOf(event) === action), axis),
    );
    return {
      traces: this.#dots.map((dots, lane) => dotTrace(dots, lane, styles.get(actions[lane]))),
      layout: {
        margin: DOTS_MARGIN,
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

  #showLegend(actions, styles) {
    const row = (action) => {
      const { className, symbol } = styles.get(action);
      const number = this.#shown.events.filter((event) => actionOf(event) === action).length;
      return html`<li>
        <span class="swatch ${className}" aria-hidden="true">${SYMBOL_CHARACTERS[symbol]}</span>
        ${action} <span class="note">${formatCount(number)}</span>
      </li>`;
    };
    render(actions.map(row), byId("timeline-legend"));
  }

  #describe({ events, part }) {
    if (events.length === 1) {
      const [{ itemId, action }] = events;
      const kind = this.#shown.items.get(itemId)?.categories.join(", ");
      const lines = [this.#name(events[0]), kind, action ?? NO_ACTION];
      return [...lines, formatRange(events), PARTS[part]].filter(Boolean);
    }
    const named = events.slice(0, NAMED_IN_A_TIP).map((event) => this.#name(event));
    const rest = events.length - named.length;
    return [
      pluralize(events.length, "event"),
      formatRange(events),
      PARTS[part],
      ...named,
      ...(rest > 0 ? [`and ${rest} more`] : []),
    ];
  }

  #name({ itemId }) {
    return itemName(this.#shown.items.get(itemId)?.title, itemId);
  }
}

const actionOf = (event) => event.action ?? NO_ACTION;

function formatRange(events) {
  const [first, last] = [events[0], events.at(-1)].map(({ at }) => formatInstant(at));
  return first === last ? `${first} UTC` : `${first} to ${last} UTC`;
}

/** Events too close to distinguish share a dot, unless the model treated them differently. */
function groupDots(events, { position, pixel }) {
  const dots = [];
  for (const event of events) {
    const x = position(event);
    const last = dots.at(-1);
    if (last && last.part === event.part && x - last.x < DOT.gap * pixel) last.events.push(event);
    else dots.push({ x, part: event.part, events: [event] });
  }
  return dots;
}

function dotTrace(dots, lane, style) {
  const css = styleColor(style);
  const size = ({ events }) => Math.min(DOT.most, DOT.least + DOT.growth * Math.log2(events.length));
  return {
    type: "scatter",
    mode: "markers",
    x: dots.map((dot) => dot.x),
    y: dots.map(() => lane),
    customdata: dots.map((dot) => dot.events.length),
    cliponaxis: false,
    marker: {
      // Hollow: after the query time. Pale: not read.
      symbol: dots.map((dot) => (dot.part === "later" ? `${style.symbol}-open` : style.symbol)),
      size: dots.map(size),
      color: css,
      opacity: dots.map((dot) => (dot.part === "unread" ? 0.4 : 0.9)),
      line: { color: dots.map((dot) => (dot.part === "later" ? css : cssColor("--card"))), width: 1 },
    },
  };
}

function describeEvents(events, actions) {
  if (events.length === 0) return "No events.";
  const [first, last] = [events[0], events.at(-1)].map(({ at }) => formatInstant(at));
  return (
    `${pluralize(events.length, "event")} of ${pluralize(actions.length, "action")} from ${first} to ${last} UTC. ` +
    "Filled: read by the model; pale: not read; hollow: after the query time."
  );
}

/** Lines of a tooltip about an event `{itemId, action, at, age}`. */
export function describeEvent({ itemId, action, at, age }, items) {
  const item = items.get(itemId);
  return [
    itemName(item?.title, itemId),
    item?.categories.length ? item.categories.join(", ") : null,
    action,
    `${formatInstant(at)} UTC`,
    age < 0 ? "after the query time" : `${formatDuration(age)} before the query time`,
  ].filter(Boolean);
}

/**
 * A bar per event, oldest first. Events whose bars would overlap are stacked at the oldest of them:
 * a basket is many events of one minute.
 *
 * @param {any[]} events
 * @param {{position: (event: any) => number, pixel: number}} axis `pixel`: units of the axis per pixel
 * @returns `bars` `{event, x, base, stack}` and their common `width`; a `stack` has the number of its
 *   events and their total weight
 */
export function stackBars(events, { position, pixel }) {
  /** @type {any} */
  let stack = null;
  const bars = events.map((event) => {
    const x = position(event);
    if (stack === null || x - stack.x >= BAR_PIXELS.least * pixel) stack = { x, events: 0, weight: 0 };
    const bar = { event, x: stack.x, base: stack.weight, stack };
    stack.events += 1;
    stack.weight += event.weight;
    return bar;
  });
  return { bars, width: barWidth(bars, pixel) };
}

/** The greatest width at which bars do not touch. */
function barWidth(bars, pixel) {
  let gap = Infinity;
  for (let index = 1; index < bars.length; index += 1) {
    const step = bars[index].x - bars[index - 1].x;
    if (step > 0) gap = Math.min(gap, step);
  }
  const { least, most } = BAR_PIXELS;
  return Math.max(least * pixel, Math.min(most * pixel, gap * 0.8));
}

/** The trace of bars for plotly.js, without their colours. */
export const barTrace = ({ bars, width }) => ({
  type: "bar",
  x: bars.map((bar) => bar.x),
  y: bars.map((bar) => bar.event.weight),
  base: bars.map((bar) => bar.base),
  width,
});

/** The height of the highest stack; at least 0.01. */
export const highestBar = (bars) =>
  bars.reduce((highest, bar) => Math.max(highest, bar.base + bar.event.weight), 0.01);

/**
 * The time axis of a chart `width` pixels wide, with `pixel`, the units of the axis per pixel.
 *
 * @param {ChartedHistory} shown
 * @param {number} width
 */
export function timeAxis({ events, queryTime, span, scale }, width) {
  const axis =
    scale === "log" ? elapsedAxis(events, width) : calendarAxis(events, width, queryTime, span);
  return { ...axis, pixel: (axis.range[1] - axis.range[0]) / width };
}

/** A vertical line at the query time: the layout's `shapes`. */
export const queryTimeLine = (at) => [
  {
    type: "line",
    x0: at,
    x1: at,
    yref: "paper",
    y0: 0,
    y1: 1,
    line: { color: cssColor("--query-time"), width: 2 },
  },
];

/** The label above `queryTimeLine`: the layout's `annotations`. */
function queryTimeLabel(at, [from, to]) {
  return [
    {
      x: at,
      yref: "paper",
      y: 1,
      yanchor: "bottom",
      xanchor: at > (from + to) / 2 ? "right" : "left",
      text: "query time",
      showarrow: false,
      font: { color: cssColor("--query-time") },
    },
  ];
}
