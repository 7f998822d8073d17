// @ts-check
/** Compares two lists of recommendations, and the attention behind them, in a sentence. */

import { formatPercent, pluralize } from "../shell/format.js";
import { formatLongDay } from "./time_scale.js";

/**
 * @typedef {{itemId: string, rank: number | null, before: number | null, item: any}} Compared
 */

/**
 * The items of two lists: those of the newer one by rank, then those that it lost.
 *
 * @param {any[]} now
 * @param {any[] | null} before null where nothing is compared
 * @returns {Compared[]}
 */
export function compareLists(now, before) {
  const old = new Map((before ?? []).map((item) => [item.item_id, item]));
  const current = new Set(now.map((item) => item.item_id));
  const kept = now.map((item) => ({
    itemId: item.item_id,
    rank: item.rank,
    before: old.get(item.item_id)?.rank ?? null,
    item,
  }));
  const lost = [...old.values()].filter((item) => !current.has(item.item_id));
  return [
    ...kept,
    ...lost.map((item) => ({ itemId: item.item_id, rank: null, before: item.rank, item })),
  ];
}

/**
 * The sentence of a comparison: "3 items entered, 3 left; the basket of 5 Oct 2011 gained most."
 *
 * @param {import("./view.js").View} view with `other`
 */
export function describeComparison({ sweep, index, other }) {
  if (other === null) return "";
  const compared = compareLists(sweep.at(index).items, other.sweep.at(other.index).items);
  const entered = compared.filter((one) => one.before === null).length;
  const left = compared.filter((one) => one.rank === null).length;
  const moved = compared.filter((one) => one.rank !== null && one.before !== null && one.rank !== one.before).length;
  const changes =
    entered + left + moved === 0
      ? "The same items in the same order"
      : [
          `${pluralize(entered, "item")} entered`,
          `${left} left`,
          `${moved} changed ${moved === 1 ? "its rank" : "their ranks"}`,
        ].join(", ");
  const gain = findGain({ sweep, index, other });
  const basket =
    gain === null
      ? ""
      : `; the basket of ${formatLongDay(gain.at)} gained most ` +
        `(${formatPercent(gain.before)} to ${formatPercent(gain.after)} of the attention)`;
  return `${changes} compared with ${other.label}${basket}.`;
}

/**
 * The basket whose share of the attention grew most; null where none grew.
 *
 * @returns {{at: number, before: number, after: number} | null}
 */
function findGain({ sweep, index, other }) {
  /** @type {{at: number, before: number, after: number} | null} */
  let best = null;
  let most = 1e-6;
  const shares = new Map(
    other.sweep.baskets.map((basket) => [
      basket.at,
      other.sweep.weightAt(other.index, basket).weight,
    ]),
  );
  for (const basket of sweep.baskets) {
    const before = shares.get(basket.at) ?? 0;
    const after = sweep.weightAt(index, basket).weight;
    if (after - before > most) {
      most = after - before;
      best = { at: basket.at, before, after };
    }
  }
  return best;
}
