/** The answer's items, best first. */

import { byId, element, itemLink } from "../shell/html.js";

/**
 * Show items as an answer has them. With `before`, ids of an earlier answer, best first, each row
 * says how its rank has changed since.
 */
export function showTopItems(items, before = null) {
  const ranks = before === null ? null : new Map(before.map((id, place) => [id, place + 1]));
  byId("top-count").textContent = items.length;
  byId("top-items").replaceChildren(...items.map((item) => itemRow(item, ranks)));
}

function itemRow(item, ranks) {
  const kind = item.categories.join(", ");
  return element(
    "tr",
    { "data-item": item.item_id },
    element("td", { class: "number rank" }, item.rank, ranks === null ? null : moved(item, ranks)),
    element(
      "td",
      {},
      itemLink(item.title, item.item_id),
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

/** Where an item came from: a sign to see, words to hear. */
function moved(item, ranks) {
  const earlier = ranks.get(item.item_id);
  if (earlier === item.rank) return null;
  if (earlier === undefined) return mark("new", "new", " since the instant before");
  const places = earlier - item.rank;
  const [kind, sign, word] = places > 0 ? ["up", "▴", "up"] : ["down", "▾", "down"];
  return mark(kind, `${sign}${Math.abs(places)}`, `, ${word} since the instant before`);
}

const mark = (kind, sign, words) =>
  element(
    "span",
    { class: `moved ${kind}` },
    sign,
    element("span", { class: "visually-hidden" }, words),
  );

// The score of a popular item is a count of events, that of the model a real number.
const score = (item) =>
  item.reason === "popular" ? String(Math.round(item.score)) : item.score.toFixed(3);
