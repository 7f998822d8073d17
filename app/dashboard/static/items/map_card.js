// @ts-check
/** The Map card: the items of a version as points of a plane, with a legend of categories. */

import { Chart, cssColor, escapeText } from "../shell/chart.js";
import { live } from "../shell/directives.js";
import { formatCount, formatPercent, pluralize } from "../shell/format.js";
import { byId, html, itemName, render } from "../shell/html.js";
import { showAsTable } from "../shell/tables.js";
import { SYMBOL_CHARACTERS } from "../widgets/series.js";
import { assignItems, groupItems, isShown } from "./data.js";
import { matches } from "./item_card.js";
import { DENSITY_LEVELS, densityTraces } from "./map_density.js";
import { describeChosen, describeFound, describeKept, summarize } from "./map_text.js";
import { Viewport } from "./viewport.js";

/** @typedef {import("./data.js").Group} Group */

const POINT_PIXELS = { least: 4, most: 18 };
const SIMILAR_PIXELS = 15;
const CHOSEN_PIXELS = 26;
const LONGEST_NAME = 40;
const FOUND_PIXELS = 13;
/** Of the points; beside a chosen item and those similar to it, the others step back. */
const OPACITY = { usual: 0.75, besideChosen: 0.35 };
const AXES = ["first principal component", "second"];

export class MapCard {
  chart = new Chart(byId("map"));
  #viewport = new Viewport(this.chart, byId("map"), byId("map-moves"));
  #legend;
  /** @type {any} the response of `GET /v1/models/{version}/map`; null without one */
  #response = null;
  /** @type {Group[]} */
  #groups = [];
  /** @type {(Group & {items: any[]})[]} the groups that are drawn, in the order of their traces */
  #drawn = [];
  /** What the search contains, in lower case. */
  #search = "";

  /**
   * @param {object} options
   * @param {(itemId: string) => void} options.choose called for a click on a point
   * @param {(update: Record<string, any>) => void} options.change called with the fields of the
   *   state that a choice of categories changes
   */
  constructor({ choose, change }) {
    this.#legend = new CategoryLegend(change);
    this.chart.on("plotly_click", ({ points: [point] }) => {
      const item = this.#itemAt(point);
      if (item) choose(item.item_id);
    });
  }

  /** The items on the map, the most popular first. */
  get items() {
    return this.#response?.items ?? [];
  }

  /** An item of the map; undefined if it is not on it. */
  find(itemId) {
    return this.items.find((item) => item.item_id === itemId);
  }

  /**
   * Replaces the map.
   *
   * @param {any} response of `GET /v1/models/{version}/map`
   * @param {import("./map_text.js").Vectors | null} vectors null where the manifest is not known
   */
  setMap(response, vectors) {
    this.#response = response;
    this.#groups = groupItems(response.items, response.categories);
    byId("map-missing").hidden = true;
    byId("map-shown").hidden = false;
    byId("map-kept").textContent = describeKept(response);
    byId("map-summary").textContent = summarize(response, vectors);
    showAsTable(byId("map-table"), {
      caption: "Items on the map",
      columns: ["Item", "Title", "Categories", "Events", "x", "y"],
      rows: response.items.map((item) => [
        item.item_id,
        item.title ?? "",
        item.categories.join(", "),
        item.events,
        item.x,
        item.y,
      ]),
    });
  }

  /** Shows why there is no map. */
  showMissing(why) {
    this.#response = null;
    render(why, byId("map-missing"));
    byId("map-missing").hidden = false;
    byId("map-shown").hidden = true;
  }

