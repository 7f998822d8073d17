/** What an answer rests on, in words. */

import { byId, element } from "../shell/html.js";
import { describeFallback, describeWarnings } from "../widgets/warnings.js";

/** Say how much the model read, what filled in, and what to be careful about. */
export function showAccount(answer, storedUpToQueryTime) {
  byId("history-used").textContent =
    `${answer.history_used} of ${storedUpToQueryTime} events up to the query time`;
  byId("fallback").textContent = describeFallback(answer.fallback);
  byId("fallback").classList.toggle("caution", answer.fallback !== null);
  const sentences = describeWarnings(answer.warnings, answer.unknown_item_ids);
  const place = byId("warnings");
  place.classList.toggle("caution", sentences.length > 0);
  place.replaceChildren(
    ...(sentences.length ? sentences.map((sentence) => element("p", {}, sentence)) : ["none"]),
  );
}
