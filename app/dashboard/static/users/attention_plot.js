/** The weights of a history as bars over time. */

import { Chart, cssColor } from "../shell/chart.js";
import { formatPercent } from "../shell/format.js";
import { byId } from "../shell/html.js";
import { barsOver, barTrace, heightOf } from "./bars.js";
import { eventInWords } from "./event_words.js";
import { queryTimeLine, queryTimeName, timeAxis } from "./time_axis.js";

const MARGIN = { l: 56, r: 14, t: 22, b: 46 };

export class AttentionPlot {
  #chart = new Chart(byId("plot"));
  #shown = null;
  #drawn = null;
  #pointed = null;

  /** Draw `{events, items, queryTime, span, scale}`, the events as `weightedHistory` gives them. */
  show(shown) {
    this.#shown = shown;
    this.#pointed = null;
    return this.#chart.draw(
      ({ width }) => this.#picture(width),
      (point) => this.#tip(point),
    );
  }

  /** Make one event stand out; null: none. */
  point(event) {
    if (event === this.#pointed || this.#drawn === null) return;
    this.#pointed = event;
    this.#chart.restyle({ "marker.color": [this.#colors()] }, [0]);
  }

  #picture(width) {
    const { events } = this.#shown;
    const axis = timeAxis(this.#shown, width);
    const read = events.filter((event) => event.part === "read");
    const piles = barsOver(read, axis.place, axis.pixel);
    const rest = events.filter((event) => event.part !== "read" && axis.shows(event));
    this.#drawn = { bars: piles.bars, rest };
    const isPiled = piles.bars.some((bar) => bar.base > 0);
    const line = { color: cssColor("--card"), width: isPiled ? 0.5 : 0 };
    return {
      traces: [
        { ...barTrace(piles), marker: { color: this.#colors(), line } },
        ticks(rest, axis.place),
      ],
      layout: layout(axis, heightOf(piles.bars)),
    };
  }

  #colors() {
    const [plain, pointed] = [cssColor("--bar"), cssColor("--bar-pointed")];
    return this.#drawn.bars.map(({ event }) => (event === this.#pointed ? pointed : plain));
  }

  #tip({ curveNumber, pointNumber }) {
    const { bars, rest } = this.#drawn;
    const bar = curveNumber === 0 ? bars[pointNumber] : null;
    const event = bar?.event ?? rest[pointNumber];
    const lines = eventInWords(event, this.#shown.items);
    lines.push(bar ? `weight ${formatPercent(event.weight)}` : "not read by the model");
    if (bar?.pile.events > 1) {
      lines.push(`one of ${bar.pile.events} piled up here, together ${formatPercent(bar.pile.weight)}`);
    }
    return lines;
  }
}

/** Events without a weight, as ticks on the axis. */
function ticks(events, place) {
  return {
    type: "scatter",
    mode: "markers",
    x: events.map(place),
    y: events.map(() => 0),
    cliponaxis: false,
    marker: { symbol: "line-ns-open", size: 8, color: cssColor("--faint"), line: { width: 1 } },
  };
}

function layout(axis, highest) {
  const marked =
    axis.queryTime === null
      ? {}
      : {
          shapes: queryTimeLine(axis.queryTime).map((line) => ({ ...line, layer: "below" })),
          annotations: queryTimeName(axis.queryTime, axis.range),
        };
  return {
    margin: MARGIN,
    xaxis: { ...axis.layout, range: axis.range, automargin: false },
    yaxis: {
      title: { text: "weight" },
      tickformat: ".1~%",
      range: [0, highest * 1.08],
      automargin: false,
    },
    ...marked,
  };
}
