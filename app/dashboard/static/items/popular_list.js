/** The items of the map, the most popular first, narrowed down by what they are called. */

import { formatCount, pluralize } from "../shell/format.js";
import { byId, element } from "../shell/html.js";
import { itemLink } from "./item_link.js";

const SHOWN = 50;

export class PopularList {
  #filter = byId("popular-filter");
  #items = [];

  constructor() {
    this.#filter.addEventListener("input", () => this.#render());
  }

  /** List the items of a map's answer. */
  show(items) {
    this.#items = items;
    this.#render();
  }

  #render() {
    const wanted = this.#filter.value.trim().toLowerCase();
    const found = this.#items
      .map((item, place) => ({ ...item, rank: place + 1 }))
      .filter((item) => isCalled(item, wanted));
    byId("popular-items").replaceChildren(...found.slice(0, SHOWN).map(row));
    const whose = `the ${pluralize(this.#items.length, "item")} on the map`;
    byId("popular-note").textContent =
      this.#items.length === 0
        ? "There is no map to list the items of."
        : found.length === 0
          ? `None of ${whose} is called so; the search above knows every stored item.`
          : found.length > SHOWN
            ? `The first ${SHOWN} of ${wanted === "" ? whose : pluralize(found.length, "item")}.`
            : `${pluralize(found.length, "item")} of ${whose}.`;
  }
}

function isCalled({ item_id: itemId, title, categories }, wanted) {
  return [itemId, title ?? "", ...categories].some((name) => name.toLowerCase().includes(wanted));
}

function row(item) {
  const kind = item.categories.join(", ");
  return element(
    "tr",
    {},
    element("td", { class: "number rank" }, formatCount(item.rank)),
    element("td", {}, itemLink(item), kind ? element("span", { class: "note block" }, kind) : null),
    element("td", { class: "number" }, formatCount(item.events)),
  );
}
