/** An event in the words of a tip. */

import { itemName } from "../shell/dom.js";
import { asText, inWords } from "../shell/instants.js";

/** Lines about an event `{itemId, action, at, age}`; `items` knows titles and categories by id. */
export function eventInWords({ itemId, action, at, age }, items) {
  const item = items.get(itemId);
  return [
    itemName(item?.title, itemId),
    item?.categories.length ? item.categories.join(", ") : null,
    action,
    `${asText(at)} UTC`,
    age < 0 ? "after the query time" : `${inWords(age)} before the query time`,
  ].filter(Boolean);
}
