// @ts-check
/** The directives of lit-html that some pages need. */

export { live } from "../vendor/directives/live.js";
export { repeat } from "../vendor/directives/repeat.js";
