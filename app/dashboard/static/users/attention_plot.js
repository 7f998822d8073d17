/** The weights of a history as bars over time. */

import { byId, element, itemName } from "../shell/dom.js";
import { asText, inWords } from "../shell/instants.js";
import { percent } from "../shell/numbers.js";
import { color } from "../shell/palette.js";
import { plotly } from "../shell/plotly.js";
import { calendarAxis, elapsedAxis } from "../widgets/time_axes.js";

const MARGIN = { l: 52, r: 14, t: 22, b: 46 };
/** Bars closer than the least width are piled up; where there is room, they grow to the most. */
const BAR_PIXELS = { least: 5, most: 14 };

export class AttentionPlot {
  #place = byId("plot");
  #tip = byId("plot-tip");
  #shown = null;
  #pointed = null;
  #drawn = null;

  constructor() {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#draw());
    new ResizeObserver(() => this.#draw()).observe(this.#place);
  }

  /** Draw `{events, titles, queryTime, span, scale}`, the events as `weightedHistory` gives them. */
  show(shown) {
    this.#shown = shown;
    this.#pointed = null;
    this.#tip.hidden = true;
    return this.#draw();
  }

  /** Make one event stand out; null: none. */
  point(event) {
    if (event === this.#pointed || !this.#drawn) return;
    this.#pointed = event;
    const colors = this.#colors(this.#drawn.bars.map((bar) => bar.event));
    this.#drawn.Plotly.restyle(this.#place, { "marker.color": [colors] }, [0]);
  }

  async #draw() {
    if (!this.#shown) return;
    const Plotly = await plotly();
    if (this.#place.clientWidth === 0) return;
    const { events, queryTime, span, scale } = this.#shown;
    const width = this.#place.clientWidth - MARGIN.l - MARGIN.r;
    const axis =
      scale === "log" ? elapsedAxis(events, width) : calendarAxis(events, width, queryTime, span);
    const pixel = (axis.range[1] - axis.range[0]) / width;
    const read = events.filter((event) => event.part === "read");
    const bars = piledUp(read, axis.place, BAR_PIXELS.least * pixel);
    const barWidth = roomForBars(bars, pixel);
    const rest = events.filter((event) => event.part !== "read" && axis.shows(event));
    const traces = [this.#barTrace(bars, barWidth), this.#tickTrace(rest, axis.place)];
    const isNew = this.#drawn === null;
    this.#drawn = { Plotly, bars, rest };
    await Plotly.react(this.#place, traces, this.#layout(axis, bars), {
      displayModeBar: false,
      responsive: false,
    });
    if (isNew) {
      this.#place.on("plotly_hover", (hover) => this.#showTip(hover));
      this.#place.on("plotly_unhover", () => {
        this.#tip.hidden = true;
      });
    }
  }

  #barTrace(bars, barWidth) {
    return {
      type: "bar",
      x: bars.map((bar) => bar.x),
      y: bars.map((bar) => bar.event.weight),
      base: bars.map((bar) => bar.base),
      width: barWidth,
      hoverinfo: "none",
      marker: {
        color: this.#colors(bars.map((bar) => bar.event)),
        line: { color: color("--card"), width: bars.some((bar) => bar.base > 0) ? 0.5 : 0 },
      },
    };
  }

  /** Events without a weight, as ticks on the axis. */
  #tickTrace(events, place) {
    return {
      type: "scatter",
      mode: "markers",
      x: events.map(place),
      y: events.map(() => 0),
      hoverinfo: "none",
      cliponaxis: false,
      marker: { symbol: "line-ns-open", size: 8, color: color("--faint"), line: { width: 1 } },
    };
  }

  #layout(axis, bars) {
    const highest = Math.max(...bars.map((bar) => bar.base + bar.event.weight), 0.01);
    const grid = { gridcolor: color("--line"), zeroline: false, fixedrange: true };
    return {
      autosize: true,
      height: this.#place.clientHeight,
      margin: MARGIN,
      showlegend: false,
      dragmode: false,
      hovermode: "closest",
      hoverdistance: 12,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(this.#place).fontFamily, size: 12, color: color("--quiet") },
      xaxis: {
        ...grid,
        ...axis.layout,
        range: axis.range,
        tickangle: 0,
        showgrid: false,
        showline: true,
        linecolor: color("--faint"),
      },
      yaxis: {
        ...grid,
        title: { text: "weight" },
        tickformat: ".1~%",
        range: [0, highest * 1.08],
        nticks: 5,
      },
      ...(axis.queryTime === null ? {} : queryTimeMark(axis)),
    };
  }

  #colors(events) {
    const [plain, pointed] = [color("--bar"), color("--bar-pointed")];
    return events.map((event) => (event === this.#pointed ? pointed : plain));
  }

  #showTip({ points: [point], event: pointer }) {
    const { bars, rest } = this.#drawn;
    const bar = point.curveNumber === 0 ? bars[point.pointNumber] : null;
    const event = bar ? bar.event : rest[point.pointNumber];
    const lines = [
      `${asText(event.at)} UTC`,
      event.age < 0 ? "after the query time" : `${inWords(event.age)} before the query time`,
      bar ? `weight ${percent(event.weight)}` : "not read by the model",
    ];
    if (event.action) lines.unshift(event.action);
    if (bar?.pile.events > 1) {
      lines.push(`one of ${bar.pile.events} piled up here, together ${percent(bar.pile.weight)}`);
    }
    this.#tip.replaceChildren(
      itemName(this.#shown.titles.get(event.itemId), event.itemId),
      ...lines.map((line) => element("span", { class: "block" }, line)),
    );
    this.#tip.hidden = false;
    const frame = this.#place.getBoundingClientRect();
    const x = pointer.clientX - frame.left;
    const room = frame.width - this.#tip.offsetWidth;
    this.#tip.style.left = `${Math.max(0, Math.min(x + 12, room))}px`;
    this.#tip.style.top = `${pointer.clientY - frame.top + 14}px`;
  }
}

/**
 * Bars that would cover each other are piled up instead: a basket is many events of one minute.
 * A pile stands where its oldest event does.
 */
function piledUp(events, place, leastGap) {
  let pile = null;
  return events.map((event) => {
    const x = place(event);
    if (pile === null || x - pile.x >= leastGap) pile = { x, events: 0, weight: 0 };
    const bar = { event, x: pile.x, base: pile.weight, pile };
    pile.events += 1;
    pile.weight += event.weight;
    return bar;
  });
}

/** How wide bars may be without touching. */
function roomForBars(bars, pixel) {
  let gap = Infinity;
  for (let place = 1; place < bars.length; place += 1) {
    const step = bars[place].x - bars[place - 1].x;
    if (step > 0) gap = Math.min(gap, step);
  }
  const { least, most } = BAR_PIXELS;
  return Math.max(least * pixel, Math.min(most * pixel, gap * 0.8));
}

function queryTimeMark({ queryTime, range }) {
  const isLate = queryTime > (range[0] + range[1]) / 2;
  const line = { color: color("--query-time"), width: 2 };
  return {
    shapes: [
      {
        type: "line",
        layer: "below",
        x0: queryTime,
        x1: queryTime,
        yref: "paper",
        y0: 0,
        y1: 1,
        line,
      },
    ],
    annotations: [
      {
        x: queryTime,
        yref: "paper",
        y: 1,
        yanchor: "bottom",
        xanchor: isLate ? "right" : "left",
        text: "query time",
        showarrow: false,
        font: { color: color("--query-time") },
      },
    ],
  };
}
