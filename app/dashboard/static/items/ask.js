/** What the items view asks the service. */

import { call, encodePath, Problem } from "../shell/api.js";

/** What is stored of an item. */
export async function readItem(itemId, signal) {
  // With an id such as "lamp/similar", this would be the address of what is like "lamp".
  if (/\/(similar|popularity)$/.test(itemId)) throw unreachable(itemId, "ends as other addresses do");
  return call(address(itemId), { signal });
}

/** The items that a version places nearest to one, the most alike first. */
export const similarItems = async (itemId, { n, version }, signal) =>
  call(`${address(itemId)}/similar`, { query: { n, model_version: version }, signal });

/** The stored events of an item, by day, week or month. */
export const readPopularity = async (itemId, step, signal) =>
  call(`${address(itemId)}/popularity`, { query: { step }, signal });

/** The most popular items of a version as points of a plane. */
export const readMap = (version, items, signal) =>
  call(`v1/models/${encodeURIComponent(version)}/map`, { query: { items }, signal });

/** Whether a refusal is about what was asked, and so belongs where the answer would have stood. */
export const isAnswer = (error) => error instanceof Problem && [404, 409, 422].includes(error.status);

function address(itemId) {
  if (itemId.split("/").some((step) => step === "." || step === "..")) {
    throw unreachable(itemId, 'has "." or ".." between slashes, which addresses leave out');
  }
  return `v1/items/${encodePath(itemId)}`;
}

const unreachable = (itemId, why) =>
  new Problem(
    `an item is asked for by an address that holds its id, but ${JSON.stringify(itemId)} ${why}; ` +
      "store it under another id to look at it here",
    { status: 404 },
  );