  /**
   * Draws the map.
   *
   * @param {Record<string, any>} state of the page
   * @param {string | null} chosen the id of the chosen item
   * @param {string[]} similar the ids of the items similar to it
   */
  async draw(state, chosen, similar) {
    if (this.#response === null) return;
    this.#legend.show(this.#groups, state);
    byId("map-marked").textContent = describeChosen(this.items, chosen, similar);
    const { items, explained } = this.#response;
    this.#viewport.setItems(items);
    this.#drawn = assignItems(items, this.#groups, state);
    const mostEvents = Math.max(...items.map((item) => item.events), 1);
    const similarItems = items.filter((item) => similar.includes(item.item_id));
    const chosenItems = items.filter((item) => item.item_id === chosen);
    const axes = explained?.map((share, axis) => `${AXES[axis]}, ${formatPercent(share)}`) ?? ["", ""];
    const opacity = chosenItems.length > 0 ? OPACITY.besideChosen : OPACITY.usual;
    await this.chart.draw(
      (size) => ({
        traces: [
          ...densityTraces(this.#drawn.flatMap((group) => group.items)),
          ...this.#drawn.map((group) => groupTrace(group, mostEvents, opacity)),
          this.#foundTrace(),
          ringTrace(similarItems, { name: "similar items", symbol: "circle-open", size: SIMILAR_PIXELS, line: 2, token: "--text" }),
          ringTrace(chosenItems, {
            name: "chosen item",
            symbol: "diamond-open",
            size: CHOSEN_PIXELS,
            line: 3,
            token: "--linked",
          }),
        ],
        layout: { ...this.#viewport.layout(size, axes), annotations: chosenItems.map(nameAnnotation) },
        config: { scrollZoom: true, doubleClick: false },
      }),
      (point) => {
        const item = this.#itemAt(point);
        return item === null ? null : describePoint(item);
      },
    );
  }

  /**
   * Marks the items of the map whose title, id or category contains a text.
   *
   * @param {string} text "" for none
   */
  async highlight(text) {
    this.#search = text.trim().toLowerCase();
    const found = this.#findItems();
    byId("map-found").textContent = describeFound(found.length, text.trim());
    if (this.#response === null) return;
    const { x, y } = pointTrace(found);
    await this.chart.restyle({ x: [x], y: [y] }, [DENSITY_LEVELS + this.#drawn.length]);
  }

  #findItems() {
    return this.#search === "" ? [] : this.items.filter((item) => matches(item, this.#search));
  }

  #foundTrace() {
    const look = { name: "found", symbol: "square-open", size: FOUND_PIXELS, line: 2, token: "--accent" };
    return ringTrace(this.#findItems(), look);
  }

  #itemAt({ curveNumber, pointNumber }) {
    return this.#drawn[curveNumber - DENSITY_LEVELS]?.items[pointNumber] ?? null;
  }
}

const describePoint = ({ item_id: itemId, title, categories, events }) => [
  itemName(title, itemId),
  ...(title ? [html`<code>${itemId}</code>`] : []),
  categories.length ? categories.join(", ") : "no category",
  `${pluralize(events, "event")} in the training data`,
];

/** The points of one group; the area of a point grows with the popularity of the item. */
function groupTrace({ items, style, name }, mostEvents, opacity) {
  const { least, most } = POINT_PIXELS;
  return {
    ...pointTrace(items),
    name: escapeText(name),
    opacity,
    marker: {
      symbol: style.symbol,
      color: cssColor(style.token),
      size: items.map((item) => Math.max(least, most * Math.sqrt(item.events / mostEvents))),
      line: { width: style.symbol.endsWith("-open") ? 1.2 : 0.6, color: cssColor("--card") },
    },
  };
}

/** Rings around some items; the pointer passes through to the points. */
const ringTrace = (items, { name, symbol, size, line, token }) => ({
  ...pointTrace(items),
  name,
  hoverinfo: "skip",
  marker: { symbol, size, color: cssColor(token), line: { width: line, color: cssColor(token) } },
});

const pointTrace = (items) => ({
  type: "scatter",
  mode: "markers",
  x: items.map((item) => item.x),
  y: items.map((item) => item.y),
});

function nameAnnotation({ x, y, title, item_id: itemId }) {
  const name = title || itemId;
  const shown = name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME - 1)}…` : name;
  return {
    x,
    y,
    text: escapeText(shown),
    showarrow: false,
    yshift: 24,
    bgcolor: cssColor("--card"),
    bordercolor: cssColor("--linked"),
    borderpad: 3,
    font: { color: cssColor("--text") },
  };
}

/** The colours and symbols of the map, and checkboxes for the groups that it shows. */
class CategoryLegend {
  #container = byId("categories");
  #change;
  /** @type {Group[]} */
  #groups = [];

  /** @param {(update: Record<string, any>) => void} change */
  constructor(change) {
    this.#change = change;
  }

  /**
   * @param {Group[]} groups
   * @param {Record<string, any>} state which groups are checked
   */
  show(groups, state) {
    this.#groups = groups;
    const isChecked = groups.map((group) => isShown(group, state));
    render(
      html`<legend>Colour and symbol: the first category of an item that is checked</legend>
        <div class="steps">
          <button type="button" @click=${() => this.#choose(groups)}>all</button>
          <button type="button" @click=${() => this.#choose([])}>none</button>
        </div>
        <div class="entries">${groups.map(
          ({ name, style, count, kind }, index) => html`<label>
            <input type="checkbox" .checked=${live(isChecked[index])} @change=${() => this.#chooseChecked()}>
            <span class="letter" aria-hidden="true">${SYMBOL_CHARACTERS[style.symbol]}</span>
            <span class=${kind === "category" ? "" : "note"}>${name}</span>
            <span class="note">${formatCount(count)}</span>
          </label>`,
        )}</div>`,
      this.#container,
    );
    for (const [index, letter] of this.#container.querySelectorAll(".letter").entries()) {
      letter.style.setProperty("--letter", `var(${groups[index].style.token})`);
    }
  }

  #chooseChecked() {
    const boxes = [...this.#container.querySelectorAll("input")];
    this.#choose(this.#groups.filter((_, index) => boxes[index].checked));
  }

  /** @param {Group[]} checked */
  #choose(checked) {
    const names = checked.filter(({ kind }) => kind === "category").map(({ name }) => name);
    const all = this.#groups.filter(({ kind }) => kind === "category").length;
    // A kind of group that this map does not have stays shown.
    const isChosen = (kind) =>
      checked.some((group) => group.kind === kind) || !this.#groups.some((group) => group.kind === kind);
    this.#change({
      categories: names.length === all ? null : names,
      other: isChosen("other"),
      none: isChosen("none"),
    });
  }
}
