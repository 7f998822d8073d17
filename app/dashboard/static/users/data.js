// @ts-check
/** The state of the User page in its link, its requests, and histories joined with weights. */

import { call, readHistory } from "../shell/api.js";
import { SECOND } from "../shell/format.js";
import { choice, flag, instant, integer, Permalink, text } from "../shell/permalink.js";
import { pastedEvents, pastedHistory } from "./pasted_history.js";

export const COUNTS = [5, 10, 20, 50, 100];

const LONGEST_HISTORY = 1000;
/** The most items that a sweep answers per instant. */
const MOST_SWEPT = 100;
const MOST_INSTANTS = 200;

export const LINK = new Permalink({
  user: text(),
  /** A pasted history in place of a user, as the API takes it. */
  history: pastedHistory(),
  /** Null until the history is loaded. */
  query_time: instant(),
  n: integer(1, 500, 10),
  exclude_seen: flag(true),
  query_time_withheld: flag(false),
  scale: choice("linear", "log"),
  /** A head's number from 1, or null for the mean over heads. */
  head: integer(1, 64),
  speed: choice("medium", "slow", "fast"),
  /** The item whose score is explained by leaving out events, or null. */
  explain_item_id: text(),
});

/** Whether two states have the same history. */
export const isSameHistory = (one, other) =>
  one.user === other.user && JSON.stringify(one.history) === JSON.stringify(other.history);

/** The name of a state's user. */
export const userLabel = (state) => state.user ?? "a pasted history";

/**
 * @typedef {{itemId: string, action: string | null, at: number}} Event `at` in milliseconds
 * @typedef {Map<string, {title: string | null, categories: string[]}>} Items by id
 */

/**
 * The events of a state's history, oldest first.
 *
 * @returns {Promise<Event[]>}
 */
export async function loadEvents({ user, history }, signal) {
  if (history !== null) return pastedEvents(history);
  return (await readHistory(user, LONGEST_HISTORY, signal)).map((event) => ({
    itemId: event.item_id,
    action: event.action,
    at: Date.parse(event.timestamp),
  }));
}

/** Requests the top n at the state's query time, with the weights of every head. */
export function recommend(state, signal) {
  return call("v1/recommendations", { body: { ...toBody(state), explain: "heads" }, signal });
}

/** Requests how the score of one item changes when each of the most weighted events is left out. */
export function occlude(state, signal) {
  const { explain_item_id } = state;
  const body = { ...toBody(state), explain: "occlusion", explain_item_id };
  return call("v1/recommendations", { body, signal });
}

/** Requests weights and top n at many instants. */
export function requestSweep({ state, instants }, signal) {
  const body = {
    ...toSubject(state),
    query_times: instants.map((at) => new Date(at).toISOString()),
    n: Math.min(state.n, MOST_SWEPT),
    exclude_seen: state.exclude_seen,
  };
  return call("v1/attention", { body, signal });
}

/** Equal for states that share a sweep. */
export const sweepKey = (state) =>
  JSON.stringify([state.user, state.history, state.n, state.exclude_seen]);

/** `shown: false`: no user sees these recommendations, so they must not count as impressions. */
function toBody(state) {
  const { query_time: at, n, exclude_seen, query_time_withheld } = state;
  const query_time = new Date(at).toISOString();
  return { ...toSubject(state), query_time, n, exclude_seen, query_time_withheld, shown: false };
}

const toSubject = ({ user, history }) => (history === null ? { user_id: user } : { history });

/** Adds the titles and categories of a response to `items`. */
export function rememberItems(items, named) {
  for (const { item_id: itemId, title, categories = [] } of named) {
    items.set(itemId, { title, categories });
  }
}

/**
 * Joins stored events with the weights of a response.
 *
 * @param {Event[]} stored
 * @param {any} answer of `POST /v1/recommendations`
 * @param {number} queryTime
 * @param {number | null} head an index, or null for the mean over heads
 * @returns {any[]} `{itemId, action, at, age, weight, part}`, oldest first. `part` is "read" by the
 *   model, "later" than the query time, or "unread" (an item the model does not know, an action it
 *   ignores, or too old); only "read" events have a weight.
 */
