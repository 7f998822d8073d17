/** What to be careful about in an answer, in words. */

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

/** What filled an answer in for want of the model's own items; "none" where nothing had to. */
export const describeFallback = (fallback) =>
  fallback === null ? "none" : (FALLBACKS[fallback] ?? fallback);

/** A sentence per warning, and one for items that the model does not know. */
export function describeWarnings(warnings, unknownItemIds) {
  const sentences = warnings.map((code) => WARNINGS[code] ?? code);
  const unknown = unknownItemIds.length;
  if (unknown > 0) {
    const items = unknown === 1 ? "1 item of the history is" : `${unknown} items of the history are`;
    sentences.push(`${items} unknown to the model, which read the rest`);
  }
  return sentences;
}
