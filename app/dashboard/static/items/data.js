// @ts-check
/** The state of the Items page, the requests it sends, and the groups of its map. */

import { modelRequest, Problem } from "../shell/api.js";
import { failure } from "../shell/html.js";
import { clearProblem, showBusy, showProblem, showStale } from "../shell/page.js";
import { choice, flag, integer, list, Permalink, text } from "../shell/permalink.js";
import { seriesStyles } from "../widgets/series.js";

/** How many items the map may show; the last is the most that the service returns. */
export const MAP_SIZES = [200, 500, 1000, 2000, 5000, 10_000];

export const LINK = new Permalink({
  item: text(),
  /** Null for the version that serves. */
  model_version: text(),
  step: choice("week", "day", "month"),
  /** How many items the map shows. */
  items: integer(1, 10_000, 2000),
  /** The categories that the map shows; null for all. */
  categories: list(),
  /** Whether the map shows items of rarer categories, and items without one. */
  other: flag(true),
  none: flag(true),
});

/** The request for a stored item. */
export const itemRequest = (itemId) => ({ path: itemPath(itemId) });

/** The request for the items most similar to one in a version, the most similar first. */
export const similarRequest = (itemId, { n, version }) => ({
  path: `${itemPath(itemId)}/similar`,
  query: { n, model_version: version },
});

/**
 * The request for the lately active users who would be recommended an item at a few instants.
 *
 * @param {string} itemId
 * @param {{at: string | null, step_days: number, model_version: string | null}} query
 */
export const recipientsRequest = (itemId, query) => ({ path: `${itemPath(itemId)}/recipients`, query });

/** The request for the stored events of an item, counted by day, week or month. */
export const popularityRequest = (itemId, step) => ({ path: `${itemPath(itemId)}/popularity`, query: { step } });

/** The request for the most popular items of a version as points of a plane. */
export const mapRequest = (version, items) => ({ path: `${modelRequest(version).path}/map`, query: { items } });

/**
 * The path of an item. Every slash of the id is encoded, so that the service reads `lamp/similar` as
 * an id, not as the items similar to `lamp`.
 *
 * @throws {Problem} if no URL can contain the id
 */
function itemPath(itemId) {
  // Browsers remove these segments from a URL, also when they are percent-encoded.
  if (itemId === "." || itemId === "..") {
    throw new Problem(
      `an id in a URL must not be "." or "..", but this one is ${JSON.stringify(itemId)}; ` +
        "store the item under another id to see it here",
      { status: 404 },
    );
  }
  return `v1/items/${encodeURIComponent(itemId)}`;
}

/**
 * Waits for a response, or for why there is none. What is not found, in conflict or invalid stays so;
 * other failures have a button that tries again.
 *
 * @param {() => Promise<any>} send
 * @param {() => void} retry
 * @returns {Promise<{response: any, refusal: any}>} one of them null; `refusal` to be rendered
 */
export async function settle(send, retry) {
  try {
    return { response: await send(), refusal: null };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const isRefused = [404, 409, 422].includes(error.status);
    return { response: null, refusal: isRefused ? error.message : failure(error.message, retry) };
  }
}

/**
 * Sends requests of several kinds side by side. Of each kind the newest is shown, and the page is
 * busy until all have been shown.
 */
export class ConcurrentRequests {
  /** @type {Map<string, AbortController>} */
  #inFlight = new Map();
  /** @type {Map<string, {error: Error, retry: () => void}>} */
  #failed = new Map();

  /**
   * Runs `show(await send(signal))`, in place of the request of the same kind that is in flight. An
   * error is one of the page as a whole, with a button that runs it again.
   *
   * @param {string} kind
   * @param {(signal: AbortSignal) => any} send
   * @param {(response: any) => any} show
   */
  async replace(kind, send, show) {
    this.#inFlight.get(kind)?.abort();
    const controller = new AbortController();
    this.#inFlight.set(kind, controller);
    const isNewest = () => this.#inFlight.get(kind) === controller;
    showStale();
    showBusy(true);
    try {
      const response = await send(controller.signal);
      if (isNewest()) await show(response);
      if (isNewest()) this.#failed.delete(kind);
    } catch (error) {
      if (isNewest()) this.#failed.set(kind, { error, retry: () => this.replace(kind, send, show) });
    }
    if (isNewest()) this.#inFlight.delete(kind);
    this.#showState();
  }