export function weightedHistory(stored, answer, queryTime, head) {
  const attention = answer.attention;
  const weights = head === null ? null : attention?.heads?.[head];
  const read = (attention?.events ?? []).map((event, index) => ({
    itemId: event.item_id,
    action: event.action,
    at: Date.parse(event.timestamp),
    age: event.age_seconds * SECOND,
    weight: weights ? weights[index] : event.weight,
    part: "read",
  }));
  const unmatched = new Map();
  for (const event of read) unmatched.set(key(event), (unmatched.get(key(event)) ?? 0) + 1);
  const others = [];
  for (const event of stored) {
    const rest = unmatched.get(key(event)) ?? 0;
    if (rest > 0) {
      unmatched.set(key(event), rest - 1);
      continue;
    }
    const age = queryTime - event.at;
    others.push({ ...event, age, weight: null, part: age < 0 ? "later" : "unread" });
  }
  return [...read, ...others].sort((one, other) => one.at - other.at);
}

// Without the action: models may ignore actions, and then the response has none.
const key = (event) => JSON.stringify([event.itemId, event.at]);

/** Evenly spaced instants over a span, on whole seconds: where the slider stops. */
export function sweepInstants({ first, end }) {
  const count = Math.max(2, Math.min(MOST_INSTANTS, Math.floor((end - first) / SECOND) + 1));
  const step = (end - first) / (count - 1);
  return Array.from(
    { length: count },
    (_, index) => Math.ceil((first + index * step) / SECOND) * SECOND,
  );
}

/** One history at many instants: the response of `POST /v1/attention`. */
export class Sweep {
  #answer;
  #indices;
  /** @type {(number | null)[][] | null} */
  #matrix = null;

  /**
   * @param {any} answer
   * @param {number[]} instants as they were requested
   */
  constructor(answer, instants) {
    this.#answer = answer;
    this.instants = instants;
    this.#indices = new Map(instants.map((at, index) => [at, index]));
    /** @type {Event[]} those read at any of the instants */
    this.events = answer.events.map((event) => ({
      itemId: event.item_id,
      action: event.action,
      at: Date.parse(event.timestamp),
    }));
  }

  get version() {
    return this.#answer.model_version;
  }

  /** Whether there are weights to draw. */
  get hasWeights() {
    return this.#answer.instants.some((instant) => instant.weights !== null);
  }

  /** Items with titles and categories: those read or recommended. */
  get named() {
    return [...this.#answer.events, ...this.#answer.instants.flatMap((instant) => instant.items)];
  }

  /** The index of an instant, or null if it was not swept. */
  indexAt(at) {
    return this.#indices.get(at) ?? null;
  }

  /** Weights, events by instants: null before the event, 0 if the model no longer read it. */
  get matrix() {
    const instants = this.#answer.instants;
    this.#matrix ??= this.events.map((_, row) =>
      instants.map((instant) => instant.weights?.[row] ?? null),
    );
    return this.#matrix;
  }

  /** The response of `POST /v1/recommendations` at one instant, without heads. */
  answerAt(index) {
    const { query_time, weights, history_used, fallback, items, warnings } =
      this.#answer.instants[index];
    return {
      model_version: this.version,
      query_time,
      history_used,
      fallback,
      items,
      warnings: [...warnings, ...this.#warnings],
      unknown_item_ids: this.#answer.unknown_item_ids,
      attention: weights === null ? null : this.#attentionAt(index, weights, history_used),
    };
  }

  get #warnings() {
    return this.#answer.warnings.filter((code) => code === "attention_unavailable");
  }

  #attentionAt(index, weights, used) {
    const happened = weights.flatMap((weight, row) => (weight === null ? [] : [row]));
    // A model reads the most recent events; older ones weigh 0 in a sweep.
    const events = happened.slice(happened.length - used).map((row) => ({
      ...this.#answer.events[row],
      age_seconds: (this.instants[index] - this.events[row].at) / SECOND,
      weight: weights[row],
    }));
    return { normalised: this.#answer.normalised, events, heads: null };
  }
}
