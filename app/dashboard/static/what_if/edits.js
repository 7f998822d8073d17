// @ts-check
/**
 * Edits of a history: pure functions over a list in the order of their making, with at most one edit
 * per event and kind, and the form they have in a link. No function changes a list it is given.
 *
 * Instants of events are exact texts (see exact_instants.js), query times milliseconds since 1970.
 *
 * @typedef {{itemId: string, at: string, action: string | null}} HistoryEvent
 * @typedef {HistoryEvent & {kind: "add", number: number}} Addition
 * @typedef {{kind: "remove", of: HistoryEvent}} Removal
 * @typedef {{kind: "move", of: HistoryEvent, at: string}} Move
 * @typedef {{kind: "action", of: HistoryEvent, action: string | null}} ActionChange
 * @typedef {Removal | Move | ActionChange} StoredEdit an edit of a stored event, `of`
 * @typedef {{kind: "basket", at: string}} BasketRemoval removes all stored events of an instant
 * @typedef {{kind: "query_time", at: number}} QueryTimeChange
 * @typedef {Addition | StoredEdit | BasketRemoval | QueryTimeChange} Edit
 *
 * @typedef {object} Side one event on one side of the edits
 * @property {string} at
 * @property {string | null} action
 * @property {boolean} [isDuplicate] an event before it in the list has become the same
 * @property {number | null} [weight] attention weight, set by `addWeights`
 * @property {import("./data.js").Status | null} [status] set by `addWeights`
 *
 * @typedef {object} Row one event before and after the edits
 * @property {string} key
 * @property {string} itemId
 * @property {Addition | null} added the edit that added it
 * @property {Side | null} before null for an event that was added
 * @property {Side | null} after null for an event that was removed
 */

import { fromCompact, fromMilliseconds, toCompact, toMilliseconds } from "./exact_instants.js";

/** Links with more are cut off by mail programs and chats. */
export const MOST_EDITS = 50;

let additions = 0;

/**
 * An edit that adds an event; each is an event of its own, even where two are equal.
 * @param {HistoryEvent} event
 * @returns {Addition}
 */
export function createAddition({ itemId, at, action }) {
  additions += 1;
  return { kind: "add", number: additions, itemId, at, action };
}

/**
 * Identity of an event: the service counts events with the same three fields once.
 * @param {HistoryEvent} event
 */
export const eventKey = ({ itemId, at, action }) => JSON.stringify([itemId, at, action]);

/**
 * Rows of the history before and after the edits: the stored events in their order, then those added.
 * @param {HistoryEvent[]} stored
 * @param {Edit[]} edits
 * @returns {Row[]}
 */
export function applyEdits(stored, edits) {
  /** @type {Map<string, Removal>} */
  const removed = new Map();
  const removedBaskets = new Set(edits.map((edit) => (edit.kind === "basket" ? edit.at : null)));
  /** @type {Map<string, Move>} */
  const moved = new Map();
  /** @type {Map<string, ActionChange>} */
  const acted = new Map();
  for (const edit of edits) {
    if (edit.kind === "remove") removed.set(eventKey(edit.of), edit);
    if (edit.kind === "move") moved.set(eventKey(edit.of), edit);
    if (edit.kind === "action") acted.set(eventKey(edit.of), edit);
  }
  /** @type {Row[]} */
  const rows = stored.map(({ itemId, at, action }) => {
    const key = eventKey({ itemId, at, action });
    const change = acted.get(key);
    const after = { at: moved.get(key)?.at ?? at, action: change ? change.action : action };
    const isGone = removed.has(key) || removedBaskets.has(at);
    return { key, itemId, added: null, before: { at, action }, after: isGone ? null : after };
  });
  for (const edit of edits) {
    if (edit.kind !== "add") continue;
    const { itemId, at, action } = edit;
    rows.push({ key: `added ${edit.number}`, itemId, added: edit, before: null, after: { at, action } });
  }
  return withDuplicates(rows);
}

/**
 * @param {Row[]} rows
 * @returns {Row[]}
 */
