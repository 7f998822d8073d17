// @ts-check
/** The Map card: the items of a version as points of a plane, with a legend of categories. */

import { Chart, cssColor, escapeText } from "../shell/chart.js";
import { live } from "../shell/directives.js";
import { formatCount, formatPercent, pluralize } from "../shell/format.js";
import { byId, html, itemName, render } from "../shell/html.js";
import { showAsTable } from "../shell/tables.js";
import { SYMBOL_CHARACTERS } from "../widgets/series.js";
import { assignItems, groupItems, isShown } from "./data.js";

/** @typedef {import("./data.js").Group} Group */

const POINT_PIXELS = { least: 4, most: 18 };
const SIMILAR_PIXELS = 15;
const CHOSEN_PIXELS = 26;
const LONGEST_NAME = 40;
const AXES = ["first principal component", "second"];

export class MapCard {
  #chart = new Chart(byId("map"));
  #viewport = new Viewport(this.#chart, byId("map"), byId("map-moves"));
  #legend;
  /** @type {any} the response of `GET /v1/models/{version}/map`; null without one */
  #response = null;
  /** @type {Group[]} */
  #groups = [];
  /** @type {(Group & {items: any[]})[]} the groups that are drawn, in the order of their traces */
  #drawn = [];

  /**
   * @param {object} options
   * @param {(itemId: string) => void} options.choose called for a click on a point
   * @param {(update: Record<string, any>) => void} options.change called with the fields of the
   *   state that a choice of categories changes
   */
  constructor({ choose, change }) {
    this.#legend = new CategoryLegend(change);
    this.#chart.on("plotly_click", ({ points: [point] }) => {
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
   * @param {number | null} dimensions of the item vectors
   */
  setMap(response, dimensions) {
    this.#response = response;
    this.#groups = groupItems(response.items);
    byId("map-missing").hidden = true;
    byId("map-shown").hidden = false;
    byId("map-summary").textContent = summarize(response, dimensions);
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
    byId("map-missing").textContent = why;
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
    byId("map-marked").textContent = this.#describeMarks(chosen, similar);
    const { items, explained } = this.#response;
    this.#viewport.setItems(items);
    this.#drawn = assignItems(items, this.#groups, state);
    const mostEvents = Math.max(...items.map((item) => item.events), 1);
    const similarItems = items.filter((item) => similar.includes(item.item_id));
    const chosenItems = items.filter((item) => item.item_id === chosen);
    const axes = explained.map((share, axis) => `${AXES[axis]}, ${formatPercent(share)}`);
    await this.#chart.draw(
      (size) => ({
        traces: [
          ...this.#drawn.map((group) => groupTrace(group, mostEvents)),
          ringTrace(similarItems, { symbol: "circle-open", size: SIMILAR_PIXELS, line: 2, token: "--text" }),
          ringTrace(chosenItems, {
            symbol: "diamond-open",
            size: CHOSEN_PIXELS,
            line: 3,
            token: "--query-time",
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

  #itemAt({ curveNumber, pointNumber }) {
    return this.#drawn[curveNumber]?.items[pointNumber] ?? null;
  }

  #describeMarks(chosen, similar) {
    if (chosen === null) return "Choose a point to see its item.";
    const item = this.find(chosen);
    const onMap = similar.filter((itemId) => this.find(itemId)).length;
    const circles = similar.length
      ? ` In circles: ${onMap} of the ${pluralize(similar.length, "item")} listed as similar.`
      : "";
    return item
      ? `In a diamond: ${item.title || chosen}.${circles}`
      : `${chosen} is not among the items of this map.${circles}`;
  }
}

function summarize({ items, model_version: version, explained }, dimensions) {
  const [first, second] = explained.map(formatPercent);
  const all = dimensions === null ? "all" : `all ${dimensions}`;
  const of = dimensions === null ? "" : ` of ${dimensions}`;
  return (
    `The ${formatCount(items.length)} items of ${version} with the most events, the larger the more, placed ` +
    `by a PCA of the directions of their vectors: the first axis explains ${first} of the variance, the ` +
    `second ${second}. Near on the map is near in two${of} directions only; the list of similar items ` +
    `uses ${all}.`
  );
}

const describePoint = ({ item_id: itemId, title, categories, events }) => [
  itemName(title, itemId),
  ...(title ? [html`<code>${itemId}</code>`] : []),
  categories.length ? categories.join(", ") : "no category",
  `${pluralize(events, "event")} in the training data`,
];

/** The points of one group; the area of a point grows with the popularity of the item. */
function groupTrace({ items, style, name }, mostEvents) {
  const { least, most } = POINT_PIXELS;
  return {
    ...pointTrace(items),
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

/** Rings around some items; the pointer passes through to the points. */
const ringTrace = (items, { symbol, size, line, token }) => ({
  ...pointTrace(items),
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
    bordercolor: cssColor("--query-time"),
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

const ZOOM = 1.5;
const PAN = 0.25;
const MARGIN = 0.05;
/** @type {[string, string, {zoom?: number, x?: number, y?: number}][]} */
const MOVES = [
  ["+", "Zoom in", { zoom: ZOOM }],
  ["−", "Zoom out", { zoom: 1 / ZOOM }],
  ["←", "Move left", { x: -PAN }],
  ["→", "Move right", { x: PAN }],
  ["↑", "Move up", { y: PAN }],
  ["↓", "Move down", { y: -PAN }],
];

/** The part of the plane in view: moved by wheel and drag, and by buttons for the keyboard. */
class Viewport {
  #chart;
  #container;
  #size = { width: 1, height: 1 };
  /** @type {any[]} */
  #items = [];
  /**
   * The centre, and `unit`, how much of the plane a pixel covers; null for the whole map.
   *
   * @type {{x: number, y: number, unit: number} | null}
   */
  #view = null;
  #isMoving = false;

  /**
   * @param {Chart} chart
   * @param {any} container the element that `chart` draws into
   * @param {HTMLElement} buttons filled with the buttons
   */
  constructor(chart, container, buttons) {
    this.#chart = chart;
    this.#container = container;
    const button = (sign, name, act) =>
      html`<button type="button" aria-label=${name} title=${name} @click=${act}>${sign}</button>`;
    render(
      [
        ...MOVES.map(([sign, name, move]) => button(sign, name, () => this.#move(move))),
        button("Reset", "Reset the map", () => this.#moveTo(null)),
      ],
      buttons,
    );
    chart.on("plotly_relayout", () => this.#readView());
    chart.on("plotly_doubleclick", () => this.#moveTo(null));
  }

  /** Sets the items that the whole map covers; shows the whole map if they changed. */
  setItems(items) {
    if (items === this.#items) return;
    this.#items = items;
    this.#view = null;
  }

  /** A layout for plotly.js with axes of the same scale and these titles; `size` in pixels. */
  layout(size, titles) {
    this.#size = size;
    const [x, y] = this.#ranges();
    const axis = { fixedrange: false, showticklabels: false, showgrid: false, zeroline: false };
    // On a touch screen, dragging scrolls the page; the map has the buttons.
    const isTouch = matchMedia("(pointer: coarse)").matches;
    return {
      dragmode: isTouch ? false : "pan",
      xaxis: { ...axis, range: x, title: { text: titles[0] } },
      yaxis: {
        ...axis,
        range: y,
        showline: true,
        linecolor: cssColor("--faint"),
        scaleanchor: "x",
        title: { text: titles[1] },
      },
    };
  }

  #move({ zoom = 1, x = 0, y = 0 }) {
    const view = this.#view ?? this.#whole();
    const { width, height } = this.#size;
    const unit = view.unit / zoom;
    this.#moveTo({ x: view.x + x * width * unit, y: view.y + y * height * unit, unit });
  }

  async #moveTo(view) {
    this.#view = view;
    const [x, y] = this.#ranges();
    this.#isMoving = true;
    await this.#chart.relayout({ "xaxis.range": x, "yaxis.range": y });
    this.#isMoving = false;
  }

  /** Reads the view after the pointer moved it. */
  #readView() {
    if (this.#isMoving) return;
    const [x, y] = [this.#container.layout.xaxis.range, this.#container.layout.yaxis.range];
    this.#view = { x: (x[0] + x[1]) / 2, y: (y[0] + y[1]) / 2, unit: (x[1] - x[0]) / this.#size.width };
  }

  #ranges() {
    const { x, y, unit } = this.#view ?? this.#whole();
    const { width, height } = this.#size;
    return [
      [x - (width * unit) / 2, x + (width * unit) / 2],
      [y - (height * unit) / 2, y + (height * unit) / 2],
    ];
  }

  #whole() {
    const [left, right] = extent(this.#items.map((item) => item.x));
    const [bottom, top] = extent(this.#items.map((item) => item.y));
    const { width, height } = this.#size;
    const unit = Math.max((right - left) / width, (top - bottom) / height) * (1 + 2 * MARGIN);
    return { x: (left + right) / 2, y: (bottom + top) / 2, unit: unit || 1 / width };
  }
}

function extent(numbers) {
  return numbers.length === 0 ? [0, 0] : [Math.min(...numbers), Math.max(...numbers)];
}
