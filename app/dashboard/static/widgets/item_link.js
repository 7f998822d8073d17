/** An item's name that leads to the view of items. */

import { element, itemName } from "../shell/dom.js";

/** The title, or the id where there is none, as a link to the item's own page. */
export const itemLink = (title, itemId) =>
  element(
    "a",
    { class: "item-link", href: `items.html#${new URLSearchParams({ item: itemId })}` },
    itemName(title, itemId),
  );
