/** An event in the words of a tip. */

import { formatDuration, formatInstant } from "../shell/format.js";
import { itemName } from "../shell/html.js";

/** Lines about an event `{itemId, action, at, age}`; `items` knows titles and categories by id. */
export function eventInWords({ itemId, action, at, age }, items) {
  const item = items.get(itemId);
  return [
    itemName(item?.title, itemId),
    item?.categories.length ? item.categories.join(", ") : null,
    action,
    `${formatInstant(at)} UTC`,
    age < 0 ? "after the query time" : `${formatDuration(age)} before the query time`,
  ].filter(Boolean);
}
