// @ts-check
/** What the map shows, in words. */

import { formatCount, formatPercent, pluralize } from "../shell/format.js";

const NEIGHBOURS = 10;

/**
 * What the rings mark.
 *
 * @param {any[]} items of the map
 * @param {string | null} chosen
 * @param {string[]} similar
 */
export function describeChosen(items, chosen, similar) {
  if (chosen === null) return "Choose a point to see its item.";
  const item = items.find(({ item_id: itemId }) => itemId === chosen);
  const onMap = items.filter(({ item_id: itemId }) => similar.includes(itemId)).length;
  const circles = similar.length
    ? ` In circles: ${onMap} of the ${pluralize(similar.length, "item")} listed as similar.`
    : "";
  return item
    ? `In a diamond: ${item.title || chosen}.${circles}`
    : `${chosen} is not among the items of this map.${circles}`;
}

/** What the squares mark. */
export const describeFound = (count, text) =>
  text === "" ? "" : `In squares: ${pluralize(count, "item")} with “${text}” in its title, id or category.`;

/** How much nearness on the map says. */
export function describeKept({ neighbours_kept: kept }) {
  if (kept === null) return "";
  const share = kept * NEIGHBOURS;
  const number = share < 1 ? share.toFixed(1) : String(Math.round(share));
  return `Of an item's ${NEIGHBOURS} nearest neighbours, ${number} on average ${
    number === "1" ? "is" : "are"
  } among its ${NEIGHBOURS} nearest on the map.`;
}

/** @typedef {{count: number, dimensions: number | null}} Vectors the item vectors of a version */

/**
 * How the map was made.
 *
 * @param {any} response of `GET /v1/models/{version}/map`
 * @param {Vectors | null} vectors null where the manifest is not known
 */
export function summarize({ items, model_version: version, method, explained }, vectors) {
  const dimensions = vectors?.dimensions ?? null;
  const isPart = vectors !== null && items.length < vectors.count;
  const count = formatCount(items.length);
  const which = isPart
    ? `The ${count} of the ${formatCount(vectors.count)} items of ${version} with the most events`
    : `The ${count} items of ${version}`;
  const all = dimensions === null ? "all" : `all ${dimensions}`;
  const of = dimensions === null ? "" : ` of ${dimensions}`;
  const shown = `${which}, the larger the more events`;
  const shading = "Shaded: where many of them lie.";
  const similar = `The list of similar items uses ${all} dimensions.`;
  if (method === "tsne") {
    return (
      `${shown}, placed by t-SNE of their vectors when the model was trained: what lies close together ` +
      "is similar, but distances between groups, their sizes and the directions of the map mean nothing. " +
      `${shading} ${similar}`
    );
  }
  const [first, second] = explained.map(formatPercent);
  return (
    `${shown}, placed by a PCA of the directions of their vectors, as this version was trained without a ` +
    `map: the first axis explains ${first} of the variance, the second ${second}. Near on the map is near ` +
    `in two${of} directions only. ${shading} ${similar}`
  );
}
