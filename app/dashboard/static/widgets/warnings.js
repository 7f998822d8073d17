// @ts-check
/** Describes the fallbacks and warnings of a recommendation. */

const FALLBACKS = {
  popular: "popular items fill up: the model's own were too few",
  no_history: "popular items only: no event of this history was usable at this instant",
};

const WARNINGS = {
  attention_unavailable: "this model has no attention, so there are no weights to show",
  beyond_training_window:
    "after the training data ends: less reliable",
  history_truncated: "the model reads only the most recent events; older ones were left out",
  events_after_query_time: "events after the point in time were left out",
  seen_items_truncated: "only the most recent items of the history were left out of the list",
  filters_match_nothing: "no item matches the filters",
  diversity_unavailable: "this model cannot make its list more diverse",
};

/** Which items were added to the model's own; "none" where none were. */
export const describeFallback = (fallback) =>
  fallback === null ? "none" : (FALLBACKS[fallback] ?? fallback);

/**
 * A sentence per warning, and one for items that the model does not know.
 *
 * @param {string[]} warnings codes of the API
 * @param {string[]} unknownItemIds
 */
export function describeWarnings(warnings, unknownItemIds) {
  const sentences = warnings.map((code) => WARNINGS[code] ?? code);
  const unknown = unknownItemIds.length;
  if (unknown > 0) {
    const items = unknown === 1 ? "1 item of the history is" : `${unknown} items of the history are`;
    sentences.push(`${items} unknown to the model and left out`);
  }
  return sentences;
}
