// @ts-check
/** What every page has: the banner, the error message, the busy state, the live region. */

import { listModels, Problem } from "./api.js";
import { byId, html, nothing, render } from "./html.js";
import { keyControl } from "./key.js";
import { followTraining } from "./training_progress.js";

const main = () => /** @type {HTMLElement} */ (document.querySelector("main"));

/** Fills what the banner's template leaves open: the skip button and the key. */
export function showBanner() {
  // A button, not a link: the fragment holds the state of the page.
  byId("skip").addEventListener("click", () => main().focus());
  document.querySelector(".served")?.append(" ", keyControl());
  followTraining();
}

/** Shows the version that answered in the banner. */
export function showVersion(version) {
  byId("model-version").textContent = version;
}

/**
 * Shows the version that serves in the banner.
 *
 * @param {AbortSignal} [signal]
 * @returns {Promise<any[]>} the published versions, newest first
 */
export async function showServedVersion(signal) {
  const models = await listModels(signal);
  showVersion(models.find((model) => model.is_serving)?.version ?? "none");
  return models;
}

/**
 * Shows an error, and that the page no longer shows what was requested. Ignores aborted requests.
 *
 * @param {Error} error
 * @param {object} [options]
 * @param {(() => void) | null} [options.retry] called by a button beside the error
 */
export function showProblem(error, { retry = null } = {}) {
  if (error.name === "AbortError") return;
  if (!(error instanceof Problem)) console.error(error);
  const problem = byId("problem");
  const button = html` <button type="button" class="plain" @click=${retry}>Try again</button>`;
  render(html`${error.message}${retry === null ? nothing : button}`, problem);
  problem.hidden = false;
  showStale();
  showBusy(false);
}

/** Hides the error. */
export function clearProblem() {
  byId("problem").hidden = true;
  main().classList.remove("stale");
}

/** Fades the view: it shows the response to an earlier request. */
export function showStale() {
  main().classList.add("stale");
}

/** Sets `aria-busy`: whether the view is about to change. */
export function showBusy(isBusy) {
  main().setAttribute("aria-busy", String(isBusy));
}

let announcing;

/** Announces a text to screen readers once it has stayed the same for a moment. */
export function announce(text) {
  clearTimeout(announcing);
  announcing = setTimeout(() => {
    byId("status").textContent = text;
  }, 600);
}
