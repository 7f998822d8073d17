/** The weights of every head, small and side by side on one scale. */

import { Chart, cssColor } from "../shell/chart.js";
import { formatInstant, formatPercent, pluralize } from "../shell/format.js";
import { byId, element } from "../shell/html.js";
import { showAsTable } from "../shell/tables.js";
import { barsOver, barTrace, heightOf } from "./bars.js";
import { eventInWords } from "./event_words.js";
import { timeAxis } from "./time_axis.js";

const LEAST_WIDTH = 190;
const ROW_PIXELS = 120;
const MARGIN = { l: 46, r: 10, t: 22, b: 30 };
const GAP = { x: 0.05, y: 0.55 };

export class HeadCharts {
  #place = byId("heads");
  #chart = new Chart(byId("heads"));
  #shown = null;
  #drawn = [];

  /** `choose(head)` is called with the number, from 1, of a head that is clicked. */
  constructor(choose) {
    this.#chart.on("plotly_click", ({ points: [{ curveNumber }] }) => choose(curveNumber + 1));
  }

  /**
   * Draw `{heads, events, items, queryTime, span, scale, head}`: each of the heads holds the events
   * that were read with its weights, `events` are all, as `weightedHistory` gives them, and `head`
   * is the number of the chosen one, or null.
   */
  show(shown) {
    this.#shown = shown;
    const { heads } = shown;
    const columns = this.#columns(this.#place.clientWidth);
    const height = `${Math.ceil(heads.length / columns) * ROW_PIXELS + MARGIN.t + MARGIN.b}px`;
    if (this.#place.style.height !== height) this.#place.style.setProperty("height", height);
    byId("heads-summary").textContent = inWords(shown);
    this.#tabulate();
    return this.#chart.draw(
      ({ width }) => this.#picture(width),
      ({ curveNumber, pointNumber }) => this.#tip(this.#drawn[curveNumber].bars[pointNumber]),
    );
  }

  #columns(width) {
    return Math.max(1, Math.min(this.#shown.heads.length, Math.floor(width / LEAST_WIDTH)));
  }

  #picture(width) {
    const { heads, head } = this.#shown;
    const columns = this.#columns(width);
    const axis = timeAxis(this.#shown, width / columns - MARGIN.l);
    this.#drawn = heads.map((events) => barsOver(events, axis.place, axis.pixel));
    const highest = Math.max(...this.#drawn.map(({ bars }) => heightOf(bars)));
    const layout = {
      margin: MARGIN,
      grid: {
        rows: Math.ceil(heads.length / columns),
        columns,
        pattern: "independent",
        xgap: GAP.x,
        ygap: GAP.y,
      },
      annotations: heads.map((_, place) => nameOf(place, place + 1 === head)),
    };
    heads.forEach((_, place) => {
      const { title: _unused, tickvals, ticktext, nticks, type } = axis.layout;
      layout[`xaxis${numbered(place)}`] = {
        ...(tickvals ? { tickvals: sparse(tickvals), ticktext: sparse(ticktext) } : { nticks }),
        type,
        range: axis.range,
        automargin: false,
      };
      layout[`yaxis${numbered(place)}`] = {
        tickformat: ".0%",
        range: [0, highest * 1.08],
        nticks: 3,
        // One scale for all, so it is written once per row.
        showticklabels: place % columns === 0,
        automargin: false,
      };
    });
    return { traces: this.#drawn.map((piles, place) => this.#trace(piles, place)), layout };
  }

  #trace(piles, place) {
    const isChosen = this.#shown.head === null || this.#shown.head === place + 1;
    return {
      ...barTrace(piles),
      xaxis: `x${numbered(place)}`,
      yaxis: `y${numbered(place)}`,
      marker: { color: cssColor(isChosen ? "--bar" : "--faint") },
    };
  }

  #tip({ event, pile }) {
    const lines = [...eventInWords(event, this.#shown.items), `weight ${formatPercent(event.weight)}`];
    if (pile.events > 1) lines.push(`one of ${pile.events} here, together ${formatPercent(pile.weight)}`);
    return lines;
  }

  #tabulate() {
    const { heads, items } = this.#shown;
    showAsTable(byId("heads-table"), {
      caption: "Weights of every head",
      columns: ["Item", "Event (UTC)", ...heads.map((_, place) => `Head ${place + 1}`)],
      rows: heads[0].map((event, row) => [
        items.get(event.itemId)?.title || element("code", {}, event.itemId),
        formatInstant(event.at),
        ...heads.map((events) => formatPercent(events[row].weight)),
      ]),
    });
  }
}

/** How plotly.js numbers axes: the first has no number. */
const numbered = (place) => (place === 0 ? "" : place + 1);

/** Every other mark, as there is half the room. */
const sparse = (marks) => marks.filter((_, place) => place % 2 === 0);

function nameOf(place, isChosen) {
  return {
    xref: `x${numbered(place)} domain`,
    yref: `y${numbered(place)} domain`,
    x: 0,
    y: 1,
    xanchor: "left",
    yanchor: "bottom",
    showarrow: false,
    text: `head ${place + 1}${isChosen ? ", shown above" : ""}`,
    font: { color: cssColor(isChosen ? "--text" : "--quiet") },
  };
}

function inWords({ heads, items }) {
  const heaviest = heads.map((events, place) => {
    const most = events.reduce((one, other) => (other.weight > one.weight ? other : one));
    const title = items.get(most.itemId)?.title || most.itemId;
    return `head ${place + 1} most on ${title} (${formatPercent(most.weight)})`;
  });
  const words = heaviest.length <= 8 ? `: ${heaviest.join("; ")}` : "";
  return `${pluralize(heads.length, "head")} over ${pluralize(heads[0].length, "event")}, all on one scale${words}.`;
}