function withDuplicates(rows) {
  const seen = new Set();
  return rows.map((row) => {
    if (row.after === null) return row;
    const key = eventKey({ itemId: row.itemId, ...row.after });
    const isDuplicate = seen.has(key);
    seen.add(key);
    return { ...row, after: { ...row.after, isDuplicate } };
  });
}

/**
 * Whether a row differs from the stored event.
 * @param {Row} row
 */
export const isEdited = ({ before, after }) =>
  before === null || after === null || before.at !== after.at || before.action !== after.action;

/**
 * The row of an edit, the first of a basket; undefined for the query time, and where the history lacks the event.
 * @param {Row[]} rows
 * @param {Edit} edit
 */
export function findRow(rows, edit) {
  if (edit.kind === "query_time") return undefined;
  if (edit.kind === "basket") return rows.find((row) => row.before?.at === edit.at);
  if (edit.kind === "add") return rows.find((row) => row.added?.number === edit.number);
  return rows.find((row) => row.added === null && row.key === eventKey(edit.of));
}

/**
 * Removes an event; an added one loses its edit.
 * @param {Edit[]} edits
 * @param {Row} row
 * @returns {Edit[]}
 */
export function removeEvent(edits, row) {
  if (row.added) return edits.filter((edit) => edit !== row.added);
  return put(edits, { kind: "remove", of: storedEvent(row) });
}

/**
 * Removes all stored events of an instant.
 * @param {Edit[]} edits
 * @param {string} at
 * @returns {Edit[]}
 */
export function removeBasket(edits, at) {
  const others = edits.filter((edit) => !("of" in edit && edit.kind === "remove" && edit.of.at === at));
  return others.some((edit) => edit.kind === "basket" && edit.at === at)
    ? others
    : [...others, { kind: "basket", at }];
}

/**
 * Undoes the removal of an event; one of a removed basket brings the basket back.
 * @param {Edit[]} edits
 * @param {Row} row
 * @returns {Edit[]}
 */
export const restoreEvent = (edits, row) =>
  drop(edits, "remove", row.key).filter((edit) => !(edit.kind === "basket" && edit.at === row.before?.at));

/**
 * Moves an event to another instant; moved back to its own, it has no edit.
 * @param {Edit[]} edits
 * @param {Row} row
 * @param {string} at
 * @returns {Edit[]}
 */
export function moveEvent(edits, row, at) {
  if (row.added) return edits.map((edit) => (edit === row.added ? { ...row.added, at } : edit));
  const of = storedEvent(row);
  return at === of.at ? drop(edits, "move", row.key) : put(edits, { kind: "move", of, at });
}

/**
 * Changes the action of an event; with its own action again, it has no edit.
 * @param {Edit[]} edits
 * @param {Row} row
 * @param {string | null} action
 * @returns {Edit[]}
 */
export function changeAction(edits, row, action) {
  if (row.added) return edits.map((edit) => (edit === row.added ? { ...row.added, action } : edit));
  const of = storedEvent(row);
  return action === of.action ? drop(edits, "action", row.key) : put(edits, { kind: "action", of, action });
}

/**
 * Changes the query time; set to `begin`, the one before the edits, it has no edit.
 * @param {Edit[]} edits
 * @param {number} at
 * @param {number} begin
 * @returns {Edit[]}
 */
export function changeQueryTime(edits, at, begin) {
  const others = edits.filter(({ kind }) => kind !== "query_time");
  if (at === begin) return others;
  /** @type {QueryTimeChange} */
  const edit = { kind: "query_time", at };
  return others.length === edits.length
    ? [...edits, edit]
    : edits.map((one) => (one.kind === "query_time" ? edit : one));
}

/**
 * The query time after all edits.
 * @param {Edit[]} edits
 * @param {number} begin
 */
export const editedQueryTime = (edits, begin) =>
  edits.find((edit) => edit.kind === "query_time")?.at ?? begin;

/**
 * Whether one side of an event lies after a query time.
 * @param {{at: string}} side
 * @param {number} queryTime
 */
export const isLater = ({ at }, queryTime) => toMilliseconds(at) > queryTime;

