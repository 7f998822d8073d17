// @ts-check
/** The card beside the map: the most popular items or, once one is chosen, the item and similar ones. */

import { formatCount, formatDecimals, formatInstant, pluralize } from "../shell/format.js";
import { byId, html, itemName, nothing, render } from "../shell/html.js";
import { LINK } from "./data.js";

const MOST_ROWS = 50;

/** The most popular items, filtered by title, id or category. */
export class PopularList {
  #filter = byId("popular-filter");
  /** @type {any[]} */
  #items = [];
  #hasFailed = false;

  constructor() {
    this.#filter.addEventListener("input", () => this.#render());
  }

  /**
   * @param {any[]} items the items of the map, the most popular first
   * @param {{hasFailed: boolean}} loading whether there may be a map, but its request failed
   */
  show(items, { hasFailed }) {
    this.#items = items;
    this.#hasFailed = hasFailed;
    this.#render();
  }

  /** The items that the filter finds, with their ranks. */
  get found() {
    const text = this.#text;
    return this.#items
      .map((item, index) => ({ ...item, rank: index + 1 }))
      .filter((item) => matches(item, text));
  }

  get #text() {
    return this.#filter.value.trim().toLowerCase();
  }

  #render() {
    const { found } = this;
    render(found.slice(0, MOST_ROWS).map(popularRow), byId("popular-items"));
    byId("popular-note").textContent = this.#note(found.length, this.#text !== "");
  }

  #note(found, isFiltered) {
    const all = `the ${pluralize(this.#items.length, "item")} on the map`;
    if (this.#hasFailed) return "The items on the map are listed here once it is loaded.";
    if (this.#items.length === 0) return "There is no map, so there are no items to list.";
    if (found === 0) return `None of ${all} matches; the search above covers every stored item.`;
    if (found <= MOST_ROWS) return `${pluralize(found, "item")} of ${all}.`;
    return `The first ${MOST_ROWS} of ${isFiltered ? pluralize(found, "item") : all}.`;
  }
}

/** Whether the id, title or a category of an item contains a text in lower case. */
export function matches({ item_id: itemId, title, categories }, text) {
  return [itemId, title ?? "", ...categories].some((name) => name.toLowerCase().includes(text));
}

const popularRow = (item) => html`<tr>
  <td class="number rank">${formatCount(item.rank)}</td>
  <td>${itemCell(item)}</td>
  <td class="number">${formatCount(item.events)}</td>
</tr>`;

/** A link to an item of this page that keeps the rest of the state, and the item's categories. */
const itemCell = ({ item_id: itemId, title, categories }) => html`<a
    href=${LINK.write({ ...LINK.read(), item: itemId })} data-item=${itemId}
    >${itemName(title, itemId)}</a>${
    categories.length > 0 ? html`<span class="note block">${categories.join(", ")}</span>` : nothing
  }`;

/**
 * Calls `choose(itemId)` for a plain click on an item's link; with a modifier key the browser opens
 * a tab.
 *
 * @param {HTMLElement} container contains the links
 * @param {(itemId: string) => void} choose
 */
export function onItemClick(container, choose) {
  container.addEventListener("click", (click) => {
    const link = /** @type {Element} */ (click.target).closest("a[data-item]");
    if (!link || click.ctrlKey || click.metaKey || click.shiftKey) return;
    click.preventDefault();
    choose(/** @type {HTMLElement} */ (link).dataset.item ?? "");
  });
}

/**
 * Shows the facts of an item.
 *
 * @param {object} item
 * @param {string} item.itemId
 * @param {any} item.stored the item as it is stored; null if it is not, or not known yet
 * @param {any} item.refusal why it is not known to be stored; null if it is, or not known yet
 * @param {any} item.mapped the item as the map has it; undefined if it is not on the map
 * @param {string | null} item.version the version of the map
 */
export function showFacts({ itemId, stored, refusal, mapped, version }) {
  const categories = stored?.categories ?? mapped?.categories ?? null;
  /** @type {[string, any][]} */
  const facts = [["Id", html`<code>${itemId}</code>`]];
  if (categories !== null) facts.push(["Categories", categories.join(", ") || "none"]);
  if (stored !== null) {
    facts.push(["Available", describeAvailability(stored)]);
    const properties = Object.entries(stored.properties ?? {});
    if (properties.length > 0) facts.push(["Properties", propertyList(properties)]);
    facts.push(["Stored", `${formatInstant(Date.parse(stored.updated_at))} UTC`]);
  } else if (refusal !== null) {
    facts.push(["Stored", html`<span class="caution">${
      typeof refusal === "string" ? `no: ${refusal}` : refusal
    }</span>`]);
  }
  if (mapped) facts.push(["Trained on", `${pluralize(mapped.events, "event")} of the item, in ${version}`]);
  render(
    facts.map(([name, fact]) => html`<dt>${name}</dt><dd>${fact}</dd>`),
    byId("facts"),
  );
}

function describeAvailability({ available_from: from, available_until: until }) {
  const now = Date.now();
  const isNow = (from === null || Date.parse(from) <= now) && (until === null || now < Date.parse(until));
  const period = [
    from === null ? "" : ` from ${formatInstant(Date.parse(from))} UTC`,
    until === null ? "" : ` until ${formatInstant(Date.parse(until))} UTC`,
  ].join("");
  if (isNow) return `now${period || ", without an end"}`;
  return html`<span class="caution">not now, only${period}</span>`;
}

const propertyList = (properties) =>
  html`<ul class="properties">${properties.map(
    ([name, value]) => html`<li><span class="note">${name}</span>: ${
      typeof value === "string" ? value : JSON.stringify(value)
    }</li>`,
  )}</ul>`;

/**
 * Shows the response of `GET /v1/items/{id}/similar`, with the cosine of the item vectors as bars.
 *
 * @param {{items: any[], model_version: string}} response
 */
export function showSimilar({ items, model_version: version }) {
  const note =
    items.length === 0
      ? `${version} has no other item that is available now.`
      : `The items that are most similar for ${version} (cosine similarity), of those available now.`;
  showSimilarRows(note, items);
}

/** Shows why there are no similar items. */
export const showNoSimilar = (why) => showSimilarRows(why, []);

function showSimilarRows(note, items) {
  const rows = byId("similar-items");
  render(note, byId("similar-note"));
  rows.closest("table").hidden = items.length === 0;
  render(
    items.map(
      (item) => html`<tr>
        <td class="number rank">${item.rank}</td>
        <td>${itemCell(item)}</td>
        <td class="number"><meter min="0" max="1" .value=${Math.max(item.score, 0)} aria-hidden="true"></meter>${formatDecimals(item.score, 3)}</td>
      </tr>`,
    ),
    rows,
  );
}
