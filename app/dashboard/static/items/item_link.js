/** Items one can go to. */

import { element, itemName } from "../shell/html.js";
import { LINK } from "./state.js";

/** A link to an item, with all else as it is now. */
export const itemLink = ({ item_id: itemId, title }) =>
  element(
    "a",
    { href: LINK.write({ ...LINK.read(), item: itemId }), "data-item": itemId },
    itemName(title, itemId),
  );

/** Let plain clicks on the links within `place` call `choose(itemId)`; others open tabs as ever. */
export function followLinks(place, choose) {
  place.addEventListener("click", (click) => {
    const link = click.target.closest("a[data-item]");
    if (!link || click.ctrlKey || click.metaKey || click.shiftKey) return;
    click.preventDefault();
    choose(link.dataset.item);
  });
}
