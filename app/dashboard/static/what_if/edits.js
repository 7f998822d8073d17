/**
 * Edits of a history: a list in the order they were made, of at most one per event and kind.
 *
 * An edit is one of `{kind: "add", number, itemId, action, at}`, `{kind: "remove", of}`,
 * `{kind: "move", of, at}`, `{kind: "action", of, action}` and `{kind: "query_time", at}`; `of` is the
 * stored event as `{itemId, at, action}`. Instants of events are exact texts, see exact_instants.js;
 * that of the query time is in milliseconds. No function here changes a list it is given.
 */

import { inMilliseconds } from "./exact_instants.js";

/** More would make links that mail programs and chats cut off. */
export const MOST_EDITS = 50;

let added = 0;

/** An event that was not stored; every one is an event of its own, even if it is told twice. */
export function addition(itemId, action, at) {
  added += 1;
  return { kind: "add", number: added, itemId, action, at };
}

/** What tells events apart. The service counts events with the same three but once. */
export const keyOf = ({ itemId, at, action }) => JSON.stringify([itemId, at, action]);

/**
 * The events as stored and as edited, oldest first as stored, then those added:
 * `{key, itemId, added, before, after}`, where before and after are `{at, action}` or null.
 * `after.isTold` says that an event before it in the list has become the very same.
 */
export function editedEvents(stored, edits) {
  const of = (kind) =>
    new Map(edits.filter((edit) => edit.kind === kind).map((edit) => [keyOf(edit.of), edit]));
  const [removed, moved, acted] = ["remove", "move", "action"].map(of);
  const rows = stored.map(({ itemId, at, action }) => {
    const key = keyOf({ itemId, at, action });
    const after = { at: moved.get(key)?.at ?? at, action: acted.get(key)?.action ?? action };
    return { key, itemId, added: null, before: { at, action }, after: removed.has(key) ? null : after };
  });
  for (const edit of edits.filter(({ kind }) => kind === "add")) {
    const { itemId, at, action } = edit;
    rows.push({ key: `added ${edit.number}`, itemId, added: edit, before: null, after: { at, action } });
  }
  return withRepetitions(rows);
}

function withRepetitions(rows) {
  const told = new Set();
  return rows.map((row) => {
    if (row.after === null) return row;
    const key = keyOf({ itemId: row.itemId, ...row.after });
    const isTold = told.has(key);
    told.add(key);
    return { ...row, after: { ...row.after, isTold } };
  });
}

/** The row that an edit is about; undefined for the query time, and for an event that is not there. */
export const rowOf = (rows, edit) =>
  edit.kind === "add"
    ? rows.find((row) => row.added?.number === edit.number)
    : rows.find((row) => row.added === null && edit.of && row.key === keyOf(edit.of));

/** Without an event; one that was added is simply not added. */
export function withRemoved(edits, row) {
  if (row.added) return edits.filter((edit) => edit !== row.added);
  return putIn(edits, { kind: "remove", of: stored(row) });
}

/** With an event at another instant; back at its own, it was never moved. */
export function withMoved(edits, row, at) {
  if (row.added) return edits.map((edit) => (edit === row.added ? { ...edit, at } : edit));
  if (at === row.before.at) return without(edits, "move", row.key);
  return putIn(edits, { kind: "move", of: stored(row), at });
}

/** With another action of an event. */
export function withAction(edits, row, action) {
  if (row.added) return edits.map((edit) => (edit === row.added ? { ...edit, action } : edit));
  if (action === row.before.action) return without(edits, "action", row.key);
  return putIn(edits, { kind: "action", of: stored(row), action });
}

/** With another query time, or without that edit for `begin`, the one before. */
export function withQueryTime(edits, at, begin) {
  const others = edits.filter(({ kind }) => kind !== "query_time");
  if (at === begin) return others;
  const edit = { kind: "query_time", at };
  return others.length === edits.length
    ? [...edits, edit]
    : edits.map((one) => (one.kind === "query_time" ? edit : one));
}

/** Not removed any more. */
export const withoutRemoval = (edits, row) => without(edits, "remove", row.key);

/** The query time after all edits. */
export const editedQueryTime = (edits, begin) =>
  edits.find(({ kind }) => kind === "query_time")?.at ?? begin;

/** Whether an event (as a row has it before or after) lies after a query time. */
export const isLater = ({ at }, queryTime) => inMilliseconds(at) > queryTime;

const stored = ({ itemId, before }) => ({ itemId, at: before.at, action: before.action });

const isAbout = (edit, kind, key) => edit.kind === kind && keyOf(edit.of) === key;

const without = (edits, kind, key) => edits.filter((edit) => !isAbout(edit, kind, key));

/** In place of the edit of the same kind of the same event, or last. */
function putIn(edits, edit) {
  const key = keyOf(edit.of);
  return edits.some((one) => isAbout(one, edit.kind, key))
    ? edits.map((one) => (isAbout(one, edit.kind, key) ? edit : one))
    : [...edits, edit];
}
