/** The history that edits begin from. */

import { readHistory } from "../shell/api.js";
import { formatCount, pluralize } from "../shell/format.js";
import { queryTimeSpan } from "../widgets/query_time.js";
import { LONGEST_HISTORY } from "./ask.js";
import { keyOf } from "./edits.js";
import { inMilliseconds, inUtc } from "./exact_instants.js";

/**
 * A history `{events, titles, span, actions, note}`: events `{itemId, action, at}`, oldest first; the
 * titles that answers have told so far; the instants worth asking about; the actions there are, the
 * most frequent first; and what to know of it, in a sentence.
 */
export async function storedHistory(user, signal) {
  const answered = (await readHistory(user, LONGEST_HISTORY, signal)).map((event) => ({
    itemId: event.item_id,
    action: event.action,
    at: inUtc(event.timestamp),
  }));
  const events = [...new Map(answered.map((event) => [keyOf(event), event])).values()];
  const notes = [`${pluralize(events.length, "stored event")}.`];
  if (events.length < answered.length) {
    notes.push(`Events of one item, instant and action count once here, as in any history that is sent along.`);
  }
  if (answered.length === LONGEST_HISTORY) {
    notes.push(`Only the newest ${formatCount(LONGEST_HISTORY)} are used; older ones are left out on both sides.`);
  }
  const span = queryTimeSpan(events.map(({ at }) => ({ at: inMilliseconds(at) })));
  return { events, titles: new Map(), span, actions: frequent(events), note: notes.join(" ") };
}

/** No events; begun where the data of a model ends, as later instants are beyond what it knows. */
export function emptyHistory(lastKnown) {
  const { first, end, start } = queryTimeSpan([]);
  const by = lastKnown === null ? 0 : lastKnown - start;
  const span = { first: first + by, last: null, end: end + by, start: start + by };
  const note = "No events: what is popular, until you add some.";
  return { events: [], titles: new Map(), span, actions: [], note };
}

function frequent(events) {
  const counts = new Map();
  for (const { action } of events) counts.set(action, (counts.get(action) ?? 0) + 1);
  return [...counts.keys()].sort((one, other) => counts.get(other) - counts.get(one));
}
