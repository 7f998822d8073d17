/** Templates: lit-html 3.3.3, vendored. Values go in as text, never as markup. */

export { html, nothing, render } from "../vendor/lit-html.js";
export { live } from "../vendor/directives/live.js";
export { repeat } from "../vendor/directives/repeat.js";
