// @ts-check
/**
 * Histories to edit, and the service's responses before and after the edits, joined by item and event.
 *
 * @typedef {{item_id: string, title: string | null, categories: string[], rank: number, score: number}} TopItem
 * @typedef {{item_id: string, title: string | null, score: number, reason: string}} RankedItem
 * @typedef {{item_id: string, title: string | null, timestamp: string, action: string | null}} SweptEvent
 * @typedef {object} Sweep response of `POST /v1/attention`
 * @property {{items: TopItem[], weights: number[] | null, history_used: number, fallback: string | null,
 *   warnings: string[]}[]} instants
 * @property {SweptEvent[]} events
 * @property {string[]} warnings
 * @property {string[]} unknown_item_ids
 *
 * @typedef {object} Ranking response of `POST /v1/rankings`
 * @property {RankedItem[]} items
 * @property {string | null} fallback
 * @property {Error} [failure] why the items are missing
 *
 * @typedef {object} Model the part of `GET /v1/models/{version}` that this page reads
 * @property {string} version
 * @property {{recommender: {actions: string[], ignored_actions: string[]}}} manifest
 *
 * @typedef {HistoryEvent & {milliseconds: number}} SentEvent
 * @typedef {object} Response what the service returned for one side of the edits
 * @property {number} queryTime
 * @property {SentEvent[]} events those in the request
 * @property {boolean} isCut whether older events did not fit in the request
 * @property {Sweep} sweep
 * @property {Ranking} ranking
 * @property {{sweep: ApiRequest, ranking: ApiRequest | null}} requests the ranking's null where there are no items
 *
 * @typedef {import("../shell/api.js").ApiRequest} ApiRequest
 * @typedef {{model: Model, before: Response, after: Response}} Comparison
 *
 * @typedef {object} EditableHistory
 * @property {HistoryEvent[]} events oldest first
 * @property {Map<string, string | null>} titles by item id, filled from responses
 * @property {{first: number, last: number | null, end: number, start: number}} span of query times
 * @property {(string | null)[]} actions the most frequent first; null for none
 * @property {string} note
 *
 * @typedef {{rank: number | null, score: number | null, isSeen: boolean}} ItemSide
 * @typedef {object} ComparedItem
 * @property {string} itemId
 * @property {string | null} title
 * @property {string[]} categories
 * @property {ItemSide} before rank null beyond the top n
 * @property {ItemSide} after
 * @property {number | null} difference of the scores; null where they do not compare
 * @property {"entered" | "left" | "up" | "down" | "same"} change
 * @property {number} by how many ranks it moved
 *
 * @typedef {import("./edits.js").HistoryEvent} HistoryEvent
 * @typedef {import("./edits.js").Row} Row
 * @typedef {import("./edits.js").Side} Side
 */

import { describeModel, Problem, readHistory, sendRequest } from "../shell/api.js";
import { formatCount, pluralize } from "../shell/format.js";
import { queryTimeSpan } from "../widgets/query_time.js";
import { eventKey, isLater } from "./edits.js";
import { fromMilliseconds, toMilliseconds, toUtc } from "./exact_instants.js";

export const LONGEST_HISTORY = 1000;
const MOST_RANKED = 500;
const MOST_CACHED = 40;

/**
 * The stored history of a user.
 * @param {string} user
 * @param {AbortSignal} signal
 * @returns {Promise<EditableHistory>}
 */
export async function loadHistory(user, signal) {
  const history = await readHistory(user, LONGEST_HISTORY, signal);
  const newest = history.events.map((event) => ({
    itemId: event.item_id,
    action: event.action,
    at: toUtc(event.timestamp),
  }));
  const events = [...new Map(newest.map((event) => [eventKey(event), event])).values()];
  const notes = [
    newest.length < history.stored
      ? `Only the newest ${formatCount(newest.length)} of ${pluralize(history.stored, "stored event")} are used, ` +
        "before and after the edits."
      : `${pluralize(newest.length, "stored event")}.`,
  ];
  if (events.length < newest.length) {
    notes.push(
      "Events with the same item, instant and action count once, as in any request: " +
        `${pluralize(events.length, "event")} remain${events.length === 1 ? "s" : ""}.`,
    );
  }
  const span = queryTimeSpan(events.map(({ at }) => ({ at: toMilliseconds(at) })));
  return { events, titles: new Map(), span, actions: actionsOf(events), note: notes.join(" ") };
}

/**
 * A history without events. Its query time is the end of the model's training data: later instants
 * are beyond what the model was trained on.
 * @param {number | null} trainedUntil
 * @returns {EditableHistory}
 */
export function emptyHistory(trainedUntil) {
  const { first, end, start } = queryTimeSpan([]);
  const by = trainedUntil === null ? 0 : trainedUntil - start;
  const span = { first: first + by, last: null, end: end + by, start: start + by };
  const note = "No events: popular items are recommended until you add one.";
  return { events: [], titles: new Map(), span, actions: [], note };
}

