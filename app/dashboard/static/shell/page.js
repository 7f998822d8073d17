// @ts-check
/** What every page has: the banner, the error message, the busy state, the live region. */

import { listModels, Problem } from "./api.js";
import { byId, failure, html, render } from "./html.js";
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

/**
 * Makes a tab of the banner lead to what this page shows.
 *
 * @param {string} file of the tab's page
 * @param {() => Record<string, string>} read returns the values of its fragment
 */
export function leadTab(file, read) {
  const tab = /** @type {HTMLAnchorElement | null} */ (document.querySelector(`.tabs a[href="${file}"]`));
  for (const kind of ["pointerenter", "focus", "click"]) {
    tab?.addEventListener(kind, () => {
      const fragment = new URLSearchParams(read()).toString();
      tab.href = fragment === "" ? file : `${file}#${fragment}`;
    });
  }
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
  try {
    const models = await listModels(signal);
    showVersion(models.find((model) => model.is_serving)?.version ?? "none");
    return models;
  } catch (error) {
    if (error.name !== "AbortError") showVersion("unknown");
    throw error;
  }
}

/** The part of a page that has failed if the page as a whole has. */
const WHOLE = "";
/**
 * What has failed, by the part of the page.
 * @type {Map<string, {message: string, retry: (() => void) | null}>}
 */
const problems = new Map();

/**
 * Shows an error of a part of the page beside those of other parts. Without a part, the page no longer
 * shows what was requested. Ignores aborted requests.
 *
 * @param {Error} error
 * @param {object} [options]
 * @param {string} [options.part] what cannot be shown, such as "Traffic"
 * @param {(() => void) | null} [options.retry] called by a button beside the error
 */
export function showProblem(error, { part = WHOLE, retry = null } = {}) {
  if (error.name === "AbortError") return;
  if (!(error instanceof Problem)) console.error(error);
  problems.set(part, { message: error.message, retry });
  renderProblems();
  if (part !== WHOLE) return;
  showStale();
  showBusy(false);
}

/**
 * Hides the error of a part, or of the page as a whole.
 *
 * @param {string} [part]
 */
export function clearProblem(part = WHOLE) {
  problems.delete(part);
  renderProblems();
  if (part === WHOLE) main().classList.remove("stale");
}

function renderProblems() {
  const lines = [...problems].map(([part, { message, retry }]) => {
    const again = () => {
      problems.delete(part);
      renderProblems();
      retry?.();
    };
    return html`<p>${failure(part === WHOLE ? message : `${part}: ${message}`, retry && again)}</p>`;
  });
  render(lines, byId("problem"));
  byId("problem").hidden = problems.size === 0;
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
