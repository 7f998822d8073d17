// @ts-check
/** A combobox that finds items by part of their title, or takes an id. */

import { call } from "../shell/api.js";
import { pluralize } from "../shell/format.js";
import { html } from "../shell/html.js";
import { Combobox } from "./combobox.js";

const OFFERED = 12;

/** @typedef {{item_id: string, title: string | null, categories: string[], isTyped?: boolean}} Option */

/** @type {import("./combobox.js").Source<Option>} */
const ITEMS = {
  label: "Items",
  offersAll: false,
  async find(title, signal) {
    const { items } = await call("v1/items", { query: { q: title, limit: OFFERED }, signal });
    return [...items, { item_id: title, title: null, categories: [], isTyped: true }];
  },
  keyOf: ({ item_id: itemId }) => itemId,
  textOf: ({ title, item_id: itemId }) => title ?? itemId,
  show: ({ item_id: itemId, title, isTyped }) =>
    isTyped
      ? html`the id <code>${itemId}</code>`
      : html`<span class="title">${title ?? "(no title)"}</span><code class="note">${itemId}</code>`,
  describe(options) {
    const found = options.length - 1;
    if (found === 0) return "no title contains this";
    return `${found === OFFERED ? "the first " : ""}${pluralize(found, "item")}`;
  },
};

/** @extends {Combobox<Option>} */
export class ItemSearch extends Combobox {
  /**
   * @param {any} input a text field with an id, labelled by an element outside it
   * @param {object} options
   * @param {(item: {item_id: string, title: string | null, categories: string[]}) => void}
   *   options.choose called with an item of `GET /v1/items`; for an id that was typed with
   *   `item_id` and no title, whether or not the item exists
   */
  constructor(input, { choose }) {
    super(input, ITEMS, { choose: ({ isTyped: _, ...item }) => choose(item) });
  }
}
