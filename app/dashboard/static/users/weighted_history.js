/** Joins the events of a history with the weights of an answer. */

/**
 * All events as `{itemId, action, at, age, weight, part}`, oldest first. `part` says what became of
 * an event: "read" by the model, "later" than the query time, or "unread" (the model does not know
 * the item, ignores the action, or reads only so many). Only events that were read have a weight:
 * that of `head`, or the mean over heads for null.
 */
export function weightedHistory(stored, answer, queryTime, head) {
  const attention = answer.attention;
  const weights = head === null ? null : attention?.heads?.[head];
  const read = (attention?.events ?? []).map((event, place) => ({
    itemId: event.item_id,
    action: event.action,
    at: Date.parse(event.timestamp),
    age: event.age_seconds * 1000,
    weight: weights ? weights[place] : event.weight,
    part: "read",
  }));

  const claimed = new Map();
  for (const event of read) {
    claimed.set(key(event), (claimed.get(key(event)) ?? 0) + 1);
  }
  const others = [];
  for (const event of stored) {
    const rest = claimed.get(key(event)) ?? 0;
    if (rest > 0) {
      claimed.set(key(event), rest - 1);
      continue;
    }
    const age = queryTime - event.at;
    others.push({ ...event, age, weight: null, part: age < 0 ? "later" : "unread" });
  }
  return [...read, ...others].sort((one, other) => one.at - other.at);
}

// An event of the model may lack the action that the stored one has: models may ignore actions.
const key = (event) => JSON.stringify([event.itemId, event.at]);