/**
 * Distinct actions, the most frequent first; null for events without one.
 * @param {HistoryEvent[]} events
 */
function actionsOf(events) {
  /** @type {Map<string | null, number>} */
  const counts = new Map();
  for (const { action } of events) counts.set(action, (counts.get(action) ?? 0) + 1);
  return [...counts].sort(([, one], [, other]) => other - one).map(([action]) => action);
}

/**
 * Responses by request: most edits change one side only, and undoing an edit repeats a request.
 * @type {Map<string, Promise<any>>}
 */
const cache = new Map();

/** Empties the cache, as after a change of the API key. */
export const clearCache = () => cache.clear();

/**
 * @template T
 * @param {string} key
 * @param {() => Promise<T>} request
 * @returns {Promise<T>}
 */
function cached(key, request) {
  const known = cache.get(key);
  if (known) return known;
  const response = request();
  cache.set(key, response);
  response.catch(() => cache.delete(key));
  if (cache.size > MOST_CACHED) cache.delete(/** @type {string} */ (cache.keys().next().value));
  return response;
}

/**
 * @param {ApiRequest} request
 * @param {AbortSignal} signal
 */
const send = (request, signal) => cached(JSON.stringify(request), () => sendRequest(request, signal));

/**
 * Requests recommendations, attention weights and scores for the history before and after the edits.
 *
 * Recommendations come from `POST /v1/attention` with one instant: it returns the items that
 * `POST /v1/recommendations` would, but records no impression, so this page does not change the
 * click rate of a version. `rankings` then scores every item that either side recommends.
 *
 * @param {object} request
 * @param {Row[]} request.rows
 * @param {number} request.begin query time before the edits
 * @param {number} request.end query time after the edits
 * @param {number} request.n
 * @param {boolean} request.exclude_seen
 * @param {string | null} request.version null where none serves; the service then returns a problem
 * @param {string[]} request.alsoRank items whose titles are needed
 * @param {AbortSignal} signal
 * @returns {Promise<Comparison>}
 */
export async function compareHistories({ rows, begin, end, n, exclude_seen, version, alsoRank }, signal) {
  const sides = [selectEvents(rows, "before", begin), selectEvents(rows, "after", end)];
  const sweepRequests = sides.map(({ events, queryTime }) => ({
    path: "v1/attention",
    body: {
      n,
      exclude_seen,
      history: toBody(events),
      query_times: [fromMilliseconds(queryTime)],
      model_version: version,
    },
  }));
  const [model, ...sweeps] = await Promise.all([
    version === null ? null : cached(`model ${version}`, () => describeModel(version, signal)),
    ...sweepRequests.map((request) => send(request, signal)),
  ]);
  const recommended = sweeps.flatMap((sweep) => listTopItems(sweep).map((item) => item.item_id));
  // Sorted, so that equal sets are equal requests; those that need a score come first.
  const item_ids = [...new Set([...recommended, ...alsoRank])].slice(0, MOST_RANKED).sort();
  const rankingRequests = sides.map(({ events, queryTime }) => {
    if (item_ids.length === 0) return null;
    const query_time = fromMilliseconds(queryTime);
    return {
      path: "v1/rankings",
      body: { history: toBody(events), query_time, item_ids, model_version: version },
    };
  });
  const rankings = await Promise.all(
    rankingRequests.map((request) =>
      request === null
        ? { items: [], fallback: null }
        : send(request, signal).catch(toMissingRanking),
    ),
  );
  const [before, after] = sides.map((side, index) => ({
    ...side,
    sweep: sweeps[index],
    ranking: rankings[index],
    requests: { sweep: sweepRequests[index], ranking: rankingRequests[index] },
  }));
  return { model, before, after };
}

/** A ranking without items: the lists are shown without scores. */
function toMissingRanking(/** @type {Error} */ error) {
  if (!(error instanceof Problem)) throw error;
  return { items: [], fallback: null, failure: error };
}

/** Why scores are missing; null where they are not. */
export const scoresFailure = (/** @type {Comparison} */ { before, after }) =>
  before.ranking.failure ?? after.ranking.failure ?? null;

/**
 * The events of one side that go into its requests: none after the query time, each event once, the
 * newest `LONGEST_HISTORY`.
 * @param {Row[]} rows
 * @param {"before" | "after"} name
 * @param {number} queryTime
 */
function selectEvents(rows, name, queryTime) {
  /** @type {SentEvent[]} */
  const events = [];
  for (const { itemId, [name]: side } of rows) {
    if (side === null || side.isDuplicate || isLater(side, queryTime)) continue;
    const { at, action } = side;
    events.push({ itemId, at, action, milliseconds: toMilliseconds(at) });
  }
  events.sort((one, other) => one.milliseconds - other.milliseconds);
  return {
    queryTime,
    events: events.slice(-LONGEST_HISTORY),
    isCut: events.length > LONGEST_HISTORY,
  };
}

