/** What an answer rests on, in words. */

import { byId, element } from "../shell/dom.js";

const FALLBACKS = {
  popular: "popular items fill up: the model's own were too few",
  no_history: "popular items only: nothing of this history was usable at this instant",
};

const WARNINGS = {
  attention_unavailable: "this model does not attend, so there are no weights to show",
  beyond_training_window:
    "this instant lies well past the model's training data, which cannot vouch for it",
  history_truncated: "the model reads only the most recent events; older ones were left out",
  events_after_query_time: "events after the query time were left out",
};

/** Say how much the model read, what filled in, and what to be careful about. */
export function showAccount(answer, storedUpToQueryTime) {
  byId("history-used").textContent =
    `${answer.history_used} of ${storedUpToQueryTime} events up to the query time`;
  byId("fallback").textContent =
    answer.fallback === null ? "none" : (FALLBACKS[answer.fallback] ?? answer.fallback);
  byId("fallback").classList.toggle("caution", answer.fallback !== null);
  showWarnings(answer);
}

function showWarnings(answer) {
  const sentences = answer.warnings.map((code) => WARNINGS[code] ?? code);
  const unknown = answer.unknown_item_ids.length;
  if (unknown > 0) {
    const items = unknown === 1 ? "1 item of the history is" : `${unknown} items of the history are`;
    sentences.push(`${items} unknown to the model, which read the rest`);
  }
  const place = byId("warnings");
  place.classList.toggle("caution", sentences.length > 0);
  place.replaceChildren(
    ...(sentences.length ? sentences.map((sentence) => element("p", {}, sentence)) : ["none"]),
  );
}
