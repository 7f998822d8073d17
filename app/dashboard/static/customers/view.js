// @ts-check
/** What every card of the page shows. */

import { TimeScale } from "./time_scale.js";

const NARROW = 600;
const LABELS = { wide: 196, narrow: 116 };
const NUMBERS = { wide: 104, narrow: 52 };

/**
 * @typedef {object} View
 * @property {import("./sweep.js").Sweep} sweep
 * @property {number} index of the swept instant that is shown
 * @property {number} queryTime
 * @property {{sweep: import("./sweep.js").Sweep, index: number, label: string} | null} other what the
 *   list is compared with
 * @property {number | null} compareTime
 * @property {{from: number, until: number} | null} span indices of instants that are averaged
 * @property {(width: number) => TimeScale} scaleFor the time axis for a chart of so many pixels
 * @property {Set<number>} open the instants of open baskets
 * @property {number} n the number of ranks
 * @property {string | null} user null for a pasted history
 * @property {{at: number, version: string}[]} swaps
 * @property {(itemId: string) => string} nameOf
 * @property {number | null} storedEvents of the user; null for a pasted history
 */

/** The time axis of a sweep, the same in every chart. */
export function scaleForSpan({ first, end }) {
  return (width) => {
    const kind = width < NARROW ? "narrow" : "wide";
    return new TimeScale(first, end, LABELS[kind], width - NUMBERS[kind]);
  };
}