  /** Aborts the request of a kind. */
  cancel(kind) {
    this.#inFlight.get(kind)?.abort();
    this.#inFlight.delete(kind);
    this.#failed.delete(kind);
    this.#showState();
  }

  #showState() {
    if (this.#inFlight.size > 0) return;
    const [failed] = this.#failed.values();
    if (failed) showProblem(failed.error, { retry: failed.retry });
    else clearProblem();
    showBusy(false);
  }
}

const MOST_CATEGORIES = 16;

/**
 * @typedef {object} Group items of the map with the same colour and symbol
 * @property {"category" | "other" | "none"} kind
 * @property {string} name
 * @property {{token: string, symbol: string}} style
 * @property {number} count how many items have the category
 */

/** @type {Omit<Group, "count">} */
const OTHER = { kind: "other", name: "other categories", style: { token: "--faint", symbol: "square-open" } };
/** @type {Omit<Group, "count">} */
const NONE = { kind: "none", name: "no category", style: { token: "--faint", symbol: "circle-open" } };

/**
 * The groups of some items: the most frequent categories of the catalog, the most frequent first,
 * then the other categories, then no category. An item of two categories counts in both. A category
 * looks the same however many items are shown, and whichever are checked.
 *
 * @param {any[]} items
 * @param {string[]} ranked the categories of the catalog, the most frequent first
 * @returns {Group[]}
 */
export function groupItems(items, ranked) {
  const counts = new Map();
  for (const item of items) {
    for (const name of new Set(item.categories)) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const styles = seriesStyles(ranked.slice(0, MOST_CATEGORIES));
  const frequent = [...styles.keys()].filter((name) => counts.has(name));
  const none = items.filter((item) => item.categories.length === 0).length;
  const other = items.filter(
    ({ categories }) => categories.length > 0 && !categories.some((name) => styles.has(name)),
  ).length;
  return [
    ...frequent.map(
      (name) =>
        /** @type {Group} */ ({ kind: "category", name, style: styles.get(name), count: counts.get(name) }),
    ),
    ...(other > 0 ? [{ ...OTHER, count: other }] : []),
    ...(none > 0 ? [{ ...NONE, count: none }] : []),
  ];
}

/**
 * Whether the state of the page shows a group.
 *
 * @param {Group} group
 * @param {Record<string, any>} state
 */
export function isShown(group, { categories, other, none }) {
  if (group.kind === "other") return other;
  if (group.kind === "none") return none;
  return categories === null || categories.includes(group.name);
}

/**
 * The groups that are shown, each with its items. An item is in the group of the first of its
 * categories that is shown; items without such a category are left out.
 *
 * @param {any[]} items
 * @param {Group[]} groups
 * @param {Record<string, any>} state
 * @returns {(Group & {items: any[]})[]}
 */
export function assignItems(items, groups, state) {
  const names = new Set(groups.filter(({ kind }) => kind === "category").map(({ name }) => name));
  /** @type {(Group & {items: any[]})[]} */
  const shown = groups.filter((group) => isShown(group, state)).map((group) => ({ ...group, items: [] }));
  const byName = new Map(shown.filter(({ kind }) => kind === "category").map((group) => [group.name, group]));
  const byKind = new Map(shown.map((group) => [group.kind, group]));
  const groupOf = ({ categories }) => {
    if (categories.length === 0) return byKind.get("none");
    if (!categories.some((name) => names.has(name))) return byKind.get("other");
    return byName.get(categories.find((name) => byName.has(name)));
  };
  for (const item of items) groupOf(item)?.items.push(item);
  return shown;
}
