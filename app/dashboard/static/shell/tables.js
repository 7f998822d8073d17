// @ts-check
/** Tables, among them those with the numbers behind a chart. */

import { formatCount } from "./format.js";
import { html, nothing, render } from "./html.js";

/** Rows of the numbers behind a chart. */
export const MOST_ROWS = 500;

/**
 * @typedef {object} TableContent
 * @property {string} caption for screen readers
 * @property {any[]} columns headings: texts, nodes or templates
 * @property {any[][]} rows cells likewise; numbers, and texts that look like one, are aligned right
 * @property {string} [className]
 */

/**
 * Fills `details`, a `<details>` element, with the numbers behind a chart. The table is built when
 * it is opened.
 *
 * @param {any} details
 * @param {TableContent} content at most 500 rows are shown
 */
export function showAsTable(details, { caption, columns, rows }) {
  details.className = "as-table";
  const shown = () => [
    scrollRegion(table({ caption, columns, rows: rows.slice(0, MOST_ROWS) }), caption),
    rows.length > MOST_ROWS
      ? html`<p class="note">The first ${MOST_ROWS} of ${formatCount(rows.length)} rows.</p>`
      : nothing,
  ];
  const show = () =>
    render(html`<summary>The same as a table</summary>${details.open ? shown() : nothing}`, details);
  details.ontoggle = show;
  show();
}

/**
 * A table. Columns of numbers are aligned right, their headings too.
 *
 * @param {TableContent} content
 */
export function table({ caption, columns, rows, className = "" }) {
  const sides = columns.map((_, index) => (rows.some((cells) => isNumber(cells[index])) ? "number" : ""));
  return html`<table class=${className}>
    <caption class="visually-hidden">${caption}</caption>
    <thead><tr>${columns.map((name, index) => html`<th scope="col" class=${sides[index]}>${name}</th>`)}</tr></thead>
    <tbody>${rows.map(
      (cells) => html`<tr>${cells.map((content, index) => cell(content, sides[index]))}</tr>`,
    )}</tbody>
  </table>`;
}

/** Wide content in a box of its own that scrolls, by keyboard too. */
export const scrollRegion = (content, label) =>
  html`<div class="scroller" tabindex="0" role="region" aria-label=${label}>${content}</div>`;

const isNumber = (content) =>
  typeof content === "number" || /^[-–−+<]? ?[\d,.]+(\s(%|ms|s|\/s))?$/.test(content);

// A dash is aligned as the numbers of its column are.
const cell = (content, side) =>
  html`<td class=${isNumber(content) ? "number" : content === "–" ? side : ""}>${content}</td>`;