/**
 * @param {Row} row of a stored event
 * @returns {HistoryEvent}
 */
function storedEvent({ itemId, before }) {
  const { at, action } = /** @type {Side} */ (before);
  return { itemId, at, action };
}

/**
 * @param {Edit} edit
 * @param {StoredEdit["kind"]} kind
 * @param {string} key
 */
const matches = (edit, kind, key) => edit.kind === kind && "of" in edit && eventKey(edit.of) === key;

/**
 * @param {Edit[]} edits
 * @param {StoredEdit["kind"]} kind
 * @param {string} key
 */
const drop = (edits, kind, key) => edits.filter((edit) => !matches(edit, kind, key));

/**
 * Replaces the edit of the same kind and event, or appends it.
 * @param {Edit[]} edits
 * @param {StoredEdit} edit
 */
function put(edits, edit) {
  const key = eventKey(edit.of);
  return edits.some((one) => matches(one, edit.kind, key))
    ? edits.map((one) => (matches(one, edit.kind, key) ? edit : one))
    : [...edits, edit];
}

/**
 * The edits as a field of a permalink, such as
 * `remove.sku-0002.20111207T155200.purchase*query_time.20111224T120000`: separated by stars, their
 * fields by points, which a URL need not escape.
 */
export const editsField = () => ({
  /** @type {Edit[]} */
  defaultValue: [],
  /** @param {string} text */
  read(text) {
    const edits = text === "" ? [] : text.split("*").slice(0, MOST_EDITS).map(readEdit);
    return edits.includes(undefined) ? undefined : /** @type {Edit[]} */ (edits);
  },
  /** @param {Edit[]} edits */
  write: (edits) => edits.map(writeEdit).join("*"),
});

/** @param {Edit} edit */
function writeEdit(edit) {
  switch (edit.kind) {
    case "add":
      return ["add", ...eventFields(edit)].join(".");
    case "remove":
      return ["remove", ...eventFields(edit.of)].join(".");
    case "move":
      return ["move", ...eventFields(edit.of), toCompact(edit.at)].join(".");
    case "action":
      return ["action", ...eventFields(edit.of), escapeField(edit.action ?? "")].join(".");
    case "basket":
      return `basket.${toCompact(edit.at)}`;
    default:
      return `query_time.${toCompact(fromMilliseconds(edit.at))}`;
  }
}

/**
 * @param {string} text
 * @returns {Edit | undefined}
 */
function readEdit(text) {
  const [kind, ...fields] = text.split(".");
  if (kind === "query_time") {
    const at = fromCompact(fields[0] ?? "");
    return at === undefined ? undefined : { kind, at: toMilliseconds(at) };
  }
  if (kind === "basket") {
    const at = fromCompact(fields[0] ?? "");
    return at === undefined ? undefined : { kind, at };
  }
  const [itemId, instant, action, other] = fields;
  const at = fromCompact(instant ?? "");
  if (!itemId || at === undefined) return undefined;
  const of = { itemId: unescapeField(itemId), at, action: unescapeField(action ?? "") || null };
  if (kind === "add") return createAddition(of);
  if (kind === "remove") return { kind, of };
  if (other === undefined) return undefined;
  if (kind === "action") return { kind, of, action: unescapeField(other) || null };
  const to = fromCompact(other);
  return kind === "move" && to !== undefined ? { kind, of, at: to } : undefined;
}

/** @param {HistoryEvent} event */
const eventFields = ({ itemId, at, action }) => [escapeField(itemId), toCompact(at), escapeField(action ?? "")];

/** @type {Record<string, string>} */
const ESCAPES = { _: "__", ".": "_p", "*": "_s" };
/** @type {Record<string, string>} */
const CHARACTERS = { _: "_", p: ".", s: "*" };

/** @param {string} name */
const escapeField = (name) => name.replaceAll(/[_.*]/g, (character) => ESCAPES[character]);

/** @param {string} text */
const unescapeField = (text) => text.replaceAll(/_(.)/g, (_, letter) => CHARACTERS[letter] ?? letter);
