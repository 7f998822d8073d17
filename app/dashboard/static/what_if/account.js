/** What either side rests on, in words. */

import { byId, element } from "../shell/dom.js";
import { count, counted } from "../shell/numbers.js";
import { cautions, fallbackInWords } from "../widgets/cautions.js";
import { LONGEST_HISTORY } from "./ask.js";

/** Say of both sides how much the model read, what filled in, and what to be careful about. */
export function showAccounts({ before, after }) {
  show("account-before", before);
  show("account-after", after);
}

function show(id, { swept, events, isCut }) {
  const [at] = swept.instants;
  const sentences = cautions([...new Set([...at.warnings, ...swept.warnings])], swept.unknown_item_ids);
  if (at.fallback !== null) sentences.unshift(fallbackInWords(at.fallback));
  if (isCut) sentences.push(`only the newest ${count(LONGEST_HISTORY)} events were sent`);
  byId(id).replaceChildren(
    `${count(at.history_used)} of ${counted(events.length, "event")} read`,
    ...sentences.map((sentence) => element("p", { class: "caution" }, sentence)),
  );
}
