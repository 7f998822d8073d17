/** The items that are like one, with the cosine of their vectors as bars. */

import { byId, element } from "../shell/html.js";
import { itemLink } from "./item_link.js";

/** Show an answer of `GET /v1/items/{id}/similar`. */
export function showSimilar({ items, model_version: version }) {
  byId("similar-note").textContent =
    items.length === 0
      ? `${version} knows no other item that is available now.`
      : `The directions of their vectors are nearest in ${version}, of those available now.`;
  byId("similar-items").closest("table").hidden = items.length === 0;
  byId("similar-items").replaceChildren(...items.map(row));
}

/** Say why there are none, in the words of the service. */
export function showNoSimilar(why) {
  byId("similar-note").textContent = why;
  byId("similar-items").closest("table").hidden = true;
  byId("similar-items").replaceChildren();
}

function row(item) {
  const kind = item.categories.join(", ");
  return element(
    "tr",
    {},
    element("td", { class: "number rank" }, item.rank),
    element("td", {}, itemLink(item), kind ? element("span", { class: "note block" }, kind) : null),
    element(
      "td",
      { class: "number" },
      element("meter", { min: 0, max: 1, value: Math.max(item.score, 0), "aria-hidden": "true" }),
      item.score.toFixed(3).replace("-", "−"),
    ),
  );
}
