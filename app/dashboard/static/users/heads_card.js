// @ts-check
/** The card of single heads: the weights of every head side by side on one scale. */

import { Chart, cssColor } from "../shell/chart.js";
import { formatInstant, formatPercent, pluralize } from "../shell/format.js";
import { byId, itemName } from "../shell/html.js";
import { showAsTable } from "../shell/tables.js";
import { barTrace, describeEvent, highestBar, stackBars, timeAxis } from "./attention_card.js";

const LEAST_WIDTH = 190;
const ROW_PIXELS = 120;
const MARGIN = { l: 46, r: 10, t: 22, b: 30 };
const GAP = { x: 0.05, y: 0.55 };

export class HeadsCard {
  #container = byId("heads");
  #chart = new Chart(byId("heads"));
  /** @type {any} */
  #shown = null;
  #drawn = [];

  /** @param {(head: number) => void} choose called with the number, from 1, of a clicked head */
  constructor(choose) {
    this.#chart.on("plotly_click", ({ points: [{ curveNumber }] }) => choose(curveNumber + 1));
  }

  /**
   * Shows the heads of a response. Responses of a sweep have none: the heads of the instant before
   * stay, marked as busy.
   *
   * @param {any} answer
   * @param {import("./attention_card.js").ChartedHistory & {head: number | null}} shown `head` is the number of the
   *   chosen one
   */
  show({ attention, recommendation_id: isExact }, shown) {
    const isKnown = Boolean(attention?.heads) && attention.events.length > 0;
    const isAwaited = attention !== null && !isKnown && !isExact;
    byId("heads-card").setAttribute("aria-busy", String(isAwaited));
    byId("heads-figure").hidden = !isKnown && !isAwaited;
    byId("heads-note").textContent =
      isKnown || isAwaited ? "" : "This response has no weights of single heads.";
    if (!isKnown) return null;
    const heads = attention.heads.map((weights) =>
      attention.events.map((event, index) => ({
        itemId: event.item_id,
        action: event.action,
        at: Date.parse(event.timestamp),
        age: event.age_seconds * 1000,
        weight: weights[index],
      })),
    );
    return this.#draw({ ...shown, heads });
  }

  #draw(shown) {
    this.#shown = shown;
    const columns = this.#columns(this.#container.clientWidth);
    const height = `${Math.ceil(shown.heads.length / columns) * ROW_PIXELS + MARGIN.t + MARGIN.b}px`;
    if (this.#container.style.height !== height) {
      this.#container.style.setProperty("height", height);
    }
    byId("heads-summary").textContent = describeHeads(shown);
    this.#showTable();
    return this.#chart.draw(
      ({ width }) => this.#build(width),
      ({ curveNumber, pointNumber }) => this.#describe(this.#drawn[curveNumber].bars[pointNumber]),
    );
  }

  #columns(width) {
    return Math.max(1, Math.min(this.#shown.heads.length, Math.floor(width / LEAST_WIDTH)));
  }

  #build(width) {
    const { heads, head } = this.#shown;
    const columns = this.#columns(width);
    const axis = timeAxis(this.#shown, width / columns - MARGIN.l);
    this.#drawn = heads.map((events) => stackBars(events, axis));
    const highest = Math.max(...this.#drawn.map(({ bars }) => highestBar(bars)));
    const layout = {
      margin: MARGIN,
      grid: {
        rows: Math.ceil(heads.length / columns),
        columns,
        pattern: "independent",
        xgap: GAP.x,
        ygap: GAP.y,
      },
      annotations: heads.map((_, index) => headLabel(index, index + 1 === head)),
    };
    const { tickvals, ticktext, nticks, type } = axis.layout;
    heads.forEach((_, index) => {
      layout[`xaxis${axisNumber(index)}`] = {
        ...(tickvals ? { tickvals: sparse(tickvals), ticktext: sparse(ticktext) } : { nticks }),
        type,
        range: axis.range,
        automargin: false,
      };
      layout[`yaxis${axisNumber(index)}`] = {
        tickformat: ".0%",
        range: [0, highest * 1.08],
        nticks: 3,
        // One scale for all heads, labelled once per row.
        showticklabels: index % columns === 0,
        automargin: false,
      };
    });
    return { traces: this.#drawn.map((stacked, index) => this.#trace(stacked, index)), layout };
  }

  #trace(stacked, index) {
    const isChosen = this.#shown.head === null || this.#shown.head === index + 1;
    return {
      ...barTrace(stacked),
      xaxis: `x${axisNumber(index)}`,
      yaxis: `y${axisNumber(index)}`,
      marker: { color: cssColor(isChosen ? "--bar" : "--faint") },
    };
  }

  #describe({ event, stack }) {
    const lines = [...describeEvent(event, this.#shown.items), `weight ${formatPercent(event.weight)}`];
    if (stack.events > 1) {
      lines.push(`one of ${stack.events} stacked here, together ${formatPercent(stack.weight)}`);
    }
    return lines;
  }

  #showTable() {
    const { heads, items } = this.#shown;
    showAsTable(byId("heads-table"), {
      caption: "Weights of every head",
      columns: ["Item", "Event (UTC)", ...heads.map((_, index) => `Head ${index + 1}`)],
      rows: heads[0].map((event, row) => [
        itemName(items.get(event.itemId)?.title, event.itemId),
        formatInstant(event.at),
        ...heads.map((events) => formatPercent(events[row].weight)),
      ]),
    });
  }
}

/** The number of an axis in plotly.js: the first has none. */
const axisNumber = (index) => (index === 0 ? "" : index + 1);

/** Every other tick: there is half the room. */
const sparse = (ticks) => ticks.filter((_, index) => index % 2 === 0);

function headLabel(index, isChosen) {
  return {
    xref: `x${axisNumber(index)} domain`,
    yref: `y${axisNumber(index)} domain`,
    x: 0,
    y: 1,
    xanchor: "left",
    yanchor: "bottom",
    showarrow: false,
    text: `head ${index + 1}${isChosen ? ", shown above" : ""}`,
    font: { color: cssColor(isChosen ? "--text" : "--quiet") },
  };
}

function describeHeads({ heads, items }) {
  const heaviest = heads.map((events, index) => {
    const most = events.reduce((one, other) => (other.weight > one.weight ? other : one));
    const title = items.get(most.itemId)?.title || most.itemId;
    return `head ${index + 1} most on ${title} (${formatPercent(most.weight)})`;
  });
  const words = heaviest.length <= 8 ? `: ${heaviest.join("; ")}` : "";
  return `${pluralize(heads.length, "head")} over ${pluralize(heads[0].length, "event")}, all on one scale${words}.`;
}