/** @param {SentEvent[]} events */
const toBody = (events) =>
  events.map(({ itemId, at, action }) => ({
    item_id: itemId,
    timestamp: at,
    ...(action === null ? {} : { action }),
  }));

/**
 * Joins the top items of both sides: those after the edits first, best first, then those that left.
 * @param {Comparison} comparison
 * @returns {ComparedItem[]}
 */
export function compareItems({ before, after }) {
  const [sideBefore, sideAfter] = [itemSides(before), itemSides(after)];
  const isScored = hasScores({ before, after });
  const items = [...listTopItems(after.sweep), ...listTopItems(before.sweep)];
  const byId = new Map(items.map((item) => [item.item_id, item]));
  return [...byId.values()].map(({ item_id: itemId, title, categories }) => {
    const [was, is] = [sideBefore(itemId), sideAfter(itemId)];
    const difference = isScored && was.score !== null && is.score !== null ? is.score - was.score : null;
    const change = compareRanks(was.rank, is.rank);
    return { itemId, title, categories, before: was, after: is, difference, ...change };
  });
}

/**
 * Whether the model scored both sides, so that their scores compare; popularity does not.
 * @param {{before: Response, after: Response}} comparison
 */
export const hasScores = ({ before, after }) =>
  [before.ranking, after.ranking].every(({ fallback, failure }) => fallback === null && !failure);

/** @param {Sweep} sweep */
const listTopItems = (sweep) => sweep.instants[0].items;

/**
 * @param {Response} response
 * @returns {(itemId: string) => ItemSide}
 */
function itemSides(response) {
  const ranks = new Map(listTopItems(response.sweep).map((item) => [item.item_id, item.rank]));
  const scores = new Map(response.ranking.items.map((item) => [item.item_id, item.score]));
  const seen = new Set(response.events.map((event) => event.itemId));
  return (itemId) => ({
    rank: ranks.get(itemId) ?? null,
    score: scores.get(itemId) ?? null,
    isSeen: seen.has(itemId),
  });
}

/**
 * @param {number | null} was
 * @param {number | null} is
 * @returns {{change: ComparedItem["change"], by: number}}
 */
function compareRanks(was, is) {
  if (was === null) return { change: "entered", by: 0 };
  if (is === null) return { change: "left", by: 0 };
  if (was === is) return { change: "same", by: 0 };
  return { change: is < was ? "up" : "down", by: Math.abs(is - was) };
}

/**
 * Whether the model read an event, or why it did not.
 * @typedef {"read" | "later" | "unknown" | "ignored" | "duplicate" | "old"} Status
 */

/**
 * Labels of an event without a weight, by its status.
 * @type {Record<string, string>}
 */
export const STATUS_LABELS = {
  later: "after the point in time",
  unknown: "unknown to the model",
  ignored: "action not read",
  duplicate: "duplicate",
  old: "too old",
};

/**
 * Adds `weight` and `status` to each side of the rows, both null while there is no response. Only
 * events that an attending model read have a weight.
 * @param {Row[]} rows
 * @param {Comparison | null} comparison
 * @returns {Row[]}
 */
export function addWeights(rows, comparison) {
  const before = comparison && weightsOf(comparison.before, comparison.model);
  const after = comparison && weightsOf(comparison.after, comparison.model);
  /**
   * @param {string} itemId
   * @param {Side | null} side
   * @param {ReturnType<typeof weightsOf> | null} weigh
   */
  const add = (itemId, side, weigh) =>
    side && { ...side, ...(weigh === null ? { weight: null, status: null } : weigh(itemId, side)) };
  return rows.map((row) => ({
    ...row,
    before: add(row.itemId, row.before, before),
    after: add(row.itemId, row.after, after),
  }));
}

/**
 * @param {Response} response
 * @param {Model} model
 * @returns {(itemId: string, side: Side) => {weight: number | null, status: Status}}
 */
function weightsOf({ sweep, ranking, queryTime }, model) {
  const { weights } = sweep.instants[0];
  const read = new Map(
    sweep.events.map(({ item_id: itemId, timestamp, action }, index) => [
      eventKey({ itemId, at: toUtc(timestamp), action }),
      weights?.[index] ?? null,
    ]),
  );
  const unranked = ranking.items.filter((item) => item.reason === "unknown");
  const unknown = new Set([...sweep.unknown_item_ids, ...unranked.map((item) => item.item_id)]);
  /** @type {Set<string | null>} */
  const ignored = new Set(model.manifest.recommender.ignored_actions);
  return (itemId, side) => {
    if (side.isDuplicate) return { weight: null, status: "duplicate" };
    if (isLater(side, queryTime)) return { weight: null, status: "later" };
    const key = eventKey({ itemId, at: side.at, action: side.action });
    const weight = read.get(key);
    if (weight !== undefined) return { weight, status: "read" };
    // The order in which a model drops events.
    if (ignored.has(side.action)) return { weight: null, status: "ignored" };
    return { weight: null, status: unknown.has(itemId) ? "unknown" : "old" };
  };
}
