/** What either side rests on, in words. */

import { formatCount, pluralize } from "../shell/format.js";
import { byId, element } from "../shell/html.js";
import { describeFallback, describeWarnings } from "../widgets/warnings.js";
import { LONGEST_HISTORY } from "./ask.js";

/** Say of both sides how much the model read, what filled in, and what to be careful about. */
export function showAccounts({ before, after }) {
  show("account-before", before);
  show("account-after", after);
}

function show(id, { swept, events, isCut }) {
  const [at] = swept.instants;
  const sentences = describeWarnings([...new Set([...at.warnings, ...swept.warnings])], swept.unknown_item_ids);
  if (at.fallback !== null) sentences.unshift(describeFallback(at.fallback));
  if (isCut) sentences.push(`only the newest ${formatCount(LONGEST_HISTORY)} events were sent`);
  byId(id).replaceChildren(
    `${formatCount(at.history_used)} of ${pluralize(events.length, "event")} read`,
    ...sentences.map((sentence) => element("p", { class: "caution" }, sentence)),
  );
}
