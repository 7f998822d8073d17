/** The answer's items, best first. */

import { byId, element, itemName } from "../shell/dom.js";

export function showTopItems(items) {
  byId("top-count").textContent = items.length;
  byId("top-items").replaceChildren(...items.map(itemRow));
}

function itemRow(item) {
  const kind = item.categories.join(", ");
  return element(
    "tr",
    { "data-item": item.item_id },
    element("td", { class: "number rank" }, item.rank),
    element(
      "td",
      {},
      itemName(item.title, item.item_id),
      kind ? element("span", { class: "note block" }, kind) : null,
    ),
    element(
      "td",
      { class: "number" },
      score(item),
      item.reason === "popular" ? element("span", { class: "badge" }, "popular") : null,
    ),
  );
}

// The score of a popular item is a count of events, that of the model a real number.
const score = (item) =>
  item.reason === "popular" ? String(Math.round(item.score)) : item.score.toFixed(3);
