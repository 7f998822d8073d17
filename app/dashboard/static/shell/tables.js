/** Tables of what a picture shows, for those who read rather than look. */

import { element } from "./dom.js";

const MOST_ROWS = 500;

/**
 * Fill `place`, a `<details>`, with the numbers behind a picture: a table that is made when it is
 * first opened. `columns` are headings, `rows` lists of texts or nodes, numbers set to the right.
 */
export function showAsTable(place, { caption, columns, rows }) {
  const isOpen = place.open;
  const summary = element("summary", {}, "The same as a table");
  place.className = "as-table";
  place.replaceChildren(summary);
  place.ontoggle = () => {
    if (place.open && place.children.length === 1) {
      place.append(scrolling(table({ caption, columns, rows: rows.slice(0, MOST_ROWS) }), caption));
      if (rows.length > MOST_ROWS) {
        place.append(element("p", { class: "note" }, `The first ${MOST_ROWS} of ${rows.length} rows.`));
      }
    }
  };
  if (isOpen) place.ontoggle();
}

/** A table: cells that are numbers, or look like one, stand to the right. */
export function table({ caption, columns, rows }) {
  return element(
    "table",
    {},
    element("caption", { class: "visually-hidden" }, caption),
    element(
      "thead",
      {},
      element("tr", {}, ...columns.map((name) => element("th", { scope: "col" }, name))),
    ),
    element("tbody", {}, ...rows.map((cells) => element("tr", {}, ...cells.map(cell)))),
  );
}

/** Something wide in a box of its own that scrolls, by keyboard too. */
export const scrolling = (content, label) =>
  element("div", { class: "scroller", tabIndex: 0, role: "region", "aria-label": label }, content);

function cell(content) {
  const isNumber = typeof content === "number" || /^[-–−+<]? ?[\d,.]+( %)?$/.test(content);
  return element("td", { class: isNumber ? "number" : null }, content);
}
