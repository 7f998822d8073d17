/** Tables of what a picture shows, for those who read rather than look. */

import { element } from "./dom.js";

const MOST_ROWS = 500;

/**
 * Fill `place`, a `<details>`, with the numbers behind a picture: a table that is made when it is
 * first opened. `columns` are headings, `rows` lists of texts or nodes, numbers set to the right.
 */
export function showAsTable(place, { caption, columns, rows }) {
  const isOpen = place.open;
  place.className = "as-table";
  // A summary that is there stays, and with it the focus.
  if (place.firstChild === null) place.append(element("summary", {}, "The same as a table"));
  while (place.children.length > 1) place.lastChild.remove();
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

/** A table: cells that are numbers, or look like one, stand to the right, their heading likewise. */
export function table({ caption, columns, rows }) {
  const sides = columns.map((_, place) => (rows.some((cells) => isNumber(cells[place])) ? "number" : null));
  const heading = (name, place) => element("th", { scope: "col", class: sides[place] }, name);
  const row = (cells) => element("tr", {}, ...cells.map((content, place) => cell(content, sides[place])));
  return element(
    "table",
    {},
    element("caption", { class: "visually-hidden" }, caption),
    element("thead", {}, element("tr", {}, ...columns.map(heading))),
    element("tbody", {}, ...rows.map(row)),
  );
}

/** Something wide in a box of its own that scrolls, by keyboard too. */
export const scrolling = (content, label) =>
  element("div", { class: "scroller", tabIndex: 0, role: "region", "aria-label": label }, content);

const isNumber = (content) =>
  typeof content === "number" || /^[-–−+<]? ?[\d,.]+(\s(%|ms|s|\/s))?$/.test(content);

// A dash stands where the numbers of its column do.
const cell = (content, side) =>
  element("td", { class: isNumber(content) ? "number" : content === "–" ? side : null }, content);
