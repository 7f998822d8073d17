/** Joins the answers about both sides: what became of every item, and of every event. */

import { isLater, keyOf } from "./edits.js";
import { inUtc } from "./exact_instants.js";

/**
 * Items of either top n as `{itemId, title, categories, before, after, difference, change, by}`:
 * those after the edits first, best first, then those that left. A side is `{rank, score, isSeen}`,
 * the rank null for an item that is not among the top n there. `change` is "entered", "left", "up",
 * "down" or "same", `by` how many ranks. `difference` is null where the scores do not compare.
 */
export function comparedItems({ before, after }) {
  const sides = [sideOf(before), sideOf(after)];
  const areScores = areComparable({ before, after });
  const named = new Map(
    [...after.swept.instants[0].items, ...before.swept.instants[0].items].map((item) => [
      item.item_id,
      item,
    ]),
  );
  return [...named.values()].map(({ item_id: itemId, title, categories }) => {
    const [was, is] = sides.map((side) => side(itemId));
    const difference = areScores && was.score !== null && is.score !== null ? is.score - was.score : null;
    return { itemId, title, categories, before: was, after: is, difference, ...moved(was.rank, is.rank) };
  });
}

/** Whether both sides were scored by the model, and not one of them by its popularity. */
export const areComparable = ({ before, after }) =>
  before.ranked.fallback === null && after.ranked.fallback === null;

function sideOf({ swept, ranked, events }) {
  const ranks = new Map(swept.instants[0].items.map((item) => [item.item_id, item.rank]));
  const scores = new Map(ranked.items.map((item) => [item.item_id, item.score]));
  const seen = new Set(events.map((event) => event.itemId));
  return (itemId) => ({
    rank: ranks.get(itemId) ?? null,
    score: scores.get(itemId) ?? null,
    isSeen: seen.has(itemId),
  });
}

function moved(was, is) {
  if (was === null) return { change: "entered", by: 0 };
  if (is === null) return { change: "left", by: 0 };
  if (was === is) return { change: "same", by: 0 };
  return { change: is < was ? "up" : "down", by: Math.abs(is - was) };
}

/**
 * The rows with `weight` and `part` on each side: "read" by the model, "later" than the query time,
 * "unknown" to the model, "ignored" for its action, "told" twice, or "old": beyond what is read.
 * Only events that were read have a weight, and only of a model that attends. Without answers yet,
 * nothing is said.
 */
export function weightedRows(rows, answers) {
  const [was, is] = ["before", "after"].map((side) => weightsOf(answers, side));
  return rows.map((row) => ({
    ...row,
    before: row.before && { ...row.before, ...was(row.itemId, row.before) },
    after: row.after && { ...row.after, ...is(row.itemId, row.after) },
  }));
}

function weightsOf(answers, side) {
  if (answers === null) return () => ({ weight: null, part: null });
  const { swept, ranked, queryTime } = answers[side];
  const { weights } = swept.instants[0];
  const read = new Map(
    swept.events.map(({ item_id: itemId, timestamp, action }, place) => [
      keyOf({ itemId, at: inUtc(timestamp), action }),
      weights?.[place] ?? null,
    ]),
  );
  const strangers = ranked.items.filter((item) => item.reason === "unknown");
  const unknown = new Set([
    ...swept.unknown_item_ids,
    ...strangers.map((item) => item.item_id),
  ]);
  const ignored = new Set(answers.model.manifest.recommender.ignored_actions);
  return (itemId, event) => {
    if (event.isTold) return { weight: null, part: "told" };
    if (isLater(event, queryTime)) return { weight: null, part: "later" };
    const key = keyOf({ itemId, at: event.at, action: event.action });
    if (read.has(key)) return { weight: read.get(key), part: "read" };
    // In the order in which a model leaves events out.
    if (ignored.has(event.action)) return { weight: null, part: "ignored" };
    return { weight: null, part: unknown.has(itemId) ? "unknown" : "old" };
  };
}
