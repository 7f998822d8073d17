/** The items of a model as points of a plane. */

import { Chart, cssColor, escapeText } from "../shell/chart.js";
import { formatPercent, pluralize } from "../shell/format.js";
import { byId, element, itemName } from "../shell/html.js";
import { shownGroups } from "./categories.js";
import { MapWindow } from "./map_window.js";

const POINT_PIXELS = { least: 4, most: 18 };
const SIMILAR_PIXELS = 15;
const CHOSEN_PIXELS = 26;
const MOST_LETTERS = 40;
const AXES = ["first principal component", "second"];

export class MapPlot {
  #chart = new Chart(byId("map"));
  #window = new MapWindow(this.#chart, byId("map"), byId("map-moves"));
  #drawn = [];

  /** `choose(itemId)` is called for a click on a point. */
  constructor(choose) {
    this.#chart.on("plotly_click", ({ points: [point] }) => {
      const item = this.#itemAt(point);
      if (item) choose(item.item_id);
    });
  }

  /**
   * Draw `{items, explained, groups, state, chosen, similar}`: items and shares of variance as the
   * map's answer has them, the items' groups as `groupsOf` gives them, the id of the chosen item or
   * null, and the ids of those like it.
   */
  show({ items, explained, groups, state, chosen, similar }) {
    this.#window.cover(items);
    this.#drawn = shownGroups(items, groups, state);
    const mostEvents = Math.max(...items.map((item) => item.events), 1);
    const near = items.filter((item) => similar.includes(item.item_id));
    const itself = items.filter((item) => item.item_id === chosen);
    return this.#chart.draw(
      (size) => ({
        traces: [
          ...this.#drawn.map((group) => points(group, mostEvents)),
          marks(near, { symbol: "circle-open", size: SIMILAR_PIXELS, line: 2, token: "--text" }),
          marks(itself, { symbol: "diamond-open", size: CHOSEN_PIXELS, line: 3, token: "--query-time" }),
        ],
        layout: {
          ...this.#window.layout(size, explained.map((share, axis) => `${AXES[axis]}, ${formatPercent(share)}`)),
          annotations: itself.map(nameOf),
        },
        config: this.#window.config,
      }),
      (point) => this.#tip(point),
    );
  }

  #itemAt({ curveNumber, pointNumber }) {
    return this.#drawn[curveNumber]?.items[pointNumber] ?? null;
  }

  #tip(point) {
    const item = this.#itemAt(point);
    return item === null
      ? null
      : [
          itemName(item.title, item.item_id),
          ...(item.title ? [element("code", {}, item.item_id)] : []),
          item.categories.length ? item.categories.join(", ") : "no category",
          `${pluralize(item.events, "event")} trained on`,
        ];
  }
}

/** The points of one group; the area of each says how popular the item is. */
function points({ items, style, name }, mostEvents) {
  const { least, most } = POINT_PIXELS;
  return {
    ...placed(items),
    name: escapeText(name),
    opacity: 0.8,
    marker: {
      symbol: style.symbol,
      color: cssColor(style.token),
      size: items.map((item) => Math.max(least, most * Math.sqrt(item.events / mostEvents))),
      line: { width: style.symbol.endsWith("-open") ? 1.2 : 0.6, color: cssColor("--card") },
    },
  };
}

/** Rings around some items, which leave the pointer to the points within. */
const marks = (items, { symbol, size, line, token }) => ({
  ...placed(items),
  hoverinfo: "skip",
  marker: { symbol, size, color: cssColor(token), line: { width: line, color: cssColor(token) } },
});

const placed = (items) => ({
  type: "scatter",
  mode: "markers",
  x: items.map((item) => item.x),
  y: items.map((item) => item.y),
});

function nameOf({ x, y, title, item_id: itemId }) {
  const name = title || itemId;
  const shown = name.length > MOST_LETTERS ? `${name.slice(0, MOST_LETTERS - 1)}…` : name;
  return {
    x,
    y,
    text: escapeText(shown),
    showarrow: false,
    yshift: 24,
    bgcolor: cssColor("--card"),
    bordercolor: cssColor("--query-time"),
    borderpad: 3,
    font: { color: cssColor("--text") },
  };
}
