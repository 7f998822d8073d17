// @ts-check
/**
 * Builds DOM: lit-html 3.3.3 (vendored) and the elements that every page shares. Values are
 * inserted as text, never parsed as HTML.
 */

import { html, nothing, render } from "../vendor/lit-html.js";

export { html, nothing, render };

/**
 * The element with an id, which the page's template guarantees.
 *
 * @param {string} id
 * @returns {any} typed loosely: callers know whether it is an input, a dialog or a table.
 */
export const byId = (id) => document.getElementById(id);

/**
 * Why something cannot be shown, with a button that tries again.
 *
 * @param {string} message
 * @param {(() => void) | null} retry null for no button
 */
export const failure = (message, retry) =>
  html`<span class="refusal">${message}</span>${
    retry === null ? nothing : html` <button type="button" class="plain" @click=${retry}>Try again</button>`
  }`;

/** An item's title, or its id where there is none. */
export const itemName = (title, itemId) =>
  title ? html`<span class="title">${title}</span>` : html`<code>${itemId}</code>`;

/** An item's name as a link to the Items page. */
export const itemLink = (title, itemId) =>
  html`<a class="item-link" href="items.html#${new URLSearchParams({ item: itemId })}"
    >${itemName(title, itemId)}</a>`;
