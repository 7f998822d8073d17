/** Tells the reader what went wrong, and whether what is on display still holds. */

import { Problem } from "./api.js";
import { byId } from "./dom.js";

/** Show an error, and that the view no longer answers what was asked. Aborted requests are none. */
export function showProblem(error) {
  if (error.name === "AbortError") return;
  if (!(error instanceof Problem)) console.error(error);
  const place = byId("problem");
  place.textContent = error.message;
  place.hidden = false;
  view().classList.add("stale");
  showBusy(false);
}

/** All is well again. */
export function clearProblem() {
  byId("problem").hidden = true;
  view().classList.remove("stale");
}

/** What is on display is of a question that was left behind. */
export function showStale() {
  view().classList.add("stale");
}

/** Tell assistive technology whether what is on display is about to change. */
export function showBusy(isBusy) {
  view().setAttribute("aria-busy", isBusy);
}

let announcing = null;

/** Tell screen readers, once things have settled. */
export function announce(text) {
  clearTimeout(announcing);
  announcing = setTimeout(() => {
    byId("status").textContent = text;
  }, 600);
}

const view = () => document.querySelector("main");
